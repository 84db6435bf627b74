"""As how many processes are the programs run that come to a place? Asked of what would be reported, for it follows many names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from codemods.analysis.importing import users_by_step
from codemods.analysis.job_files.documented_starts import is_apart, is_pinned_to_one, is_program, starts
from codemods.analysis.ranks.commands_of_one import is_of_commands_of_one
from codemods.analysis.ranks.program_starts import joins_at_most, start_of
from codemods.analysis.ranks.run_by_programs import Search, has_programs, is_no_program
from codemods.analysis.ranks.start_kinds import Start
from codemods.files.source import SourceModule
from codemods.store.project import Project

_MOST_PROGRAMS = 40
_MOST_FILES = 80  # that import a file, directly or over others


def started(project: Project, module: SourceModule, node: ast.AST) -> Start | None:
    """The surest start of the programs that come to `node`; None where no program is seen to.

    A folder of classes and functions alone counts as run on several: its programs stand elsewhere.
    """
    if not has_programs(project):
        return start_of(project, module) if _is_script_of_one(project, module) else Start.SEVERAL
    if is_of_commands_of_one(project, module, node):
        return Start.ONE
    search = _Starts(project)
    found = search.comes_to(module, node, shown=False)
    return Start.SEVERAL if found else search.best


def is_of_several(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a program comes to `node` that is run on several processes, as far as is seen."""
    start = started(project, module, node)
    return start is not None and start.is_several


def runs_on_several(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a program of several processes comes to `node`, on rank 0 alone as well."""
    return not has_programs(project) or _Starts(project, by_one=True).finds_several(module, node)


def runs_one_a_machine(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where each program of several processes that comes to `node` is started on one GPU of each machine alone.

    `CUDA_VISIBLE_DEVICES=0 python train.py --nodes 4`, and `spawn` in it, or a launcher with one process a machine: each rank has
    a console and a disk of its own.
    """
    if not any(s.apart for s in starts(project)) or not has_programs(project):
        return False
    return not _Starts(project, pinned=False).finds_several(module, node)


def _is_script_of_one(project: Project, module: SourceModule) -> bool:
    """True for a script that commands leave one process, and which no other file imports."""
    if not is_pinned_to_one(project, module.path):
        return False
    stem = module.path.removesuffix(".py").rpartition("/")[2]
    return not any(p != module.path for p in project.files_importing(stem))


class _Starts(Search):
    """Goes on until a program of several processes is found, and keeps the best of the others.

    pinned: with the programs that the texts leave one GPU.
    """

    def __init__(self, project: Project, *, pinned: bool = True, by_one: bool = False) -> None:
        super().__init__(project, presumed=False, by_one=by_one)
        self.best: Start | None = None
        self._pinned = pinned

    def finds_several(self, module: SourceModule, node: ast.AST) -> bool:
        """True where a program that comes to `node` is one of several processes, as far as is seen."""
        return self.comes_to(module, node, shown=False) or (self.best is not None and self.best.is_several)

    def _ends_at(self, module: SourceModule, shown: bool) -> bool:
        ask = partial(_start, self._project, pinned=self._pinned)
        return self._is_best(surest_above(self._project, module, ask))

    def _is_found_by_name(self, module: SourceModule, *, of_the_file: bool = False) -> bool:
        if of_the_file:
            return self._is_best(_start(self._project, module, pinned=self._pinned))
        return self._is_best(_best_of_all(self._project, pinned=self._pinned))

    def _is_best(self, start: Start | None) -> bool:
        if start is not None:
            self.best = start if self.best is None else max(self.best, start)
        return start is Start.SEVERAL


def _start(project: Project, program: SourceModule, *, pinned: bool) -> Start:
    if not pinned and is_apart(project, program.path, joins=joins_at_most(project, program)):
        return Start.ONE
    return start_of(project, program)


def surest_above(project: Project, module: SourceModule, ask: Callable[[SourceModule], Start]) -> Start | None:
    """What `ask` says of a file that is run, or the surest of the programs that import it, over as many files as it takes."""
    if is_program(project, module.path):
        return ask(module)
    best: Start | None = None
    seen = 0
    for found in users_by_step(project, module.path, lambda path: is_no_program(project, path)):
        seen += len(found)
        if seen > _MOST_FILES:
            return Start.SEVERAL
        for path in found:
            other = project.module(path) if is_program(project, path) else None
            if other is not None:
                best = max(best or Start.ONE, ask(other))
                if best is Start.SEVERAL:
                    return best
    return best if best is not None or seen > 1 else ask(module)


def _best_of_all(project: Project, *, pinned: bool) -> Start:
    """The surest start among the programs of the project: which of them names a thing by a text is not seen."""

    def build() -> Start:
        best = Start.ONE
        paths = [p for p in project.files_containing(b"__main__") if not is_no_program(project, p)]
        if len(paths) > _MOST_PROGRAMS:
            return Start.SEVERAL
        for path in sorted(paths):
            module = project.module(path)
            best = max(best, _start(project, module, pinned=pinned)) if module is not None else best
            if best is Start.SEVERAL:
                break
        return best

    return project.keep(("best start", pinned), build)
