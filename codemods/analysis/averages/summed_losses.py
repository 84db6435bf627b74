"""Losses that a training loop sums over the ranks for its log, and that nothing divides by their number.

Each rank's loss is a mean over its own batch, for DDP averages the gradients: the sum over the ranks is as many times too large
as there are. The way from the reduction to the log is read in one function: the copy of the loss, the sum, the meter or the log.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.outlets import says_shown
from codemods.analysis.wrapped.losses import backward_passes
from codemods.files.source import SourceModule, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_COPIES = frozenset({"clone", "detach", "float", "mean", "data", "to", "cuda"})
_READS = frozenset({"item", "detach", "cpu", "float", "numpy", "tolist"})
_LOSS = lazy(r"(?i)loss")
_DIVIDES = lazy(r"(?i)world|num_processes|n_?gpu|size\(\)|average|avg|mean")
_SUMS = lazy(rb"reduction\s*=\s*[\"']sum[\"']")
_DEPTH = 4


@record
class SummedLoss:
    """reduced: the sum over the ranks. name: what is summed. shown: the statement that takes it. loss: what goes backward."""

    reduced: ast.Call
    name: str
    shown: ast.Call
    loss: str
    backward: ast.Call


def summed_losses(project: Project, module: SourceModule) -> Iterator[SummedLoss]:
    if _SUMS.search(module.data):
        return
    passes = {id(module.function_of(b.call)): b for b in backward_passes(module)}
    for call in module.calls_named("all_reduce"):
        one = passes.get(id(module.function_of(call)))
        if one is None or not call.args or not isinstance(call.args[0], ast.Name) or not _adds(module, call):
            continue
        name = call.args[0]
        loss = _copied(module, name, call)
        if not loss or loss not in _terms(module, one.loss) or not _LOSS.search(loss):
            continue
        if _is_scaled(project, module, loss, call) or (shown := _shown(module, name, call)) is None:
            continue
        yield SummedLoss(call, name.id, shown, loss, one.call)


def _adds(module: SourceModule, call: ast.Call) -> bool:
    """True for the sum of torch over all ranks."""
    if not qualified(module, call.func).startswith("torch.distributed"):
        return False
    rest = [*call.args[1:], *(k.value for k in call.keywords if k.arg != "async_op")]
    return not rest or all(last(dotted(r)) == "SUM" for r in rest)


def _copied(module: SourceModule, name: ast.Name, call: ast.Call) -> str:
    """The name of which it is a copy without gradients, made once or right above the sum; "" for anything else."""
    function = module.function_of(name)
    bound = [b for b in bindings_of(module, name) if module.function_of(b.node) is function]
    if len(bound) > 1:  # `loss = loss.detach().clone()` over `dist.all_reduce(loss)`
        above = _statement_above(module, call)
        changed_below = any(getattr(b.node, "lineno", 0) > call.lineno for b in bound)  # `loss /= world_size`
        bound = [b for b in bound if b.node is above and not changed_below]
    if len(bound) != 1 or bound[0].value is None or bound[0].part:
        return ""
    node: ast.expr = bound[0].value
    steps = set()
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES and not node.args:
            steps.add(node.func.attr)
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            steps.add("detach")
            node = node.value
        else:
            break
    return node.id if isinstance(node, ast.Name) and steps & {"clone", "detach"} else ""


def _statement_above(module: SourceModule, call: ast.Call) -> ast.stmt | None:
    statement = module.statement_of(call)
    up = module.parent(statement)
    for body in (getattr(up, field, None) for field in ("body", "orelse")):
        if isinstance(body, list) and statement in body and body.index(statement):
            above = body[body.index(statement) - 1]
            return above if isinstance(above, ast.stmt) else None
    return None


def _terms(module: SourceModule, node: ast.expr, depth: int = 0) -> frozenset[str]:
    """The names that a loss is a sum of, and those of what these are given."""
    names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
    out = set(names)
    for name in (n for n in walk(node) if isinstance(n, ast.Name) and depth < _DEPTH):
        function = module.function_of(name)
        for bound in bindings_of(module, name):
            if isinstance(bound.value, (ast.BinOp, ast.Name)) and module.function_of(bound.node) is function:
                out |= _terms(module, bound.value, depth + 1)
    return frozenset(out)


def _is_scaled(project: Project, module: SourceModule, loss: str, call: ast.Call) -> bool:
    """True where the loss is divided by something that may be the number of processes, where it is made or changed."""
    function = module.function_of(call)
    for read in module.reads_of(loss):
        if isinstance(read, ast.Name) and module.function_of(read) is function:
            up = module.parent(read)
            if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.Mult)) and _is_count(module, up):
                return True
    names = [n for n in module.nodes(ast.Name) if n.id == loss and module.function_of(n) is function]
    for bound in bindings_of(module, names[0]) if names else ():
        if isinstance(bound.node, ast.AugAssign) and _DIVIDES.search(module.text_of(bound.node)):
            return True
        for inner in walk(bound.value) if bound.value is not None and not _is_nothing(bound.value) else ():
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
                return True
            if isinstance(inner, ast.Attribute) and inner.attr == "sum":
                return True
            if isinstance(inner, ast.Call) and (site := called_function(project, module, inner)) is not None:
                if any(is_process_count_in(site.module, n) for n in walk(site.node) if isinstance(n, ast.expr)):
                    return True
    return False


def _is_nothing(node: ast.expr) -> bool:
    """True for `0 * x.sum()`, which keeps parameters in the graph."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else ()
    return any(isinstance(s, ast.Constant) and s.value == 0 for s in sides)


def _is_count(module: SourceModule, node: ast.BinOp) -> bool:
    return any(is_process_count_in(module, side) for side in (node.left, node.right))


def _shown(module: SourceModule, name: ast.Name, call: ast.Call) -> ast.Call | None:
    """The call that shows it or puts it into a meter; None where something divides it on the way, or nobody shows it."""
    function = module.function_of(call)
    found: ast.Call | None = None
    for read in module.reads_of(name.id):
        if not isinstance(read, ast.Name) or module.function_of(read) is not function or not stands_above(call, read):
            continue
        node: ast.AST = read
        up = module.parent(node)
        while isinstance(up, ast.Attribute) and up.attr in _READS:
            node = module.parent(up) or up
            up = module.parent(node)
        if not isinstance(up, ast.Call) or node not in up.args or len(up.args) + len(up.keywords) > 3:
            return None
        meter = last(dotted(up.func)) == "update" and len(up.args) == 1 and not up.keywords
        if not meter and not says_shown(up):
            return None
        if meter and isinstance(up.func, ast.Attribute) and _is_divided(module, dotted(up.func.value)):
            return None
        found = found or up
    return found


def _is_divided(module: SourceModule, meter: str) -> bool:
    """True where the file divides what the meter gives, or nothing reads it."""
    reads = [r for r in module.reads_of(last(meter)) if dotted(r) == meter]
    for read in reads:
        up = module.parent(read)
        holder = module.parent(up) if isinstance(up, ast.Attribute) else up
        if isinstance(holder, ast.BinOp) and isinstance(holder.op, (ast.Div, ast.Mult)):
            return True
    return not meter or len(reads) < 2
