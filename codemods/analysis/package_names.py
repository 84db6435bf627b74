"""A package that gives a name which one of its files has, too: `from .evaluate import evaluate` in its `__init__.py`."""

from __future__ import annotations

from posixpath import basename, dirname, join

from codemods.store.import_targets import Resolved
from codemods.store.project import Project


def given_by_package(project: Project, found: Resolved) -> Resolved | None:
    """Where the import leads to a file: the package round it with the file's name, if the package speaks of that name.

    Python asks the package first: only where it holds nothing of that name is the file imported.
    """
    if found.rest:
        return None
    stem = dirname(found.path) if basename(found.path) == "__init__.py" else found.path.removesuffix(".py")
    package, name = join(dirname(stem), "__init__.py"), basename(stem)
    if package == found.path or package not in project.files or name.encode() not in (project.read(package) or b""):
        return None
    return Resolved(package, (name,))
