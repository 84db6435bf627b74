"""Is a test one for whether there is anything at all (`n > 0`, `len(rows)`), and may that be none on one rank alone?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record

_SIZES = frozenset({"numel", "nelement"})
_OF_LISTS = frozenset({"zip", "enumerate", "list", "range", "reversed", "sorted"})
_MOVES = frozenset({"item", "float", "to", "long"})
_TRUE_ONES = frozenset({"sum", "count_nonzero"})
# What asks for the parts of a model, or for what a setting left out: the same on every rank.
_OF_MODELS = frozenset({"grad", "requires_grad", "isinstance", "hasattr", "getattr", "None"})
_SETTINGS = frozenset({"self", "cls", "args", "cfg", "config", "conf", "opt", "opts", "hparams"})


@record
class Part:
    """node: what is tested. counted: the number of its elements is, not the number itself."""

    node: ast.expr
    counted: bool


def tested_part(test: ast.expr) -> Part | None:
    """`n` of `n > 0`, `rows` of `len(rows) > 0`, `x` of `x.numel() > 0`; None for any other test."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, op, right = test.left, test.ops[0], test.comparators[0]
        more = isinstance(op, (ast.Gt, ast.NotEq)) and _is_number(right, 0)
        if more or (isinstance(op, ast.GtE) and _is_number(right, 1)):
            return _counted(left) or Part(left, counted=False)
        if isinstance(op, ast.Lt) and _is_number(left, 0):
            return _counted(right) or Part(right, counted=False)
        return None
    return _counted(test)


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == number


def _counted(node: ast.expr) -> Part | None:
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return Part(node.args[0], counted=True)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        size = node.func.attr == "size" and len(node.args) == 1 and _is_number(node.args[0], 0)
        if size or (node.func.attr in _SIZES and not node.args):
            return Part(node.func.value, counted=True)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return Part(node.value.value, counted=True) if _is_number(node.slice, 0) else None
    return None


def is_selection(module: SourceModule, bound: list[Binding], name: str) -> bool:
    """True for what a mask, or the test of a comprehension, has picked out of the rank's own elements: there may be none."""
    if len(bound) != 1 or bound[0].value is None or bound[0].part:
        return False
    value = bound[0].value
    if isinstance(value, (ast.ListComp, ast.SetComp)):
        return _picks(module, value)
    if isinstance(value, ast.Subscript):
        return _is_mask(value.slice)
    return isinstance(value, ast.Call) and last(dotted(value.func)) == "masked_select"


def _picks(module: SourceModule, made: ast.ListComp | ast.SetComp) -> bool:
    """True for elements of what the function is handed, by what they hold."""
    first = made.generators[0]
    if len(made.generators) != 1 or not first.ifs:
        return False
    words = {getattr(n, "id", getattr(n, "attr", "")) for n in walk(made)}
    words |= {"None" for n in walk(made) if isinstance(n, ast.Constant) and n.value is None}
    if words & _OF_MODELS:
        return False
    calls = [n for n in (first.iter, *walk(first.iter)) if isinstance(n, ast.Call)]
    roots = {n.id for n in (first.iter, *walk(first.iter)) if isinstance(n, ast.Name)} - _OF_LISTS
    if any(dotted(c.func) not in _OF_LISTS for c in calls) or not roots or roots & _SETTINGS:
        return False
    function = module.function_of(made)
    handed = {a.arg for a in (*function.args.posonlyargs, *function.args.args)} if function is not None else set()
    return bool(roots & handed)


def _is_mask(index: ast.expr) -> bool:
    """True for `values[mask.bool()]` and `values[labels != -100]`."""
    if isinstance(index, ast.Compare):
        return True
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return True
    if not isinstance(index, ast.Call) or not isinstance(index.func, ast.Attribute):
        return False
    told = {n.attr for a in index.args for n in (a, *walk(a)) if isinstance(n, ast.Attribute)}
    return (index.func.attr == "bool" and not index.args) or (index.func.attr in ("type", "to") and "bool" in told)


def may_be_none_here(module: SourceModule, bound: list[Binding]) -> bool:
    """True for a number that counts what a test lets through, or what is left over of a whole: it may be 0 on one rank alone.

    The number of a batch's samples, or of the batches, is 0 on every rank or on none.
    """
    starts = [b for b in bound if isinstance(b.value, ast.Constant)]
    adds = [b.node for b in bound if isinstance(b.node, ast.AugAssign)]
    if adds:
        return len(starts) + len(adds) == len(bound) and any(_adds_some(module, a) for a in adds)
    return len(bound) == 1 and bound[0].value is not None and not bound[0].part and _counts_some(bound[0].value)


def _adds_some(module: SourceModule, add: ast.AugAssign) -> bool:
    if not isinstance(add.op, ast.Add):
        return False
    if isinstance(add.value, ast.BinOp) and isinstance(add.value.op, ast.Sub):
        return isinstance(add.value.left, ast.Name) and isinstance(add.value.right, ast.Name)
    return _counts_some(add.value)


def _counts_some(value: ast.expr) -> bool:
    """True for `mask.sum()`, `(labels != -100).sum()` with what moves it, `sum(1 for x in xs if x)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    if isinstance(value, ast.Call) and dotted(value.func) == "sum" and len(value.args) == 1:
        made = value.args[0]
        return isinstance(made, (ast.GeneratorExp, ast.ListComp)) and bool(made.generators[0].ifs) and _is_number(made.elt, 1)
    if not isinstance(value, ast.Call) or last(dotted(value.func)) not in _TRUE_ONES | {""}:
        return False
    if not isinstance(value.func, ast.Attribute) or value.func.attr not in _TRUE_ONES:
        return False
    whole = value.args[0] if value.args else value.func.value
    return isinstance(whole, ast.Compare)
