"""Collectives that a called function keeps to rank 0 by a test of its own: whoever calls it, no other rank waits there."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_guards import Ranks, guards_over
from codemods.analysis.variance.state import Meeting
from codemods.files.source import SourceModule, once_a_module
from codemods.store.project import Project

_ONE = frozenset({Ranks.ZERO, Ranks.LOCAL_ZERO})


def is_kept_to_one_rank(project: Project, meeting: Meeting) -> bool:
    """True where a step behind the first, which is in a called function, stands under a test that rank 0 alone passes."""
    return any(_is_guarded(project, step.path, step.line) for step in meeting.steps[1:])


def _is_guarded(project: Project, path: str, line: int) -> bool:
    def build() -> bool:
        module = project.module(path)
        calls = _calls(module).get(line, []) if module is not None else []
        return any(g.ranks in _ONE for c in calls if module is not None for g in guards_over(module, c, project=project))

    return project.keep(("kept to one rank", path, line), build)


@once_a_module
def _calls(module: SourceModule) -> dict[int, list[ast.Call]]:
    found: dict[int, list[ast.Call]] = {}
    for call in module.nodes(ast.Call):
        found.setdefault(call.lineno, []).append(call)
    return found
