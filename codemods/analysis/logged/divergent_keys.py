"""What the batch decides in a step: names made of it, and the tests and loops that hang on them."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.runtime.record import record

# The shape of a batch and what it is are the same everywhere; a value in it is not.
_SAME = frozenset(
    {"shape", "ndim", "dim", "size", "dtype", "device", "isinstance", "hasattr", "is_tensor", "callable", "is_available"}
)
_MAPPING = frozenset({"items", "keys", "values"})
_GIVEN = frozenset({"batch", "outputs", "output"})


@record
class Divergence:
    """how: "if", "loop", "key" or "order" (of the keys). text: what decides. line: where."""

    how: str
    text: str
    line: int


def divergence(
    module: SourceModule, function: FunctionNode, call: ast.Call, keys: list[ast.expr], made: frozenset[str]
) -> Divergence | None:
    """What lets the batch decide whether, how often or under which key a call of a step is made; None where nothing does.

    made: the names of the function that hold values of the batch.
    """
    below: ast.AST = call
    for up in module.ancestors(call):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test and decides(up.test, made):
            return Divergence("if", module.text_of(up.test), up.lineno)
        if isinstance(up, ast.For) and iterates_values(up.iter, made):
            return Divergence("loop", module.text_of(up.iter), up.lineno)
        below = up
    for key in keys:
        parts = [p.value for p in walk(key) if isinstance(p, ast.FormattedValue)]
        if any(decides(p, made) for p in parts or [key]):
            return Divergence("key", module.text_of(key), call.lineno)
    return None


def made_of_batch(function: FunctionNode, given: set[str] | None = None) -> frozenset[str]:
    """The batch, and every name that is given a value made of it. given: further parameters that hold values of a batch."""
    named = {a.arg for a in function.args.args if a.arg in _GIVEN} | (given or set())
    if function.name.endswith("_step") and len(function.args.args) > 1:
        named.add(function.args.args[1].arg)
    changed = True
    while changed:
        changed = False
        for node in walk_scope(function):
            if not isinstance(node, ast.Assign) or not _uses(node.value, named) or not _gives_values(node.value, named):
                continue
            new = {n.id for t in node.targets for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            changed = changed or not new <= named
            named |= new
    return frozenset(named)


def _gives_values(value: ast.expr, named: set[str]) -> bool:
    """False for what is made of a batch and still the same on every rank: its shape, its keys, the answer of such a test."""
    if isinstance(value, (ast.BoolOp, ast.Compare)) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
        return decides(value, frozenset(named))
    end = last(dotted(value.func)) if isinstance(value, ast.Call) else value.attr if isinstance(value, ast.Attribute) else ""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute):
        end = value.value.attr
    if _is_of_keys(value, named):
        return False
    return end not in _SAME | _MAPPING | {"len"}


def _is_of_keys(value: ast.expr, named: set[str]) -> bool:
    """True for `"_".join(batch.keys())`: nothing of the batch goes into it but what its entries are called."""
    keys = [n.func.value for n in walk(value) if isinstance(n, ast.Call) and not n.args and called_name(n) == "keys"
            and isinstance(n.func, ast.Attribute)]  # fmt: skip
    inside = {id(n) for k in keys for n in walk(k)}
    used = [n for n in walk(value) if isinstance(n, ast.Name) and n.id in named]
    return bool(used) and all(id(n) in inside for n in used)


def _uses(node: ast.AST, names: set[str] | frozenset[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(node))


def decides(test: ast.expr, made: frozenset[str]) -> bool:
    """True where a value of the batch decides; `x is None`, `"key" in batch`, shapes and kinds are the same everywhere."""
    if isinstance(test, ast.BoolOp):
        return any(decides(v, made) for v in test.values)
    if isinstance(test, ast.UnaryOp):
        return decides(test.operand, made)
    if isinstance(test, ast.Compare):
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
            return False
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in test.ops):
            return decides(test.left, made)
        return any(decides(v, made) for v in [test.left, *test.comparators])
    if isinstance(test, ast.Call):
        end = called_name(test)
        if end in _SAME | _MAPPING | {"get"} or (end == "len" and not _filtered(test, made)):
            return False
        return _uses(test, made)
    if isinstance(test, ast.Subscript) and isinstance(test.value, ast.Attribute) and test.value.attr in _SAME:
        return False
    if isinstance(test, ast.Attribute):
        return test.attr not in _SAME and test.attr.islower() and _uses(test, made)
    return isinstance(test, (ast.Name, ast.Subscript, ast.BinOp)) and _uses(test, made)


def _filtered(call: ast.Call, made: frozenset[str]) -> bool:
    """True for the length of what was picked out of a batch: `len(x[mask])`."""
    asked = call.args[0] if call.args else call
    return isinstance(asked, ast.Subscript) and not isinstance(asked.slice, (ast.Constant, ast.Slice)) and _uses(asked, made)


def iterates_values(node: ast.expr, made: frozenset[str]) -> bool:
    """True for a loop over values of the batch (`labels.tolist()`, `labels.unique()`); the entries of a dict are no such."""
    for inner in walk(node):
        if isinstance(inner, ast.Call):
            end = called_name(inner)
            if end in ("tolist", "unique", "set", "Counter", "nonzero") and _uses(inner, made):
                return True
    return False
