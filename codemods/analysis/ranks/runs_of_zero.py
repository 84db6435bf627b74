"""`wandb.run` as a test of the rank: where rank 0 alone starts a run of Weights & Biases, it is None in every other process."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.distribution import is_own_test
from codemods.analysis.importing import imported_files
from codemods.analysis.names import qualified
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.files.source import SourceModule
from codemods.store.corpus import calls
from codemods.store.project import Project

_OF_ZERO = frozenset({Ranks.ZERO, Ranks.LOCAL_ZERO})


def start_on_zero(
    project: Project, module: SourceModule, node: ast.Attribute, ranks_at: Callable[[SourceModule, ast.AST], Ranks]
) -> tuple[SourceModule, ast.Call, Ranks] | None:
    """Where rank 0 starts the run that `wandb.run` is, if neither the file nor what it imports starts one on another rank."""
    if node.attr != "run" or qualified(module, node) != "wandb.run":
        return None
    starts = _all_starts(project)
    if all(home is not module for home, _ in starts):
        return None  # who started it before this file is imported is not known
    near = imported_files(project, module)
    found = [(home, call, ranks_at(home, call)) for home, call in starts if home.path in near]
    ranks = {where for _, _, where in found}
    return found[0] if len(ranks) == 1 and ranks <= _OF_ZERO else None


def _all_starts(project: Project) -> list[tuple[SourceModule, ast.Call]]:
    return project.memo("starts of runs", lambda: list(_find(project)))


def _find(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    for path in project.files_containing(b"wandb"):
        if is_own_test(project, path) or not calls(project.read(path) or b"", b"init") or (home := project.module(path)) is None:
            continue
        yield from ((home, call) for call in home.calls_named("init") if qualified(home, call.func) == "wandb.init")
