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

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)


def start_on_zero(
    project: Project, module: SourceModule, node: ast.Attribute, ranks_at: Callable[[SourceModule, ast.AST], Ranks]
) -> tuple[SourceModule, ast.Call, Ranks] | None:
    """Where rank 0 starts the run that `wandb.run` is, if nothing starts one on the other ranks.

    Asked are the starts of the file and of what it imports; of a file without any, those of the whole project.
    """
    if node.attr != "run" or qualified(module, node) != "wandb.run":
        return None
    found = [(home, call, ranks_at(home, call)) for home, call in _starts(project, module)]
    if not found or any(ranks not in _OF_ZERO for _, _, ranks in found) or len({ranks for _, _, ranks in found}) > 1:
        return None
    return found[0]


def _starts(project: Project, module: SourceModule) -> Iterator[tuple[SourceModule, ast.Call]]:
    starts = _all_starts(project)
    near = imported_files(project, module) if any(home is module for home, _ in starts) else None
    return ((home, call) for home, call in starts if near is None or home.path in near)


def _all_starts(project: Project) -> list[tuple[SourceModule, ast.Call]]:
    return project.memo("starts of runs", lambda: list(_find(project)))


def _find(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    for path in project.files_containing(b"wandb"):
        if is_own_test(project, path) or not calls(project.read(path) or b"", b"init") or (home := project.module(path)) is None:
            continue
        yield from ((home, call) for call in home.calls_named("init") if qualified(home, call.func) == "wandb.init")
