"""Imports of a part of the project that has moved: its old folder is gone, and the other programs import it from the new one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from posixpath import basename, dirname

from codemods.analysis.distribution import is_test_file
from codemods.analysis.ranks.top_imports import brought_in, has_at_top
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project

# Where a folder may be named that is fetched, built or installed.
_NAMING = (".md", ".rst", ".txt", ".sh", ".toml", ".cfg", ".yml", ".yaml", "Makefile", "Dockerfile", ".gitignore", ".gitmodules",
           "setup.py")  # fmt: skip
_MOST = 200


def has_moved(project: Project, module: SourceModule, source: str, name: str) -> bool:
    """True for `from data.parts import Parts` where no `data` is left, and programs import the same name from `data2.parts`."""
    parts = source.split(".")
    if name and len(parts) == 1 and parts[0]:
        return _has_moved_down(project, module, source, name)
    if not name or len(parts) < 2 or not all(parts) or parts[0] in sys.stdlib_module_names:
        return False
    end = f"{parts[-1]}.py"
    meant = [p for p in project.python_files if basename(p) == end]
    if not meant or len(meant) > 3 or any(f"/{parts[0]}/" in f"/{p}" or basename(p) == f"{parts[0]}.py" for p in project.files):
        return False
    having = [p for p in meant if (other := project.module(p)) is not None and has_at_top(other, name)]
    if not having or not any(_is_imported_from(project, p, module.path, parts[-1], name) for p in having):
        return False
    return not _is_spoken_of(project, parts[0]) and not any(_users(project, module.path, parts[0]))


def _has_moved_down(project: Project, module: SourceModule, stem: str, name: str) -> bool:
    """True for `from parts import Parts` where `lib/parts.py` is the only one, and others beside this say `lib.parts`."""
    meant = [p for p in project.files if f"/{stem}/" in f"/{p}" or basename(p).partition(".")[0] == stem]
    if stem in sys.stdlib_module_names or len(meant) != 1 or not meant[0].endswith(f"/{stem}.py") or module.holds(b"sys.path"):
        return False
    folder = dirname(meant[0])
    if folder == dirname(module.path) or f"{folder}/setup.py" in project.files or _is_searched(project):
        return False
    other = project.module(meant[0])
    if other is None or not has_at_top(other, name) or any(_users(project, module.path, stem)):
        return False
    return _is_imported_from(project, meant[0], module.path, stem, name, below=dirname(module.path))


def _is_searched(project: Project) -> bool:
    """True where a text tells Python to look in more folders."""
    return any(project.files_containing(word, kinds=_NAMING) for word in (b"PYTHONPATH", b"package_dir"))


def _is_imported_from(project: Project, path: str, but: str, stem: str, name: str, below: str | None = None) -> bool:
    """True where a program other than `but` imports the name from the file. below: one of this folder, by a dotted name."""
    for user in project.files_importing(stem):
        other = project.module(user) if user != but and b"__main__" in (project.read(user) or b"") else None
        for source, brought in brought_in(other) if other is not None else ():
            if below is not None and (dirname(user) != below or "." not in source):
                continue
            found = project.resolve(source, user) if brought == name else None
            if found is not None and found.path == path and not found.rest:
                return True
    return False


def _is_spoken_of(project: Project, folder: str) -> bool:
    """True where a text or a list of packages has the name of the folder in a place that may fetch or install it."""
    word = re.escape(folder.encode())
    brought = rb"(?:git clone|git submodule|pip3? install|wget|unzip|mkdir|ln -s)[^\n]*\b" + word + rb"\b"
    listed = rb"^[ \t/*-]*" + word + rb"(?![\w-])"
    fetched = re.compile(rb"(?m)" + brought + rb"|" + listed)
    paths = [p for p in project.files if p.endswith(_NAMING)]
    return len(paths) > _MOST or any(fetched.search(project.read(p) or b"") for p in paths)


def _users(project: Project, but: str, folder: str) -> Iterator[str]:
    """Other files that import from the folder at their top: where all do, it lies elsewhere."""
    imported = re.compile(rb"(?m)^(?:from|import)[ \t]+" + re.escape(folder.encode()) + rb"\b")
    for kinds in ((".py",), (NOTEBOOK,)):
        for path in project.files_containing(folder.encode(), kinds=kinds):
            if path != but and not is_test_file(path) and imported.search(project.read(path) or b""):
                yield path
