"""Where the dotted name of an import leads to: a file of the project, and what is left of the name."""

from __future__ import annotations

from collections.abc import Container
from posixpath import join

from codemods.files.import_statements import imported_names
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact


@record
class Resolved:
    """A project file that an import leads to, and the names still to be looked up in it."""

    path: str
    rest: tuple[str, ...]


def below(files: Container[str], base: str, parts: tuple[str, ...], *, allow_base: bool) -> Resolved | None:
    """The longest beginning of `parts` that is a package or a module below `base`. allow_base: else that folder itself."""
    for used in range(len(parts), -1 if allow_base else 0, -1):
        stem = "/".join((base, *parts[:used]) if base else parts[:used])
        for path in (join(stem, "__init__.py") if stem else "__init__.py", f"{stem}.py"):  # as Python, the package first
            if path in files:
                return Resolved(path, parts[used:])
    return None


@file_fact
def absolute_imports(path: str, data: bytes) -> frozenset[tuple[str, str]]:
    """The first two parts of each name that is imported as a whole path: (torch, nn)."""
    del path
    found = (name.split(".") for name in imported_names(data) if not name.startswith("."))
    return frozenset((parts[0], parts[1] if len(parts) > 1 else "") for parts in found)
