"""Epochs that are worked out of a loader's length before Accelerate shares the loader out over the processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import made_by
from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.schedules import PROCESSES
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class EpochsBefore:
    """epochs: the statement that works them out; length: the `len(loader)` in it; steps: the number of steps that is divided."""

    epochs: ast.Assign
    length: ast.Call
    steps: ast.expr
    prepared: ast.Call
    loop: ast.For


def epochs_before_prepare(project: Project, module: SourceModule) -> Iterator[EpochsBefore]:
    """`epochs = ceil(max_steps / len(loader))` above `loader = accelerator.prepare(loader)`, and a loop over them below."""
    for call in module.calls_named("prepare") if module.holds(b"len(") and module.holds(b"range(") else ():
        assign = module.parent(call)
        if not isinstance(assign, ast.Assign) or not isinstance(call.func, ast.Attribute):
            continue
        again = bound_again(assign, call)
        for loop in module.nodes(ast.For):
            if module.function_of(loop) is not module.function_of(call) or loop.lineno <= call.lineno:
                continue
            sources = (inner.iter for inner in walk(loop) if isinstance(inner, ast.For))
            gone = again & {n.id for source in sources for n in walk(source) if isinstance(n, ast.Name)}
            found = _worked_out(module, call, loop, gone) if gone else None
            if found is not None and shares_out(project, module, call.func.value):
                yield found


def bound_again(assign: ast.Assign, call: ast.Call) -> set[str]:
    """The names that `prepare` is given and whose results go by the same name."""
    target = assign.targets[0]
    targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if len(targets) != len(call.args):
        return set()
    return {t.id for t, a in zip(targets, call.args, strict=True) if isinstance(t, ast.Name) and dotted(a) == t.id}


def _worked_out(module: SourceModule, prepared: ast.Call, loop: ast.For, loaders: set[str]) -> EpochsBefore | None:
    if not isinstance(loop.iter, ast.Call) or dotted(loop.iter.func) != "range" or not loop.iter.args:
        return None
    function = module.function_of(loop)
    epochs = _only(module, function, loop.iter.args[1 if len(loop.iter.args) > 1 else 0])
    if epochs is None or epochs.lineno >= prepared.lineno or PROCESSES.search(module.text_of(epochs)):
        return None
    for division in (n for n in walk(epochs.value) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.FloorDiv))):
        if not dotted(division.left):
            continue
        for part in _parts(module, function, division.right):
            if PROCESSES.search(module.text_of(part)):
                return None
            for call in (n for n in walk(part) if isinstance(n, ast.Call)):
                if dotted(call.func) == "len" and len(call.args) == 1 and dotted(call.args[0]) in loaders:
                    counted = _only(module, function, division.left)
                    if counted is None or "len(" not in module.text_of(counted):
                        return EpochsBefore(epochs, call, division.left, prepared, loop)
    return None


def _parts(module: SourceModule, function: FunctionNode | None, node: ast.expr) -> Iterator[ast.expr]:
    """The divisor, and what its names are given, each once and for good."""
    yield node
    for name in (n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n)):
        only = _only(module, function, name)
        if only is not None:
            yield only.value


def _only(module: SourceModule, function: FunctionNode | None, node: ast.expr) -> ast.Assign | None:
    """The one statement that gives a name, or a setting, its value; None under a test, and where there are several."""
    name = dotted(node)
    if not name:
        return None
    if isinstance(node, ast.Name):
        found = [b.node for b in bindings_in(module, function, node.id)]
    else:
        found = [a for a in module.nodes(ast.Assign) for t in a.targets if dotted(t) == name]
    body = function.body if function is not None else module.tree.body
    only = found[0] if len(found) == 1 else None
    return only if isinstance(only, ast.Assign) and only in body and len(only.targets) == 1 else None


def shares_out(project: Project, module: SourceModule, accelerator: ast.expr) -> bool:
    """False where the batches of the loader are split in place of being dealt out: its length stays."""
    made = made_by(project, module, accelerator)
    return bool(made) and not any(
        m.keyword("split_batches") is not None or m.keyword("dataloader_config") is not None or m.hides for m in made
    )
