"""Schedules that count the batches of a whole data set, which a DistributedSampler shares out over the ranks.

`steps = epochs * len(data) // batch_size`, and below `DataLoader(data, sampler=DistributedSampler(data), batch_size=batch_size)`:
with N processes each rank comes to an Nth of these steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, bindings_of
from codemods.analysis.loading.samplers import is_loader
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.schedules import PROCESSES, Length, Schedule, lengths, makes_schedule
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_NUMBERS = frozenset({"len", "int", "float", "round", "ceil", "floor", "max", "min"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEPTH = 5


@record
class OfWhole:
    """length: the argument that counts the batches of `data`. loader: what shares them out. step: where the schedule moves on."""

    schedule: Schedule
    length: Length
    counted: ast.Call
    loader: ast.Call
    step: ast.Call


def whole_set_schedules(project: Project, module: SourceModule) -> Iterator[OfWhole]:
    if not module.holds(b"DistributedSampler") or not module.holds(b"len("):
        return
    for call in module.nodes(ast.Call):
        if not makes_schedule(module, call):
            continue
        schedule = Schedule(module, call, call, call)
        step = _step_of_batches(module, call)
        for length in lengths(project, schedule) if step is not None else ():
            if step is not None and not length.is_warm_up and not length.scaled:
                for counted, loader in _shared_out(project, module, length):
                    yield OfWhole(schedule, length, counted, loader, step)


def _step_of_batches(module: SourceModule, made: ast.Call) -> ast.Call | None:
    """Where the schedule is moved on, in the loop that goes back through the model."""
    assign = module.parent(made)
    name = dotted(assign.targets[0]) if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else ""
    if any(name == dotted(given) for call in module.calls_named("prepare") for given in call.args):
        return None  # Accelerate steps it once for each process
    for call in module.calls_named("step") if name else ():
        if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != name:
            continue
        loop = next((up for up in module.ancestors(call) if isinstance(up, _LOOPS)), None)
        inside = [n for n in walk_scope(loop) if isinstance(n, ast.Call)] if loop is not None else []
        inner = {id(n) for n in (walk_scope(loop) if loop is not None else ()) if isinstance(n, _LOOPS) and n is not loop}
        plain = [c for c in inside if not any(id(up) in inner for up in module.ancestors(c))]
        if any(isinstance(c.func, ast.Attribute) and c.func.attr in BACKWARDS for c in plain):
            return call
    return None


def _shared_out(project: Project, module: SourceModule, length: Length) -> Iterator[tuple[ast.Call, ast.Call]]:
    """(`len(data)`, the loader) where one rank's loader takes batches of the size that the length is divided by."""
    parts = list(_parts(module, length.node, 0))
    measured = [n for n in parts if isinstance(n, ast.Call) and dotted(n.func) == "len" and n.args]
    named = [dotted(n) for n in parts if isinstance(n, (ast.Name, ast.Attribute))]
    unread = [n for n in parts if isinstance(n, ast.Call) and last(dotted(n.func)) not in _NUMBERS]
    if len(measured) != 1 or unread or any(map(PROCESSES.search, named)):
        return
    counted = measured[0]
    divided = (n.right for n in parts if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.FloorDiv)))
    sizes = {dotted(n) for right in divided for n in walk(right)} - {""}
    if any(_is_divided_somewhere(project, last(name)) for name in sizes):
        return
    for loader in module.calls_named("DataLoader"):
        data, size = _given(loader, 0, "dataset"), _given(loader, 1, "batch_size")
        if data is None or size is None or dotted(data) != dotted(counted.args[0]) or dotted(size) not in sizes:
            continue
        if not is_loader(module, loader) or module.function_of(loader) is not module.function_of(counted):
            continue
        if _has_own_part(module, loader, data):
            yield counted, loader
            return


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    found = next((k.value for k in call.keywords if k.arg == name), None)
    return found if found is not None else (call.args[place] if len(call.args) > place else None)


def _parts(module: SourceModule, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """What the length is made of, and what the names and settings in it were given above; not what a set or a function is."""
    yield node
    if isinstance(node, (ast.Name, ast.Attribute)):
        for value in _written_above(module, node) if depth < _DEPTH else ():
            yield from _parts(module, value, depth + 1)
    elif isinstance(node, ast.Call):
        for given in node.args if dotted(node.func) != "len" else ():
            yield from _parts(module, given, depth)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _parts(module, child, depth)


def _written_above(module: SourceModule, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        found = [b.value for b in bindings_of(module, node) if b.value is not None and not b.part]
    else:
        name = dotted(node)
        found = [a.value for a in module.nodes(ast.Assign) if any(dotted(t) == name for t in a.targets)]
    return [value for value in found if value.lineno < node.lineno]


def _has_own_part(module: SourceModule, loader: ast.Call, data: ast.expr) -> bool:
    """True for a loader that is handed a DistributedSampler over its own data set, whatever else in another run."""
    given = next((k.value for k in loader.keywords if k.arg == "sampler"), None)
    made = [given] if given is not None else []
    if isinstance(given, ast.Name):
        made = [b.value for b in bindings_in(module, module.function_of(loader), given.id) if b.value is not None]
    samplers = (n for value in made for n in walk(value) if isinstance(n, ast.Call) and n.args)
    return any(last(qualified(module, s.func)) == "DistributedSampler" and dotted(s.args[0]) == dotted(data) for s in samplers)


def _is_divided_somewhere(project: Project, name: str) -> bool:
    """True where a line of the project divides the size of a batch by something: it may be that of all processes at first."""

    def build() -> bool:
        pattern = re.compile(rb"\b" + name.encode() + rb"\b\s*(//?=|=[^=\n]*/)")
        lines = (line for path in project.files_containing(name.encode()) for line in (project.read(path) or b"").splitlines())
        return any(pattern.search(line) and PROCESSES.search(line.decode("utf-8", "replace")) for line in lines)

    return project.keep(("a batch that is divided", name), build)
