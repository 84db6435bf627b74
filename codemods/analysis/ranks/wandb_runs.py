"""Who has a run of Weights & Biases: `if wandb.run:` lets rank 0 alone in, where rank 0 alone starts one.

Every start counts that may be of one program with the place: one that is not seen under a test of the rank gives the others a
run, too, and one that is switched off is a run as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_own_test
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.plain_ranks import plain_ranks
from codemods.analysis.ranks.rank_sets import Ranks, Split
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.uses import CallSite, calls_of, constructions
from codemods.data.rank_names import LOCAL_DECORATORS, ZERO_DECORATORS
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.corpus import calls
from codemods.store.project import Project

_OF_ZERO = frozenset({Ranks.ZERO, Ranks.LOCAL_ZERO})
_CLIMBS = 3

Says = Callable[[SourceModule, ast.expr], Split | None]


def split_of_run(module: SourceModule, node: ast.AST, project: Project | None, says: Says) -> Split | None:
    """What it says of ranks that `wandb.run` is there; None for anything else, and where other ranks may start a run.

    says: what a test says of ranks that asks for no run. Rank 0 itself may have none.
    """
    if project is None or not isinstance(node, ast.Attribute) or node.attr != "run" or qualified(module, node) != "wandb.run":
        return None

    def build() -> Ranks | None:
        starts = _starts_beside(project, module.path)
        found = {_ranks_of(project, s.module, s.call, says, _CLIMBS) for s in starts if not is_of_one_process(s.module, s.call)}
        return found.pop() if len(found) == 1 and found <= _OF_ZERO else None

    ranks = project.memo(("ranks with a run of wandb", module.path), build)
    return Split(ranks, Ranks.UNKNOWN, alone=False) if ranks is not None else None


def _starts_beside(project: Project, path: str) -> list[CallSite]:
    """The starts that a program may come to in which this file has a part."""
    return [s for s in _starts(project) if s.module.path == path or _may_meet(project, s, path)]


def _may_meet(project: Project, start: CallSite, path: str) -> bool:
    """False where the start is that of another program: its file takes nothing of this one, and is run by itself."""
    home = start.module.path
    if path in whole_program(project, home):
        return True
    importers = (p for p in project.files_importing(stem_of(home)) if p != home and not is_own_test(project, p))
    imported = any(home in whole_program(project, p) for p in importers)
    return imported and _comes_from_outside(project, start.module, start.call, _CLIMBS)


def _comes_from_outside(project: Project, module: SourceModule, node: ast.AST, climbs: int) -> bool:
    """True where somebody who imports the file may come to a place of it."""
    home = module.function_of(node)
    if home is None:
        return not any(is_main_block(up) for up in module.ancestors(node))
    if not climbs or isinstance(module.parent(home), ast.ClassDef):
        return True
    sites = calls_of(project, module, home)
    if sites is None or any(s.module is not module for s in sites):
        return True
    return any(_comes_from_outside(project, module, s.call, climbs - 1) for s in sites)


def _starts(project: Project) -> list[CallSite]:
    return project.memo("starts of wandb", lambda: list(_find_starts(project)))


def _find_starts(project: Project) -> Iterator[CallSite]:
    for path in project.files_containing(b"wandb"):
        if is_own_test(project, path) or not calls(project.read(path) or b"", b"init"):
            continue
        if (module := project.module(path)) is None:
            continue
        for call in module.calls_named("init"):
            if qualified(module, call.func) == "wandb.init" or "wandb" in dotted(call.func):
                yield CallSite(module, call)


def _ranks_of(project: Project, module: SourceModule, node: ast.AST, says: Says, climbs: int) -> Ranks:
    """The ranks that come to a place, by plain tests: those round it, else those round every call of its function."""

    def told(test: ast.expr) -> Split | None:
        return says(module, test)

    here = plain_ranks(module, node, told)
    home = module.function_of(node)
    if here.some or home is None:
        return here
    if (decorated := _decorated(module, home)) is not None:
        return decorated
    sites = _callers(project, module, home) if climbs else ()
    found = {_ranks_of(project, s.module, s.call, says, climbs - 1) for s in sites if not is_of_one_process(s.module, s.call)}
    return found.pop() if len(found) == 1 else Ranks.UNKNOWN if found else Ranks.ALL


def _decorated(module: SourceModule, function: FunctionNode) -> Ranks | None:
    names = {last(qualified(module, d.func if isinstance(d, ast.Call) else d)).lstrip("_") for d in function.decorator_list}
    if names & ZERO_DECORATORS:
        return Ranks.ZERO
    return Ranks.LOCAL_ZERO if names & LOCAL_DECORATORS else None


def _callers(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    owner = module.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return calls_of(project, module, function) or ()
    made = constructions(project, module, owner)
    return made.calls if made is not None and not made.more and not made.handed_on else ()
