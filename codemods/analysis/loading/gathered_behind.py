"""Lists with an entry for each sample of a prepared loader, which `accelerator.gather` joins behind the evaluation loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.loading.gathered_rounds import is_cut, trains_in
from codemods.analysis.loading.padded_counts import evaluates, trains
from codemods.analysis.loading.prepared_rounds import is_prepared
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.paths import unpacked
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_KEEPS_COUNT = frozenset({"mean", "sum", "to", "cuda", "cpu", "float", "double"})  # each entry counts in what they give
_MADE_OF_LIST = frozenset({"tensor", "as_tensor", "stack", "cat", "FloatTensor"})


@record
class Behind:
    """call: the gather. entries: the list that it joins. loop: what fills it."""

    call: ast.Call
    entries: str
    loop: ast.For


def gathered_behind(project: Project, module: SourceModule) -> Iterator[Behind]:
    """The first one of each loop."""
    told: set[int] = set()
    for call in module.calls_named("gather"):
        entries = _list_in(module, call)
        if entries is None or not isinstance(call.func, ast.Attribute) or not is_accelerator(project, module, call.func.value):
            continue
        loop = _filled_by(module, call, entries)
        if loop is None or id(loop) in told:
            continue
        if not is_prepared(project, module, unpacked(loop.iter), loop) and left(
            module, call, "{} is no prepared loader", loop.iter
        ):
            continue
        cut = is_cut(module, call) or isinstance(module.parent(call), ast.Subscript)
        if module.holds(b"drop_last=True") or (cut and left(module, call, "what is over is cut off")):
            continue
        told.add(id(loop))
        yield Behind(call, entries, loop)


def _list_in(module: SourceModule, call: ast.Call) -> str | None:
    """The list of which the gathered tensor is made: `torch.tensor(rows)`, by its name too, and `torch.tensor(rows).mean()`."""
    given: ast.expr | None = _taken_from(call.args[0]) if len(call.args) == 1 else None
    if isinstance(given, ast.Name):
        value = only_value(bindings_in(module, module.function_of(call), given.id))
        given = _taken_from(value) if value is not None else None
    if not isinstance(given, ast.Call) or not given.args or not isinstance(given.args[0], ast.Name):
        return None
    name = qualified(module, given.func)
    if not name.startswith("torch.") or last(name) not in _MADE_OF_LIST:
        return None
    line = module.statement_of(call).lineno  # which may give the name the result
    bound = bindings_in(module, module.function_of(call), given.args[0].id)
    starts = [b.value for b in bound if getattr(b.node, "lineno", 0) < line and not isinstance(b.node, ast.AugAssign)]
    empty = all(isinstance(s, ast.List) and not s.elts for s in starts)
    return given.args[0].id if starts and empty else None


def _taken_from(node: ast.expr) -> ast.expr:
    """`torch.tensor(rows)` of `torch.tensor(rows).mean().to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_COUNT:
        node = node.func.value
    return node


def _filled_by(module: SourceModule, call: ast.Call, entries: str) -> ast.For | None:
    """The loop over batches above the call that puts an entry for each sample into the list, and nothing else does."""
    function, found = module.function_of(call), set()
    adds = [c for name in ("append", "extend") for c in module.calls_named(name) if isinstance(c.func, ast.Attribute)]
    for add in adds:
        if module.function_of(add) is function and isinstance(add.func, ast.Attribute) and dotted(add.func.value) == entries:
            found.add(_batches_round(module, add))
    for more in module.nodes(ast.AugAssign):
        if module.function_of(more) is function and dotted(more.target) == entries:
            found.add(_round_of_more(module, more))
    loop = found.pop() if len(found) == 1 else None
    if loop is None or (loop.end_lineno or 0) >= call.lineno or trains(loop):
        return None
    quiet = any(isinstance(up, ast.With) and _is_quiet(up) for up in module.ancestors(loop))
    scope = function if function is not None else module.tree
    return loop if quiet or (evaluates(module, scope) and function is not None and not trains_in(function)) else None


def _batches_round(module: SourceModule, add: ast.Call) -> ast.For | None:
    """The loop over batches round a call that adds one entry a sample: `append` in a loop over the batch, or `extend`."""
    loops = [up for up in module.ancestors(add) if isinstance(up, ast.For)]
    of_batch = isinstance(add.func, ast.Attribute) and add.func.attr == "extend"
    outer = loops[0 if of_batch else 1] if len(loops) > (0 if of_batch else 1) else None
    if outer is None or of_batch:
        return outer
    made = {n.id for n in walk(outer) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return outer if any(isinstance(n, ast.Name) and n.id in made for n in walk(loops[0].iter)) else None


def _round_of_more(module: SourceModule, more: ast.AugAssign) -> ast.For | None:
    """The loop over batches round `rows += [score(p, y) for p, y in zip(out, labels)]`, an entry for each sample."""
    loop = next((up for up in module.ancestors(more) if isinstance(up, ast.For)), None)
    if loop is None or not isinstance(more.op, ast.Add) or not isinstance(more.value, ast.ListComp):
        return None
    made = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    generators = more.value.generators
    of_batch = any(isinstance(n, ast.Name) and n.id in made for n in walk(generators[0].iter))
    return loop if of_batch and len(generators) == 1 and not generators[0].ifs else None


def _is_quiet(block: ast.With) -> bool:
    managers = (i.context_expr for i in block.items)
    return any(last(dotted(m.func if isinstance(m, ast.Call) else m)) in ("no_grad", "inference_mode") for m in managers)
