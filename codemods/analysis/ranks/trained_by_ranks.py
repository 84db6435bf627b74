"""Is a program written to train on several processes, though no text starts it so? It joins a launcher's, wraps and deals out.

Of 21 reports on such programs that readers judged, who knew that nothing starts them on several, 19 were worth it; of
six on programs that only take over an option, or a start of a library, from another one, none was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_own_test
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.reached_scopes import inside, once_a_scope, reached
from codemods.analysis.ranks.run_by_programs import Search, has_programs
from codemods.analysis.ranks.seen_starts import surest_above
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.starting_calls import start_by
from codemods.analysis.wrapped.wraps import is_prepare, is_wrap
from codemods.files.source import SourceModule
from codemods.store.project import Project

_JOINS, _WRAPS, _DEALS, _TRAINS, _BY_TEXT = "joins", "wraps", "deals", "trains", "by text"
_ALL = frozenset({_JOINS, _WRAPS, _DEALS, _TRAINS})
_FOUND_BY_TEXT = frozenset({"import_module", "__import__", "instantiate", "get_class", "locate", "get_object"})
_WORDS = {_DEALS: b"DistributedSampler", _TRAINS: b"backward"}


def is_of_training_ranks(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where a program comes to `node` that trains on the ranks of a launcher, as soon as one starts it."""
    return has_programs(project) and _Training(project).comes_to(module, node, shown=False)


class _Training(Search):
    """Goes on until a program is found that is written for ranks."""

    def __init__(self, project: Project) -> None:
        super().__init__(project, presumed=False)

    def _ends_at(self, module: SourceModule, shown: bool) -> bool:
        return surest_above(self._project, module, self._start) is Start.SEVERAL

    def _start(self, program: SourceModule) -> Start:
        return Start.SEVERAL if trains_on_ranks(self._project, program) else Start.ONE

    def _is_found_by_name(self, module: SourceModule, *, of_the_file: bool = False) -> bool:
        return of_the_file and trains_on_ranks(self._project, module)


def trains_on_ranks(project: Project, program: SourceModule) -> bool:
    """True for a program that joins the ranks of a launcher, wraps a model for them, deals its data out, and trains."""
    return project.keep(("trains on ranks", program.path), lambda: _does_all(project, program))


def _does_all(project: Project, program: SourceModule) -> bool:
    done: set[str] = set()
    for module, scope in reached(project, program, None):
        done |= once_a_scope(project, module, scope, None, "done for ranks in", lambda p, m, s, _: _done_in(p, m, s))
        if done >= _ALL:
            return True
    return _BY_TEXT in done and all(deed in done or _is_anywhere(project, deed) for deed in _ALL)


def _is_anywhere(project: Project, deed: str) -> bool:
    """True where a file of the project does it: which of them a program loads that takes a name for a module is not seen."""
    return deed in _WORDS and any(not is_own_test(project, path) for path in project.files_containing(_WORDS[deed]))


def _done_in(project: Project, module: SourceModule, scope: ast.AST) -> frozenset[str]:
    return frozenset(
        deed for node in inside(module, scope) if isinstance(node, ast.Call) for deed in _deeds(project, module, node)
    )


def _deeds(project: Project, module: SourceModule, call: ast.Call) -> Iterator[str]:
    bare = call.func.attr if isinstance(call.func, ast.Attribute) else last(dotted(call.func))
    if is_wrap(module, call):
        yield _WRAPS
    elif is_prepare(module, call) or _sets_up(module, call):
        yield from (_JOINS, _WRAPS, _DEALS)
    elif bare == "DistributedSampler":
        yield _DEALS
    elif bare == "backward":
        yield _TRAINS
    elif bare in _FOUND_BY_TEXT:
        yield _BY_TEXT
    elif start_by(project, module, call) >= Start.JOINS:
        yield _JOINS


def _sets_up(module: SourceModule, call: ast.Call) -> bool:
    """True for `fabric.setup(model, optimizer)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("setup", "setup_dataloaders"):
        return False
    speaks = any(family(i.dotted) == "lightning" for found in module.imports.values() for i in found)
    return "fabric" in last(dotted(call.func.value)).lower() and speaks and bool(qualified(module, call.func))
