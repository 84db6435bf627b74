"""Schedules that a Trainer of transformers is handed, and whose length counts the steps of one process's run.

The Trainer prepares the model and the optimizer, and steps the scheduler itself, once for each step of the optimizer. It shares
the data out over the processes: with N of them an epoch has an Nth of the steps that one has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.class_index import Role, external_role
from codemods.analysis.loading.origins import origins_of_part
from codemods.analysis.names import qualified
from codemods.analysis.schedules import Counted, Length, Schedule, lengths, makes_schedule
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# What a batch or a number of steps of all processes may be called.
_OF_ALL = lazy(r"(?i)total|global|effective|world|device_count|n_?gpu|num_gpus|num_process|max_steps|estimated")
_DEPTH = 4


@record
class OfOne:
    """trainer: what takes the schedule. length: the argument that counts one process's steps."""

    trainer: ast.Call
    schedule: Schedule
    length: Length


def trainer_schedules(project: Project, module: SourceModule) -> Iterator[OfOne]:
    for call in module.nodes(ast.Call):
        given = next((k.value for k in call.keywords if k.arg == "optimizers"), None)
        if given is None or external_role(qualified(module, call.func)) is not Role.HF_TRAINER:
            continue
        for origin in origins_of_part(project, module, given, 1):
            made = origin.node
            if not origin.known or origin.path or not isinstance(made, ast.Call) or not makes_schedule(origin.module, made):
                continue
            if origin.module is not module:
                continue
            schedule = Schedule(module, made, call, given)
            for length in lengths(project, schedule):
                if not length.is_warm_up and not length.scaled and _is_of_one(project, module, length):
                    yield OfOne(call, schedule, length)


def _is_of_one(project: Project, module: SourceModule, length: Length) -> bool:
    """True for `len(data) // batch_size * epochs`, where no part is said to be that of all processes."""
    return length.counted is Counted.UNSHARDED and not any(map(_OF_ALL.search, _names(module, length.node, 0)))


def _names(module: SourceModule, node: ast.expr, depth: int) -> Iterator[str]:
    """Every name that a length is worked out of; what it is called itself says nothing (`total_steps`)."""
    for part in walk(node):
        if not isinstance(part, (ast.Name, ast.Attribute)):
            continue
        bound = [b.value for b in name_or_field_bindings(module, part) if b.value is not None and not b.part]
        if part is not node or not bound:
            yield part.id if isinstance(part, ast.Name) else part.attr
        for value in bound if depth <= _DEPTH else ():
            yield from _names(module, value, depth + 1)
