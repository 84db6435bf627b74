"""Schedules that `prepare` leaves out, and whose length is that of the whole loader: N processes make an Nth of it each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.constant_schedules import read_lengths
from codemods.analysis.epochs_before_prepare import bound_again, shares_out
from codemods.analysis.names import dotted, last
from codemods.analysis.schedules import Counted, Reading, Schedule, lengths, makes_schedule, speaks_of_processes
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_WHOLE = (Counted.UNSHARDED, Counted.EITHER)


@record
class TooLong:
    """length: the `len(loader)` that it is worked out of; step: where it moves on, once for each batch of a rank's share."""

    schedule: Schedule
    name: str
    length: ast.Call
    step: ast.Call


def left_out_schedules(project: Project, module: SourceModule) -> Iterator[TooLong]:
    """`scheduler = get_scheduler(…, len(loader) * epochs)` above `model, loader = accelerator.prepare(model, loader)`."""
    prepares = module.calls_named("prepare") if module.holds(b"len(") else ()
    if any(isinstance(a, ast.Starred) for call in prepares for a in call.args):
        return
    told: set[int] = set()
    for prepared in prepares:
        assign = module.parent(prepared)
        if not isinstance(assign, ast.Assign) or not isinstance(prepared.func, ast.Attribute):
            continue
        loaders = bound_again(assign, prepared)
        for made in (s for s in module.nodes(ast.Assign) if loaders and _same(module, s, assign) and s.lineno < assign.lineno):
            name = dotted(made.targets[0])
            if not name or id(made) in told or not isinstance(made.value, ast.Call) or not makes_schedule(module, made.value):
                continue
            if any(dotted(n) == name for call in prepares for a in call.args for n in walk(a)):
                continue
            schedule = Schedule(module, made.value, prepared, made.targets[0])
            step = _step(module, assign, name, loaders)
            length = _whole(project, schedule, loaders) if step is not None else None
            if step is not None and length is not None and shares_out(project, module, prepared.func.value):
                told.add(id(made))
                yield TooLong(schedule, name, length, step)


def _same(module: SourceModule, node: ast.AST, other: ast.AST) -> bool:
    return module.function_of(node) is module.function_of(other)


def _whole(project: Project, schedule: Schedule, loaders: set[str]) -> ast.Call | None:
    """The length of a loader that `prepare` takes below, where the whole way is counted by it and by no number of processes."""
    if speaks_of_processes(project, schedule):
        return None
    known = [n for n in read_lengths(project, schedule, lengths(project, schedule)) if not n.is_warm_up]
    if len(known) != 1 or known[0].counted not in _WHOLE:
        return None
    read = Reading(project)
    read.follow(schedule.module, known[0].node, 0)
    calls = [call for home, call in read.measured if home is schedule.module and _same(home, call, schedule.made)]
    named = bool(calls) and len(calls) == len(read.measured) and all(dotted(c.args[0]) in loaders for c in calls)
    return calls[0] if named else None


def _step(module: SourceModule, below: ast.Assign, name: str, loaders: set[str]) -> ast.Call | None:
    """The one step of the schedule, inside of a loop over the loader that `prepare` gave back, and of no other loop in that."""
    steps = [c for c in module.calls_named("step") if dotted(c.func) == f"{name}.step" and _same(module, c, below)]
    if len(steps) != 1 or steps[0].lineno < below.lineno:
        return None
    for up in module.ancestors(steps[0]):
        if isinstance(up, ast.With) and any(last(dotted(getattr(i.context_expr, "func", up))) == "accumulate" for i in up.items):
            return None  # `unprepared_schedules` speaks of these
        if isinstance(up, (ast.For, ast.While)):
            return steps[0] if isinstance(up, ast.For) and _goes_through(up.iter, loaders) else None
    return None


def _goes_through(node: ast.expr, loaders: set[str]) -> bool:
    """`loader`, `enumerate(loader)`, `tqdm(enumerate(loader))`."""
    while isinstance(node, ast.Call) and node.args and last(dotted(node.func)) in ("enumerate", "tqdm"):
        node = node.args[0]
    return dotted(node) in loaders
