"""Functions that an installed command runs: `fit = "pkg.cli:run"` of `[project.scripts]`, `console_scripts` of a set-up file."""

from __future__ import annotations

from posixpath import basename

from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WHERE = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
_COMMAND = lazy(rb"=\s*[\"']?([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def is_installed_command(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a function at the top of a file that a command runs which the project installs."""
    return module.parent(function) is module.tree and (module.path, function.name) in _commands(project)


def _commands(project: Project) -> frozenset[tuple[str, str]]:
    """(file, function) of each installed command."""

    def build() -> frozenset[tuple[str, str]]:
        texts = (project.read(path) or b"" for path in project.files if basename(path) in _WHERE)
        named = {(m[1].decode(), m[2].decode()) for text in texts for m in _COMMAND.finditer(text)}
        return frozenset((path, name) for dotted, name in named for path in _files_of(project, dotted))

    return project.keep("installed commands", build)


def _files_of(project: Project, dotted: str) -> list[str]:
    ends = (f"/{dotted.replace('.', '/')}.py", f"/{dotted.replace('.', '/')}/__init__.py")
    return [path for path in project.python_files if f"/{path}".endswith(ends)]
