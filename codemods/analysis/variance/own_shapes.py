"""Tensors whose shape is each rank's own: what a mask lets through, what is put together from a list of its own length."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import run_function
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.reaching import sure_binding
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.own_masks import is_mask
from codemods.analysis.variance.values import Cause, Value
from codemods.data.rank_variance import SELECTS
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record

_DEPTH = 6  # names and calls that are followed
# Of each element one comes out: a row stays a row.
_ELEMENTWISE = frozenset(
    {"to", "cpu", "cuda", "detach", "clone", "contiguous", "long", "int", "bool", "float", "double", "half", "type",
     "type_as", "sigmoid", "softmax", "log_softmax", "exp", "log", "abs", "relu", "tanh", "sqrt", "square", "pow", "flatten",
     "squeeze", "unsqueeze", "normalize", "requires_grad_", "clamp", "round", "tolist"}
)  # fmt: skip
_JOINS = frozenset({"cat", "concat", "stack", "vstack", "hstack", "concatenate"})
_MAKES = frozenset({"tensor", "as_tensor", "Tensor", "LongTensor", "FloatTensor", "IntTensor", "from_numpy", "array", "asarray"})
_NO_TENSOR = (".numpy()", "np.", "numpy.", ".tolist()")
_FILLS = frozenset({"append", "extend"})


class Why(Enum):
    PICKED = "picked"  # by the values of the own data
    SHARE = "share"  # of a list that is as long as the rank's share
    BINS = "bins"  # as many as the largest value that the rank has seen


@record
class OwnShape:
    """node: what makes the shape the rank's own, in `module`. value: what it differs by."""

    module: SourceModule
    node: ast.expr
    why: Why
    value: Value


@record
class Place:
    """Where an expression stands."""

    analysis: Analysis
    module: SourceModule
    function: FunctionNode | None

    def value(self, node: ast.expr) -> Value:
        return self.analysis.value(self.module, node)

    def found(self, node: ast.expr, why: Why, value: Value) -> OwnShape | None:
        own = value.differs and value.cause is Cause.DATA and not value.decided
        return OwnShape(self.module, node, why, value) if own else None


def own_shape(place: Place, node: ast.expr, depth: int = 0) -> OwnShape | None:
    """Where the shape of a tensor comes to differ between the ranks; None where that is not seen on the whole way."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Name):
        return _of_name(place, node, depth)
    if isinstance(node, ast.Subscript):
        return _of_part(place, node, depth)
    if isinstance(node, ast.BinOp):
        return own_shape(place, node.left, depth + 1) or own_shape(place, node.right, depth + 1)
    return _of_call(place, node, depth) if isinstance(node, ast.Call) else None


def _of_name(place: Place, node: ast.Name, depth: int) -> OwnShape | None:
    found = sure_binding(place.module, place.function, node)
    if found is None or found.value is None:
        return None
    if not found.part:
        return own_shape(place, found.value, depth + 1)
    index = _index_of(found.node, node.id)
    if index is None or not isinstance(found.value, ast.Call):
        return None
    return _given_back(place, found.value, index, depth)


def _index_of(statement: ast.AST, name: str) -> int | None:
    """The place of a name in `a, b = call()`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    names = [e.id if isinstance(e, ast.Name) else "" for e in target.elts] if isinstance(target, ast.Tuple) else []
    return names.index(name) if names.count(name) == 1 else None


# Parts


def _of_part(place: Place, node: ast.Subscript, depth: int) -> OwnShape | None:
    index = node.slice
    if isinstance(index, ast.Constant):  # `torch.where(mask)[0]`
        whole = node.value
        return _picked(place, whole, several=True) if isinstance(whole, ast.Call) else None
    if not _is_tensor(place, node.value, depth):
        return None
    if isinstance(index, ast.Slice):
        value = place.value(node)
        return place.found(node, Why.SHARE, value) if value.sized and not _is_cut(index) else None
    picks = [p for p in (index.elts if isinstance(index, ast.Tuple) else [index]) if not isinstance(p, (ast.Slice, ast.Constant))]
    if len(picks) != 1:
        return None
    if is_mask(place.module, place.function, picks[0]):
        return place.found(node, Why.PICKED, _mask_value(place, picks[0]))
    return own_shape(place, picks[0], depth + 1) if isinstance(picks[0], (ast.Name, ast.Call)) else None


def _is_cut(index: ast.Slice) -> bool:
    """True for `x[:100]`: to a length that is written out."""
    return isinstance(index.upper, ast.Constant)


def _mask_value(place: Place, mask: ast.expr) -> Value:
    """What a mask differs by: asked of the mask, and of what its name is given."""
    value = place.value(mask)
    if value.differs or not isinstance(mask, ast.Name):
        return value
    found = sure_binding(place.module, place.function, mask)
    return place.value(found.value) if found is not None and found.value is not None else value


def _is_tensor(place: Place, node: ast.expr, depth: int) -> bool:
    """False for an array of numpy and a list of Python: those are gathered as objects, or as something else by then."""
    text = place.module.text_of(node)
    if any(word in text for word in _NO_TENSOR):
        return False
    if not isinstance(node, ast.Name) or depth > _DEPTH:
        return True
    found = sure_binding(place.module, place.function, node)
    return found is None or found.value is None or _is_tensor(place, found.value, depth + 1)


def _picked(place: Place, call: ast.Call, *, several: bool = False) -> OwnShape | None:
    """`mask.nonzero()`, `torch.unique(x)`. several: one of the tensors that the call gives."""
    end = _end(call)
    if end == "where":
        picks = len(call.args) == 1 and not call.keywords and is_mask(place.module, place.function, call.args[0])
        return place.found(call, Why.PICKED, _mask_value(place, call.args[0])) if picks and several else None
    if end not in SELECTS or family(qualified(place.module, call.func)) in ("numpy", "pandas"):
        return None
    told = {k.arg for k in call.keywords}
    if several != bool(told & {"as_tuple", "return_counts", "return_inverse"}):
        return None
    return place.found(call, Why.PICKED, place.value(call))


# Calls


def _of_call(place: Place, node: ast.Call, depth: int) -> OwnShape | None:
    end = _end(node)
    picked = _picked(place, node)
    if picked is not None:
        return picked
    if end in _JOINS and node.args:
        return _of_list(place, node.args[0], depth)
    if end in _MAKES and node.args:
        return _of_list(place, node.args[0], depth) or own_shape(place, node.args[0], depth + 1)
    if end == "bincount" and not any(k.arg == "minlength" for k in node.keywords) and len(node.args) < 3:
        of_torch = qualified(place.module, node.func) == "torch.bincount" and len(node.args) == 1
        return place.found(node, Why.BINS, place.value(node.args[0])) if of_torch else None
    if end in ("view", "reshape") and isinstance(node.func, ast.Attribute) and node.args:
        lies_flat = ast.unparse(node.args[0]) == "-1"
        return own_shape(place, node.func.value, depth + 1) if lies_flat else None
    if end in _ELEMENTWISE:
        package = family(qualified(place.module, node.func)) == "torch"
        inner = node.args[0] if package and node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        return own_shape(place, inner, depth + 1) if inner is not None else None
    return _given_back(place, node, None, depth)


def _end(call: ast.Call) -> str:
    return last(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")


def _given_back(place: Place, call: ast.Call, index: int | None, depth: int) -> OwnShape | None:
    """What a function of the project gives back, or the element of it at that place."""
    picked = _picked(place, call, several=True) if index is not None else None
    site = run_function(place.analysis.project, place.module, call) if picked is None else None
    if site is None or depth > _DEPTH:
        return picked
    returns = [n.value for n in walk_scope(site.node) if isinstance(n, ast.Return) and n.value is not None]
    if len(returns) != 1:
        return None
    given = returns[0]
    if index is not None:
        if not isinstance(given, ast.Tuple) or index >= len(given.elts):
            return None
        given = given.elts[index]
    return own_shape(Place(place.analysis, site.module, site.node), given, depth + 1)


# Lists


def _of_list(place: Place, node: ast.expr, depth: int) -> OwnShape | None:
    """What is joined from a list whose length, or that of an element, is the rank's own."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return next((s for e in node.elts if (s := own_shape(place, e, depth + 1)) is not None), None)
    if isinstance(node, ast.Call) and _end(node) in (*_JOINS, *_MAKES) and node.args:
        return _of_list(place, node.args[0], depth + 1) if depth < _DEPTH else None
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        value = place.value(node)
        own = place.found(node, Why.SHARE, value) if value.sized else None
        return own or own_shape(place, node.elt, depth + 1)
    if not isinstance(node, ast.Name) or not _is_filled(place, node):
        return None
    value = place.value(node)
    if value.sized and (found := place.found(node, Why.SHARE, value)) is not None:
        return found
    return next((s for e in _elements(place, node.id) if (s := own_shape(place, e, depth + 1)) is not None), None)


def _is_filled(place: Place, name: ast.Name) -> bool:
    """True for a list that the function makes and fills itself."""
    bound = bindings_in(place.module, place.function, name.id)
    made = [b.value for b in bound if b.value is not None and not b.part]
    added = [b for b in bound if isinstance(b.node, ast.AugAssign)]
    lists = all(isinstance(v, (ast.List, ast.ListComp)) or (isinstance(v, ast.Call) and dotted(v.func) == "list") for v in made)
    return bool(made) and len(made) + len(added) == len(bound) and lists


def _elements(place: Place, name: str) -> Iterator[ast.expr]:
    """What is put into the list."""
    scope = walk_scope(place.function) if place.function is not None else walk(place.module.tree)
    for call in scope:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS and call.args:
            if dotted(call.func.value) == name:
                yield call.args[0]
