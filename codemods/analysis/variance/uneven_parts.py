"""Parts of unequal length, one for each rank: the first ones get one more of the rest, by hand or by `array_split`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause
from codemods.data.rank_names import speaks_of_rank
from codemods.files.source import walk

_SPLITS = frozenset({"array_split", "tensor_split"})  # the first parts get one more each, where the number does not divide
_DEPTH = 4  # names given by names: `end`, `start`, `count`, `rest`


def gives_rest(state: State, bound: ast.expr) -> bool:
    """True for a bound that holds `n // ranks` and one more for the first `n % ranks` ranks."""
    return any(_asks_rest(state, part) for part in _made_of(state, bound, _DEPTH))


def starts_at_fraction(state: State, bound: ast.BinOp) -> bool:
    """True for `n * rank // ranks`: from there to `n * (rank + 1) // ranks`, the parts differ by one where n does not divide."""
    product = bound.left
    if not isinstance(bound.op, ast.FloorDiv) or not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return False
    return any(_is_number_of_rank(state, factor) for factor in (product.left, product.right))


def _is_number_of_rank(state: State, node: ast.expr) -> bool:
    value = state.value(node)
    if value.cause is Cause.RANK:
        return True
    number = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else node
    return bool(value.params) and speaks_of_rank(last(dotted(number)))


def unequal_parts(state: State, node: ast.expr) -> ast.Call | None:
    """The call that cuts a whole into as many parts as are asked for, which need not be as long; None for anything else."""
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    call = bound[0].value if len(bound) == 1 and not bound[0].part else node
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in _SPLITS:
        return None
    of_package = isinstance(call.func, ast.Attribute) and dotted(call.func.value) in state.module.imports
    rest = call.args[1:] if of_package or isinstance(call.func, ast.Name) else call.args
    whole = len(rest) == 1 and not isinstance(rest[0], (ast.Starred, ast.List, ast.Tuple))
    rows = all(k.arg in ("axis", "dim") and (isinstance(k.value, ast.Constant) and k.value.value == 0) for k in call.keywords)
    return call if whole and rows else None


def parted(state: State, call: ast.Call) -> ast.expr:
    """The whole that `unequal_parts` are cut from."""
    assert isinstance(call.func, (ast.Attribute, ast.Name))
    of_tensor = isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in state.module.imports
    return call.func.value if of_tensor and isinstance(call.func, ast.Attribute) else call.args[0]


def _made_of(state: State, node: ast.expr, depth: int) -> Iterator[ast.AST]:
    """The parts of an expression, and of what its names are given in this function, also by `+=`."""
    for part in (node, *walk(node)):
        yield part
        if depth and isinstance(part, ast.Name):
            for bound in bindings_of(state.module, part):
                added = bound.node if isinstance(bound.node, ast.AugAssign) else None
                given = added.value if added is not None else bound.value
                if added is not None:
                    yield from _tests_above(state, added)
                if given is not None and given is not node:
                    yield from _made_of(state, given, depth - 1)


def _tests_above(state: State, node: ast.AugAssign) -> list[ast.expr]:
    """The test of `if rank < rest: count += 1`."""
    above = state.module.parent(node)
    return [above.test] if isinstance(above, ast.If) and node in above.body and isinstance(node.op, ast.Add) else []


def _asks_rest(state: State, node: ast.AST) -> bool:
    """True for `rank < rest` and `min(rank, rest)`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = (node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.Lt):
            return _is_rank(state, sides[0]) and _is_rest(state, sides[1])
        return isinstance(node.ops[0], ast.Gt) and _is_rest(state, sides[0]) and _is_rank(state, sides[1])
    if isinstance(node, ast.Call) and dotted(node.func) == "min" and len(node.args) == 2:
        return any(_is_rank(state, a) and _is_rest(state, b) for a, b in (node.args, node.args[::-1]))
    return False


def _is_rank(state: State, node: ast.expr) -> bool:
    """True for a rank, for a parameter that may be one, and for the number of a part in a list of all of them."""
    value = state.value(node)
    if value.cause is Cause.RANK or value.params:
        return True
    if not isinstance(node, ast.Name):
        return False
    lists = (up for up in state.module.ancestors(node) if isinstance(up, ast.ListComp))
    return any(isinstance(g.target, ast.Name) and g.target.id == node.id for up in lists for g in up.generators)


def _is_rest(state: State, node: ast.expr) -> bool:
    """True for `n % ranks`, by a name too, and for the second part of `divmod`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod)
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    if len(bound) != 1 or bound[0].value is None:
        return False
    value = bound[0].value
    if bound[0].part:
        return isinstance(value, ast.Call) and dotted(value.func) == "divmod"
    return (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod)) or _is_difference(value)


def _is_difference(value: ast.expr) -> bool:
    """True for `n - base * ranks`."""
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and isinstance(value.right, ast.BinOp) and isinstance(
        value.right.op, ast.Mult
    )  # fmt: skip
