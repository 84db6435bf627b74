"""Where the dotted name of an import leads to: a file of the project, and what is left of the name."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from posixpath import basename, dirname, join, normpath

from codemods.files.import_statements import imported_names
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact


@record
class Resolved:
    """A project file that an import leads to, and the names still to be looked up in it."""

    path: str
    rest: tuple[str, ...]


def folders_above(path: str) -> Iterator[str]:
    """The folder of a file and those above it, the root of the project last."""
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""


def below(files: Container[str], base: str, parts: tuple[str, ...], *, allow_base: bool) -> Resolved | None:
    """The longest beginning of `parts` that is a package or a module below `base`. allow_base: else that folder itself."""
    for used in range(len(parts), -1 if allow_base else 0, -1):
        stem = "/".join((base, *parts[:used]) if base else parts[:used])
        for path in (join(stem, "__init__.py") if stem else "__init__.py", f"{stem}.py"):  # as Python, the package first
            if path in files:
                return Resolved(path, parts[used:])
    return None


def relative(files: Container[str], dotted: str, importer: str) -> Resolved | None:
    """Where `..module.name` leads from a file."""
    level = len(dotted) - len(dotted.lstrip("."))
    parts = tuple(p for p in dotted.lstrip(".").split(".") if p)
    base = normpath(join(dirname(importer), *[".."] * (level - 1))) if level > 1 else dirname(importer)
    return below(files, "" if base == "." else base, parts, allow_base=True) if not base.startswith("..") else None


def absolute(files: Container[str], parts: tuple[str, ...], importer: str) -> Resolved | None:
    """Where an absolute name leads: beside the importer, in the folders above it, below `src`."""
    best: Resolved | None = None
    for root in (*folders_above(importer), "src"):
        found = below(files, root, parts, allow_base=False)
        # a file that bears its package's name (`planner/model/planner.py`) must not hide the package
        if found is not None and (best is None or len(found.rest) < len(best.rest)):
            best = found
        if best is not None and len(best.rest) < 2:
            break
    return best


def first_names(python_files: Collection[str]) -> frozenset[str]:
    """The names that an absolute import of the project's own can begin with: those of its files and folders."""
    folders = {dirname(path) for path in python_files}
    names = {name for folder in folders for name in folder.split("/")}
    return frozenset(names | {basename(path).removesuffix(".py") for path in python_files})


def holders(python_files: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The name of a package or module -> the folders below the root in which one lies."""
    found: dict[str, set[str]] = {}
    for path in python_files:
        folder, name = dirname(path), basename(path).removesuffix(".py")
        while folder:
            found.setdefault(name, set()).add(folder)
            folder, name = dirname(folder), basename(folder)
    return {name: tuple(sorted(folders)) for name, folders in found.items()}


@file_fact
def absolute_imports(path: str, data: bytes) -> frozenset[tuple[str, str]]:
    """The first two parts of each name that is imported as a whole path: (torch, nn)."""
    del path
    found = (name.split(".") for name in imported_names(data) if not name.startswith("."))
    return frozenset((parts[0], parts[1] if len(parts) > 1 else "") for parts in found)
