"""Schedules that count optimizer steps, are not prepared, and are stepped with every micro batch of an accumulation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import accumulating, accumulation, made_by
from codemods.analysis.loading.origins import origins
from codemods.analysis.names import dotted, last
from codemods.analysis.schedules import makes_schedule
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Unprepared:
    """step: where it is stepped; made: what makes it; prepared: the `prepare` that leaves it out, if the file has one."""

    step: ast.Call
    made: ast.Call
    prepared: ast.Call | None


def unprepared_schedules(project: Project, module: SourceModule) -> Iterator[Unprepared]:
    prepares = module.calls_named("prepare")
    for block in module.nodes(ast.With) if module.holds(b".accumulate(") else ():
        opened = accumulating(project, module, block)
        if opened is None or not isinstance(opened.func, ast.Attribute):
            continue
        told = [accumulation(project, m) for m in made_by(project, module, opened.func.value)]
        every = {last(dotted(given[1])) for given in told if given is not None}
        for call in (n for n in walk_scope(block) if isinstance(n, ast.Call) and last(dotted(n.func)) == "step"):
            if not isinstance(call.func, ast.Attribute) or _asks_first(module, call, block):
                continue
            name = dotted(call.func.value)
            if not name or any(name in {dotted(a) for a in p.args} for p in prepares):
                continue
            found = origins(project, module, call.func.value)
            made = [o for o in found if o.known and not o.path and isinstance(o.node, ast.Call)]
            if len(found) == 1 and len(made) == 1 and isinstance(made[0].node, ast.Call):
                if makes_schedule(made[0].module, made[0].node) and _counts_steps(made[0].node, every - {""}):
                    yield Unprepared(call, made[0].node, prepares[0] if prepares else None)


def _asks_first(module: SourceModule, call: ast.Call, block: ast.With) -> bool:
    """True under any test inside the block: it may let the last micro batch through alone."""
    for up in module.ancestors(call):
        if up is block:
            return False
        if isinstance(up, ast.If):
            return True
    return False


def _counts_steps(made: ast.Call, every: set[str]) -> bool:
    """True where a length of it is divided by the number of accumulation steps."""
    parts = (n for n in walk(made) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.FloorDiv)))
    return any(last(dotted(n.right)) in every for n in parts)
