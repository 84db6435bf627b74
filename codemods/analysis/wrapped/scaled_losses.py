"""Losses that are divided by the processes before a backward that averages over them, and divisors that are summed over ranks.

DDP averages the gradients of the ranks. A loss that is a rank's own mean is right as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in, bindings_of, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.losses import Backward, is_quiet
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_WORLD = frozenset({"world_size", "num_processes", "get_world_size"})
_SAME = frozenset({"mean", "sum", "unsqueeze", "squeeze", "to", "float", "cuda", "contiguous", "view", "reshape"})
_ALIAS = frozenset({"to", "cuda", "detach", "view", "squeeze", "unsqueeze", "contiguous", "data"})
_COUNT = lazy(r"^(n|num|total|count|denom\w*|norm\w*|avg_factor)(_|$)|(_num|_count|boxes|tokens|samples)$")
_LOSSY = lazy(r"loss|criterion")
_PROCESSES = lazy(r"world_?size|num_processes|num_gpus|n_?gpus?\b|n_?procs\b")
_EVALUATES = lazy(r"eval|valid|test|infer|metric|accuracy")
_DEPTH = 3


@record
class Divided:
    """A loss that is divided by the number of processes. reduced: it was summed over the ranks in place above.

    averaged_by: the call, beside the backward pass, of the function that does both to a copy of what it is handed.
    counted: what the rank counts, times the number of processes: `len(batch) * world_size`.
    """

    module: SourceModule
    node: ast.BinOp | ast.AugAssign
    reduced: bool
    averaged_by: ast.Call | None = None
    counted: ast.expr | None = None


@record
class Aliased:
    """A tensor that is summed over the ranks in place, and is the one that the loss is divided by."""

    made: ast.expr
    name: str
    divisor: ast.expr
    reduced: ast.Call


@record
class Summed:
    """A count that is summed over the ranks, and divides a loss as it is. use: where it does."""

    name: str
    reduced: ast.Call
    use: ast.expr


def divided_by_processes(project: Project, one: Backward) -> Iterator[Divided]:
    """The divisions by the number of processes that the loss of a backward pass goes through."""
    seen: set[int] = set()
    yield from _follow(project, one.module, one.loss, seen, 0)


def _follow(project: Project, module: SourceModule, node: ast.AST, seen: set[int], depth: int) -> Iterator[Divided]:
    if id(node) in seen or depth > 2 * _DEPTH:
        return
    seen.add(id(node))
    if isinstance(node, ast.Name):
        for bound in _above(module, node):
            if isinstance(bound.node, ast.AugAssign):
                if isinstance(bound.node.op, ast.Div):
                    yield from _division(module, bound.node, bound.node.target, bound.node.value)
            elif bound.value is not None and not bound.part:
                yield from _follow(project, module, bound.value, seen, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        found = list(_division(module, node, node.left, node.right))
        yield from found or _follow(project, module, node.left, seen, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        if isinstance(node.op, ast.Mult) and any(is_world(module, side) for side in (node.left, node.right)):
            return
        yield from _follow(project, module, node.left, seen, depth)
        yield from _follow(project, module, node.right, seen, depth)
    elif isinstance(node, ast.Call):
        yield from _through_call(project, module, node, seen, depth)


def _division(
    module: SourceModule, node: ast.BinOp | ast.AugAssign, target: ast.expr, divisor: ast.expr
) -> Iterator[Divided]:
    if _is_shared(module, target, divisor, node):
        yield Divided(module, node, _is_reduced(module, target, node))
    elif (counted := _counts_all_ranks(module, divisor)) is not None and not is_quiet(module, node):
        yield Divided(module, node, reduced=False, counted=counted)


def _through_call(project: Project, module: SourceModule, call: ast.Call, seen: set[int], depth: int) -> Iterator[Divided]:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME:
        yield from _follow(project, module, call.func.value, seen, depth)
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and call.args:
        yield from _follow(project, module, call.args[0], seen, depth)
    elif (site := called_function(project, module, call)) is not None and site.node.name != "__init__":
        if not is_quiet(site.module, site.node):
            for value in returned(site.node, site.module):
                for found in _follow(project, site.module, value, seen, depth + 1):
                    copied = found.reduced and _is_copied(found, site.node)
                    yield replace(found, averaged_by=call if found.averaged_by or copied else None)


def _is_shared(module: SourceModule, target: ast.expr, divisor: ast.expr, at: ast.AST) -> bool:
    """True for a division by the number of processes that the gradient sees.

    Where the ranks' values were summed above, a word for it (`nprocs`) is enough.
    """
    if is_quiet(module, at):
        return False
    if is_world(module, divisor):
        return True
    return bool(_PROCESSES.search(last(dotted(divisor)).lower())) and _is_reduced(module, target, at)


def _counts_all_ranks(module: SourceModule, divisor: ast.expr) -> ast.expr | None:
    """`len(batch) * world_size`, be it under a name that has no other value."""
    if isinstance(divisor, ast.Name):
        value = only_value(bindings_of(module, divisor))
        return value if value is not None and _is_count_of_all(module, value) else None
    return divisor if _is_count_of_all(module, divisor) else None


def _is_count_of_all(module: SourceModule, node: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return any(is_world(module, one) and _is_own_count(other) for one, other in _both(node))


def _both(node: ast.BinOp) -> tuple[tuple[ast.expr, ast.expr], tuple[ast.expr, ast.expr]]:
    return (node.left, node.right), (node.right, node.left)


def _is_own_count(node: ast.expr) -> bool:
    """True for `len(x)`, `x.size(0)`, `x.shape[0]`: how many rows this rank has."""
    if isinstance(node, ast.Call):
        sized = isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel")
        return dotted(node.func) == "len" or sized
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def _is_copied(found: Divided, function: FunctionNode) -> bool:
    """True where the function sums a copy of its parameter over the ranks, and divides that: a `clone()` keeps the gradient."""
    target = found.node.target if isinstance(found.node, ast.AugAssign) else found.node.left
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args)}
    made = [b for b in bindings_in(found.module, function, dotted(target)) if not isinstance(b.node, ast.AugAssign)]
    values = [b.value for b in made if not b.parameter and not b.part]
    return bool(values) and all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "clone" and dotted(v.func.value) in names
        for v in values
    )


def _above(module: SourceModule, name: ast.Name) -> list[Binding]:
    """The last bindings of a name above its use: those in front of a whole new value do not count."""
    function = module.function_of(name)
    found = [b for b in bindings_of(module, name) if module.function_of(b.node) is function]
    return [b for b in reaching(module, name, found) if stands_above(b.node, name)]


def is_world(module: SourceModule, node: ast.expr) -> bool:
    """True for the number of processes: by its name, or a name that holds it."""
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in _WORLD and not node.args
    if last(dotted(node)) in _WORLD:
        return True
    if not isinstance(node, ast.Name):
        return False
    given = [b.value for b in bindings_of(module, node)]
    return bool(given) and all(isinstance(v, ast.Call) and last(dotted(v.func)) == "get_world_size" for v in given)


def _is_reduced(module: SourceModule, target: ast.AST, at: ast.AST) -> bool:
    """True if a call above reduces the name in place."""
    name, function = dotted(target), module.function_of(at)
    calls = (c for c in module.calls_named("all_reduce", "reduce") if module.function_of(c) is function)
    return any(c.args and dotted(c.args[0]) == name and stands_above(c, at) for c in calls)


# Divisors


def _summing(module: SourceModule) -> Iterator[tuple[ast.Call, ast.Name, FunctionNode]]:
    """`dist.all_reduce(x)` of a plain name, as a sum over all ranks, in a function that may make a loss."""
    for call in module.calls_named("all_reduce"):
        function = module.function_of(call)
        if function is None or not call.args or not isinstance(call.args[0], ast.Name) or is_quiet(module, call):
            continue
        if not qualified(module, call.func).startswith("torch.distributed"):
            continue
        rest = " ".join(module.text_of(a) for a in (*call.args[1:], *(k.value for k in call.keywords)))
        if "SUM" in rest or not any(word in rest for word in ("ReduceOp", "group", "op")):
            yield call, call.args[0], function


def aliased_divisors(module: SourceModule, passes: list[Backward]) -> Iterator[Aliased]:
    for call, name, function in _summing(module):
        made = [b.value for b in bindings_of(module, name) if b.value is not None and not b.part]
        base = _aliased(made[0]) if len(made) == 1 else None
        if base is None:
            continue
        text = module.text_of(base)
        for one in passes:
            if module.function_of(one.call) is not function or one.call.lineno <= call.lineno:
                continue
            for node in walk(one.loss):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and module.text_of(node.right) == text:
                    yield Aliased(made[0], name.id, node.right, call)


def _aliased(node: ast.expr) -> ast.expr | None:
    """What `out["n"].to(device)` may be the very tensor of; None for anything that makes a new one."""
    steps = 0
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ALIAS:
            if any(k.arg == "copy" for k in node.keywords):
                return None
            node, steps = node.func.value, steps + 1
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return node if steps or isinstance(node, (ast.Subscript, ast.Attribute)) else None
        else:
            return None


def summed_divisors(module: SourceModule) -> Iterator[Summed]:
    for call, name, function in _summing(module):
        owner = module.class_of(function)
        if not _COUNT.search(name.id) or _EVALUATES.search(function.name) or (owner and _EVALUATES.search(owner.name.lower())):
            continue
        if not _LOSSY.search(f"{owner.name if owner else ''} {function.name}".lower()):
            continue
        below = [n for n in walk_scope(function) if stands_above(call, n)]
        if any(_PROCESSES.search(_word(n)) for n in walk_scope(function)) or _has_other_sum(module, call, function):
            continue
        use = next((u for n in below if (u := _divides(module, n, name.id)) is not None), None)
        if use is not None:
            yield Summed(name.id, call, use)


def _word(node: ast.AST) -> str:
    return node.id.lower() if isinstance(node, ast.Name) else node.attr.lower() if isinstance(node, ast.Attribute) else ""


def _has_other_sum(module: SourceModule, call: ast.Call, function: FunctionNode) -> bool:
    """True where something else is reduced, too: a number to be shown, most of the time."""
    others = (c for c in module.calls_named("all_reduce", "reduce") if c is not call)
    return any(module.function_of(c) is function for c in others)


def _divides(module: SourceModule, node: ast.AST, name: str) -> ast.expr | None:
    """The use in which the count divides a loss, or goes to a function of a loss."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_count(node.right, name):
        return node.right if _LOSSY.search(module.text_of(module.statement_of(node)).lower()) else None
    if isinstance(node, ast.Call) and _LOSSY.search(last(dotted(node.func)).lower()):
        return next((a for a in (*node.args, *(k.value for k in node.keywords)) if dotted(a) == name), None)
    return None


def _is_count(node: ast.AST, name: str) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clamp", "item", "float"):
        node = node.func.value
    return dotted(node) == name
