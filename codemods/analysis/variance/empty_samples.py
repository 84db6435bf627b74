"""Does a test ask whether one sample of a batch has none of what it is to have: `len(boxes) == 0` of one of the targets?

All ranks have as many samples in a batch. How many boxes one sample has is the matter of that sample, and so the rank's own.
Only tests for none are meant: what is padded has one length in the whole batch, and is never empty.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import How, Kind, Proof, Value, at_most, plain
from codemods.files.source import walk
from codemods.runtime.record import replace

_STEPS = 4
_NONE = {0: (ast.Eq, ast.NotEq, ast.Gt, ast.LtE), 1: (ast.Lt, ast.GtE)}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def emptiness_of_sample(state: State, test: ast.Compare) -> Value | None:
    """What the test decides, where it asks for an empty sample; None for any other test."""
    counted = _counted(test)
    if counted is None or not _is_of_sample(state, counted, _STEPS):
        return None
    held = state.value(counted)
    if not (held.is_of_own_data or held.params) or held.mean or held.thing is not None:
        return None
    return at_most(replace(plain(held), sized=False), Proof.LIKELY)


def _counted(test: ast.Compare) -> ast.expr | None:
    """`x` of `len(x) == 0`, `len(x) < 1`, `x.numel() > 0`, `x.shape[0] == 0`."""
    bound = test.comparators[0]
    if len(test.ops) > 1 or not isinstance(bound, ast.Constant) or bound.value.__class__ is not int:
        return None
    if not isinstance(test.ops[0], _NONE.get(bound.value, ())):
        return None
    left = test.left
    if isinstance(left, ast.Call) and dotted(left.func) == "len" and len(left.args) == 1:
        return left.args[0]
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr in ("numel", "nelement", "size"):
        first = not left.args if left.func.attr != "size" else bool(left.args) and _is_number(left.args[0], 0)
        return left.func.value if first else None
    if isinstance(left, ast.Subscript) and isinstance(left.value, ast.Attribute) and left.value.attr == "shape":
        return left.value.value if _is_number(left.slice, 0) else None
    return None


def _is_of_sample(state: State, node: ast.expr, steps: int) -> bool:
    """True for one element of a part of a batch, and for what stands in it under a key: `targets[0]["boxes"]`."""
    if steps == 0:
        return False
    if isinstance(node, ast.Attribute):
        return _is_of_sample(state, node.value, steps - 1)
    if isinstance(node, ast.Subscript):
        by_key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return _is_of_sample(state, node.value, steps - 1) if by_key else _is_number(node.slice) and _is_part(state, node.value)
    if not isinstance(node, ast.Name):
        return False
    for up in state.module.ancestors(node):
        for part in up.generators if isinstance(up, _COMPREHENSIONS) else ():
            if _names(part.target, node.id):
                return (source := _handed_out(part.target, part.iter, node.id)) is not None and _is_part(state, source)
    bound = bindings_of(state.module, node)
    return bool(bound) and all(_gives_sample(state, b, node.id, steps - 1) for b in bound)


def _gives_sample(state: State, bound: Binding, name: str, steps: int) -> bool:
    if isinstance(bound.node, ast.For):
        source = _handed_out(bound.node.target, bound.node.iter, name)
        return source is not None and _is_part(state, source)
    return bound.value is not None and not bound.part and _is_of_sample(state, bound.value, steps)


def _is_part(state: State, node: ast.expr) -> bool:
    """True for `targets` of `for images, targets in loader`, of `images, targets = batch`, and for `batch["targets"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_batch(state, node.value)
    if not isinstance(node, ast.Name):
        return False
    bound = bindings_of(state.module, node)
    anew = [b for b in bound if _is_made_of_each(b.value, node.id)]
    return len(anew) < len(bound) and all(b in anew or _gives_part(state, b, node.id) for b in bound)


def _is_made_of_each(value: ast.expr | None, name: str) -> bool:
    """True for `[t.to(device) for t in targets]`: as many elements, each made of one."""
    if not isinstance(value, ast.ListComp) or len(value.generators) > 1:
        return False
    return isinstance(value.generators[0].iter, ast.Name) and value.generators[0].iter.id == name


def _gives_part(state: State, bound: Binding, name: str) -> bool:
    if isinstance(bound.node, ast.For):
        target, source = _round(bound.node)
        return isinstance(target, (ast.Tuple, ast.List)) and _names(target, name) and _is_loader(state, source)
    if bound.value is None:
        return False
    if bound.part:
        return _is_batch(state, bound.value)
    return isinstance(bound.value, ast.Subscript) and _is_part(state, bound.value)


def _is_batch(state: State, node: ast.expr) -> bool:
    """True for what one round of a loop over a loader is handed as a whole, and for the batch of a step."""
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    if not isinstance(node, ast.Name) or len(bound) != 1:
        return False
    if bound[0].parameter:
        origin = state.value(node).origin
        return origin is not None and origin.how is How.OF_STEP
    if not isinstance(bound[0].node, ast.For):
        return False
    target, source = _round(bound[0].node)
    return isinstance(target, ast.Name) and target.id == node.id and _is_loader(state, source)


def _is_loader(state: State, source: ast.expr) -> bool:
    """True for a loader, and for a parameter: what callers hand over decides whether what it gives is the rank's own."""
    if isinstance(source, ast.Name) and state.is_parameter(source.id):
        return True
    return isinstance(source, (ast.Name, ast.Attribute)) and state.value(source).kind is Kind.LOADER


def _round(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """(what a round is handed, what it is taken from), without the counter of `enumerate`."""
    target, source = loop.target, loop.iter
    counted = any(isinstance(c, ast.Call) and last(dotted(c.func)) == "enumerate" for c in (source, *walk(source)))
    if counted and isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
        target = target.elts[1]
    elif counted:
        return source, source  # the pair itself
    return target, unpacked(source)


def _handed_out(target: ast.expr, source: ast.expr, name: str) -> ast.expr | None:
    """What a loop takes the elements from that a name is given: `targets` of `for image, t in zip(images, targets)`."""
    if isinstance(source, ast.Call) and source.args:
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if dotted(source.func) == "enumerate" and len(elements) == 2:
            return _handed_out(elements[1], source.args[0], name)
        if dotted(source.func) == "zip" and len(elements) == len(source.args):
            found = (given for element, given in zip(elements, source.args, strict=True) if dotted(element) == name)
            return next(found, None)
        return None
    return source if isinstance(target, ast.Name) and target.id == name else None


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in (target, *walk(target)))


def _is_number(node: ast.expr, number: int | None = None) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return value.__class__ is int and (number is None or value == number)
