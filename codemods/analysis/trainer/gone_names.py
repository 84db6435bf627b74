"""Names of Lightning that are gone without a successor, and from which version on a program that takes one cannot start."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.importing import imports_of
from codemods.analysis.names import dotted, qualified
from codemods.analysis.version_pins import Version, padded
from codemods.data.lightning_names import GONE, MOVED, Gone
from codemods.files.source import SourceModule, once_a_module
from codemods.store.project import Project

PACKAGES = ("pytorch_lightning", "lightning.pytorch")
_MOST_FILES = 24  # that a file imports, over others


def split(name: str) -> tuple[str, str]:
    """(package, what is behind it) of a dotted name; ("", "") for another package. `lightning` alone is that of Lightning 2."""
    for package in (*PACKAGES, "lightning"):
        if name == package or name.startswith(f"{package}."):
            return package, name[len(package) + 1 :]
    return "", ""


def module_gone(inner: str, *, exact: bool = False) -> Gone | None:
    """The row of the whole module that the name leads to, or into."""
    return next(
        (g for g in GONE if not g.name and (inner == g.module or (not exact and inner.startswith(f"{g.module}.")))), None
    )


def gone_row(inner: str, name: str) -> Gone | None:
    """The row of a name that is imported from a module below the package."""
    row = next((g for g in GONE if g.name == name and (g.module == inner or inner.startswith(f"{g.module}."))), None)
    return row or module_gone(inner) or module_gone(f"{inner}.{name}".lstrip("."), exact=True)


def root_is_package(module: SourceModule, node: ast.Attribute) -> bool:
    """True where a dotted name begins with the package itself, not with what an import statement took out of it."""
    found = module.imports.get(dotted(node).partition(".")[0], ())
    return any(f"{f.dotted}" in ("lightning", *PACKAGES) for f in found)


def cannot_start_from(project: Project, path: str) -> Version | None:
    """The first Lightning without a name that the file takes, or a file that it imports does; None where it takes none.

    A new spelling for a later version cures nothing there: the import fails first.
    """
    return project.keep(("cannot start from", path), lambda: _of_program(project, path))


def _of_program(project: Project, path: str) -> Version | None:
    if not path.endswith(".py"):
        return None
    seen, todo, lowest = {path}, [path], None
    while todo and len(seen) < _MOST_FILES:
        here = todo.pop(0)
        if b"ightning" in (project.read(here) or b"") and (module := project.module(here)) is not None:
            found = _of_file(module)
            lowest = found if lowest is None or (found is not None and padded(found) < padded(lowest)) else lowest
        for name in sorted(imports_of(project, here)):
            other = project.resolve(name, here)
            if other is not None and other.path not in seen:
                seen.add(other.path)
                todo.append(other.path)
    return lowest


@once_a_module
def _of_file(module: SourceModule) -> Version | None:
    found = [row.since for row in _taken(module)]
    return min(found, key=padded, default=None)


def _taken(module: SourceModule) -> Iterator[Gone]:
    """What a run of the file takes: imports at its top, and dotted names wherever they stand."""
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level:
            package, inner = split(node.module or "")
            rows = (gone_row(inner, a.name) for a in node.names if (inner, a.name) not in MOVED) if package else ()
            yield from (row for row in rows if row is not None)
    for attribute in module.nodes(ast.Attribute):
        package, inner = split(qualified(module, attribute))
        row = module_gone(inner, exact=True) if package and root_is_package(module, attribute) else None
        if row is not None and not any(isinstance(up, (ast.Try, ast.If)) for up in module.ancestors(attribute)):
            yield row
