"""Copies of an installed package in a folder, that no import reaches: `import clip` beside them means the installed one.

Python looks for an absolute import in the folder of the program and among what is installed, not beside the file that imports.
"""

from __future__ import annotations

from posixpath import basename, dirname

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import pinned_packages
from codemods.analysis.requirement_files import normalized
from codemods.files.source import SourceModule
from codemods.store.project import Project

_PATHS = (b"sys.path", b"addsitedir")
_KINDS = (".sh", ".md", ".yaml", ".yml", ".toml", ".cfg", ".slurm", ".sbatch", "Makefile", "Dockerfile")


def is_hidden(project: Project, module: SourceModule) -> bool:
    """True for a file of a package of the project that nothing but such imports names, and of which no file is a program."""
    top = _top_of(project, module.path)
    return bool(top) and project.keep(("hidden package", top), lambda: _is_hidden(project, top))


def _top_of(project: Project, path: str) -> str:
    """The outermost folder round a file that is a package of its own, below another folder; "" for none."""
    top, folder = "", dirname(path)
    while folder and f"{folder}/__init__.py" in project.files:
        top, folder = folder, dirname(folder)
    return top if folder else ""


def _is_hidden(project: Project, top: str) -> bool:
    inside = [p for p in project.python_files if p.startswith(f"{top}/")]
    if any(b"__main__" in (project.read(p) or b"") for p in inside):
        return False
    users = [p for p in project.files_importing(basename(top)) if not p.startswith(f"{top}/")]
    named = [p for p in users if any(_means(project, p, top, source) for source in _sources(project, p))]
    if not named or not all(dirname(p) == dirname(top) for p in named):
        return False
    absolute = all(s.split(".")[0] == basename(top) for p in named for s in _sources(project, p) if _means(project, p, top, s))
    return absolute and _is_installed(project, top, users) and not _is_on_the_path(project, dirname(top))


def _sources(project: Project, path: str) -> list[str]:
    """What a file imports, wherever the import stands."""
    module = project.module(path)
    found = module.imports.values() if module is not None else ()
    return sorted({i.dotted for imported in found for i in imported})


def _means(project: Project, path: str, top: str, source: str) -> bool:
    found = project.resolve(source, path)
    return found is not None and found.path.startswith(f"{top}/")


def _is_installed(project: Project, top: str, users: list[str]) -> bool:
    """True where a pin names such a package, or a file elsewhere imports it, from where the folder is not seen."""
    name = basename(top)
    if any(p == normalized(name) or p.endswith(f"-{normalized(name)}") for p in pinned_packages(project)):
        return True  # `openai-clip` brings `clip`
    outside = (p for p in users if not is_test_file(p) and not p.startswith(f"{dirname(top)}/"))
    return any(s.split(".")[0] == name and project.resolve(s, p) is None for p in outside for s in _sources(project, p))


def _is_on_the_path(project: Project, folder: str) -> bool:
    """True where a program stands in the folder, or something puts folders on the path."""
    beside = (p for p in project.python_files if dirname(p) == folder)
    if any(b"__main__" in (project.read(p) or b"") for p in beside):
        return True
    if any(project.files_containing(word) for word in _PATHS):
        return True
    return bool(project.files_containing(b"PYTHONPATH", kinds=_KINDS))
