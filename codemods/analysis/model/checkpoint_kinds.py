"""The kind of activation checkpointing on a model's way to the loss, and the edits that make it the one DDP's search can see."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import torch_pin
from codemods.analysis.model.model_usage import Usage
from codemods.analysis.names import qualified
from codemods.api.findings import Edit, SetKeyword
from codemods.data.find_unused_parameters import REENTRANT_CHOICE_FROM
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

CALLS = ("checkpoint", "checkpoint_sequential")
MOST_CALLS = 8


@record
class CheckpointRepairs:
    """What makes every reentrant checkpoint of a model the other kind.

    edits: none where there is nothing to repair, or it cannot be. refused: why it cannot. said: what the edits do and take for
    granted.
    """

    edits: tuple[Edit, ...] = ()
    refused: str = ""
    said: str = ""


def checkpoint_calls(module: SourceModule) -> list[ast.Call]:
    """The calls of torch's checkpointing that are, or may be, of the reentrant kind."""
    calls = [c for c in module.calls_named(*CALLS) if qualified(module, c.func).startswith("torch.utils.checkpoint.")]
    return [c for c in calls if not _is_other_kind(c)]


def choice_of(call: ast.Call) -> ast.keyword | None:
    """The argument that says the kind; one without a name where it is among `**options` or positional."""
    for keyword in call.keywords:
        if keyword.arg == "use_reentrant" or keyword.arg is None:
            return keyword
    by_position = getattr(call.func, "attr", getattr(call.func, "id", "")) == "checkpoint_sequential" and len(call.args) > 3
    return ast.keyword(None, call.args[3]) if by_position else None


def _is_other_kind(call: ast.Call) -> bool:
    given = choice_of(call)
    return given is not None and isinstance(given.value, ast.Constant) and not given.value.value


def is_open(call: ast.Call) -> bool:
    """True where something else than the call decides the kind."""
    given = choice_of(call)
    return given is not None and not (given.arg and isinstance(given.value, ast.Constant))


def checkpoint_repairs(project: Project, usage: Usage) -> CheckpointRepairs:
    """`use_reentrant=False` at every checkpoint that may stand in the way of the flag.

    One on the model's way is not alone: a part that is chosen elsewhere may hold another, so all of the project's own go along.
    """
    if not usage.checkpoints:
        return CheckpointRepairs()
    text = f"reentrant checkpointing ({usage.checkpoints[0]}) fails with the flag on: use_reentrant=False first"
    places = _everywhere(project)
    if places is None or not set(usage.checkpoints) <= {f"{m.path}:{c.lineno}" for m, c in places}:
        return CheckpointRepairs(refused=text)
    pins = [torch_pin(project, near=module.path) for module, _ in places]
    if any(pin is not None and pin.surely_below(REENTRANT_CHOICE_FROM) for pin in pins) or any(is_open(c) for _, c in places):
        return CheckpointRepairs(refused=text)
    edits = tuple(SetKeyword(m.path, m.span(call), "use_reentrant", "False") for m, call in places)
    where = usage.checkpoints[0] + (f" and {len(edits) - 1} more" if len(edits) > 1 else "")
    said = f"reentrant checkpointing ({where}) fails with the flag on: use_reentrant=False is written along with it"
    pinned = all(pin is not None and pin.surely_at_least(REENTRANT_CHOICE_FROM) for pin in pins)
    assumed = "" if pinned else "; assumes torch 1.11 or newer, which the project does not pin"
    return CheckpointRepairs(edits, "", f"{said}{assumed}")


def _everywhere(project: Project) -> list[tuple[SourceModule, ast.Call]] | None:
    """The project's calls that may be reentrant, its tests left out; None where they are too many for one fix."""

    def search() -> list[tuple[SourceModule, ast.Call]] | None:
        out: list[tuple[SourceModule, ast.Call]] = []
        for path in sorted({p for name in CALLS for p in project.files_calling(name) if not is_test_file(p)}):
            module = project.module(path)
            out += [(module, call) for call in checkpoint_calls(module)] if module is not None else []
        return out if len(out) <= MOST_CALLS else None

    return project.memo("reentrant checkpoints", search)
