"""What a file imports, directly or not, and which files may get names of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codemods.files.import_statements import imported_names, stem_of
from codemods.files.source import SourceModule
from codemods.store.file_facts import file_fact
from codemods.store.project import Project


def imports_of(project: Project, path: str) -> frozenset[str]:
    """The names that a file imports, told from its bytes once: files of a common name are asked for again and again."""
    return project.fact(_imported, path)


def names_of_imports(module: SourceModule) -> set[str]:
    """What the import statements of a file name: modules, and things of them."""
    return {i.dotted for found in module.imports.values() for i in found} | set(module.imported_modules)


def users_of(project: Project, path: str) -> tuple[str, ...]:
    """The files that name this one in an import, without those of which each such import leads to another of its name."""
    return project.keep(("users of", path), lambda: tuple(p for p in _by_name(project, path) if _may_lead(project, p, path)))


def _by_name(project: Project, path: str) -> Iterator[str]:
    return (p for p in project.files_importing(stem_of(path)) if p != path)


def _may_lead(project: Project, importer: str, path: str) -> bool:
    """False where every import of the file's name is seen to mean another file, or a package of others.

    True for an import in a form that is not read here, and for one that a longer search path may lead to the file.
    """
    stem = stem_of(path)
    own = path.removesuffix(".py").removesuffix("/__init__").split("/")
    inside = path.removesuffix("__init__.py") if path.endswith("/__init__.py") else path
    is_read = False
    for name in imports_of(project, importer):
        parts = name.lstrip(".").split(".")
        if stem not in parts:
            continue
        is_read = True
        if (found := project.resolve(name, importer)) is not None:
            if found.path.startswith(inside):
                return True
        elif not name.startswith(".") and (named := parts[: parts.index(stem) + 1]) == own[-len(named) :]:
            return True
    return not is_read


def imported_files(project: Project, module: SourceModule) -> frozenset[str]:
    """The project files that are imported when this one is, itself included."""

    def build() -> frozenset[str]:
        queue = [module]
        seen = {module.path}
        while queue:
            importer = queue.pop()
            for name in names_of_imports(importer):
                resolved = project.resolve(name, importer.path)
                if resolved and resolved.path not in seen and (inner := project.module(resolved.path)):
                    seen.add(resolved.path)
                    queue.append(inner)
        return frozenset(seen)

    return project.keep(("imported files", module.path), build)


def importers(project: Project, path: str) -> frozenset[str]:
    """The files of which an import may bring in names of this one: they name it, or a package that hands its names on.

    Also those with a star import, which may bring in what another file has from this one.
    """
    return project.keep(("importers", path), lambda: frozenset((*_naming(project, path), *project.files_containing(b"import *"))))


def users_by_step(project: Project, path: str, left_out: Callable[[str], bool]) -> Iterator[list[str]]:
    """The file; those that name it in an import; those that name one of these; and so on, each file once."""
    known, found = {path}, [path]
    while found:
        yield found
        stems = {stem_of(p) for p in found}
        found = sorted({u for stem in stems for u in project.files_importing(stem) if u not in known and not left_out(u)})
        known.update(found)


def _naming(project: Project, path: str) -> Iterator[str]:
    """The files that name the module, and those that name a package round it which does so itself.

    `from .net.net import Net` in `nets/__init__.py` passes the package between them by.
    """
    parts = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
    levels, seen = [len(parts)], set[int]()
    while levels:
        level = levels.pop()
        seen.add(level)
        naming = project.files_importing(parts[level - 1])
        yield from naming
        above = (up for up in range(1, level) if up not in seen and up not in levels)
        levels += [up for up in above if f"{'/'.join(parts[:up])}/__init__.py" in naming]


@file_fact
def _imported(path: str, data: bytes) -> frozenset[str]:
    del path
    return imported_names(data)
