"""Does each rank log to a file of its own? Then a line of a logger is no repetition: a guard would only empty the other files."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.own_paths import is_own_path
from codemods.analysis.names import qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule
from codemods.store.project import Project

_OPEN_BY_NAME = {
    "logging.FileHandler": "filename",
    "logging.basicConfig": "filename",
    "logging.handlers.RotatingFileHandler": "filename",
    "logging.handlers.TimedRotatingFileHandler": "filename",
    "logging.handlers.WatchedFileHandler": "filename",
    "loguru.logger.add": "sink",
}
_WORDS = tuple(dict.fromkeys(name.rpartition(".")[2] for name in _OPEN_BY_NAME))


def has_log_file_of_each_rank(project: Project) -> bool:
    """True where every rank comes to a handler whose file is named by the rank, here or by what a caller gives."""
    return project.keep("log files by rank", lambda: any(_of_each_rank(project, m, c) for m, c in _handlers(project)))


def _handlers(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    paths = {p for word in _WORDS for p in project.files_containing(f"{word}(".encode()) if not is_test_file(p)}
    for path in sorted(paths):
        if (module := project.module(path)) is not None and (module.holds(b"logging") or module.holds(b"loguru")):
            yield from ((module, call) for call in module.calls_named(*_WORDS))


def _of_each_rank(project: Project, module: SourceModule, call: ast.Call) -> bool:
    path = _file(module, call)
    if path is None or isinstance(path, ast.Constant) or ranks_reaching(project, module, call).some:
        return False
    return is_own_path(project, module, path)


def _file(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The path that a handler opens."""
    name = qualified(module, call.func)
    keyword = _OPEN_BY_NAME.get(name)
    given = next((k.value for k in call.keywords if keyword and k.arg == keyword), None)
    if given is not None or keyword is None:
        return given
    return call.args[0] if call.args and name != "logging.basicConfig" else None
