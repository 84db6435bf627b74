"""Programs that only an older torch runs: they import, or go through, what a later one no longer has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.job_files import flat_views
from codemods.analysis.names import dotted
from codemods.analysis.ranks.top_imports import brought_in
from codemods.analysis.version_pins import Version
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record
from codemods.store.project import Project

# Module -> the first torch without it (torch pull requests 94709 and 97863; torchtext's releases: 0.12 came with torch 1.11, and
# 0.18, the last, with 2.3: on later ones its import fails, torchtext issue 2283; torchvision's notes: 0.11 came with 1.10, 0.17
# with 2.2).
_GONE: dict[str, Version] = {
    "torch._six": (2, 0, 0), "torchtext.legacy": (1, 11, 0), "torchtext": (2, 4, 0), "torch.utils.ffi": (1, 0, 0),
    "torchvision.models.utils": (1, 10, 0), "torchvision.transforms.functional_tensor": (2, 2, 0),
    "torchvision.transforms.functional_pil": (2, 2, 0),
}  # fmt: skip
_NEXT_GONE: Version = (1, 13, 0)  # `iter(loader).next()`: torch issue 87955
_FLAT_GONE: Version = (1, 7, 0)
_WORDS = (b"torch._six", b"torchtext", b"torch.utils.ffi", b"torchvision.models.utils", b"functional_tensor", b"functional_pil",
          b".next()", flat_views.WORD)  # fmt: skip
_MOST = 60  # files of one program that are looked at


@record
class Ending:
    """The first torch on which a program no longer runs, and what it misses there."""

    version: Version
    path: str
    line: int


def ends_with(project: Project, program: SourceModule) -> Ending | None:
    """The first torch on which the program cannot run, by what it and the project's files that it imports at their top need."""
    return project.keep(("last torch", program.path), lambda: _earliest(project, program))


def _earliest(project: Project, program: SourceModule) -> Ending | None:
    places = set().union(*(project.files_containing(word) for word in _WORDS))
    if not places:
        return None
    files = list(_files(project, program))
    found = [e for module in files if module.path in places for e in _endings(module)]
    paths = frozenset(m.path for m in files)
    for module in files:
        if module.path in places and module.holds(flat_views.WORD):
            found += [Ending(_FLAT_GONE, module.path, line) for line in flat_views.flat_views(project, module, paths)]
    return min(found, key=lambda e: (e.version, e.path, e.line), default=None)


def _files(project: Project, program: SourceModule) -> Iterator[SourceModule]:
    """The program's file, and those that it imports at their top, directly or by others."""
    seen, below = {program.path}, [program]
    while below and len(seen) <= _MOST:
        module = below.pop()
        yield module
        for source, name in brought_in(module):
            for wanted in (f"{source}.{name}" if name and not source.endswith(".") else f"{source}{name}", source):
                found = project.resolve(wanted, module.path)
                other = project.module(found.path) if found is not None and found.path not in seen else None
                if other is not None:
                    seen.add(other.path)
                    below.append(other)


@once_a_module
def _endings(module: SourceModule) -> tuple[Ending, ...]:
    found = [Ending(version, module.path, line) for source, line in _needed(module) for version in _gone(source)]
    for call in module.calls_named("next"):
        if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords and not _is_tried(module, call):
            if _is_iterator_of_a_loader(module, call.func.value):
                found.append(Ending(_NEXT_GONE, module.path, call.lineno))
    return tuple(found)


def _gone(source: str) -> Iterator[Version]:
    """The first torch without a module, or without one that it stands in."""
    while source:
        if source in _GONE:
            yield _GONE[source]
        source = source.rpartition(".")[0]


def _needed(module: SourceModule) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of what the file imports at its top, and of attributes that its top reads (`if torch._six.PY3:`)."""
    for node in module.nodes(ast.Attribute):
        if module.function_of(node) is None and not any(isinstance(up, ast.Try) for up in module.ancestors(node)):
            yield dotted(node), node.lineno
    for statement in module.tree.body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, statement.lineno) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module, statement.lineno
            yield from ((f"{statement.module}.{alias.name}", statement.lineno) for alias in statement.names)


def _is_tried(module: SourceModule, call: ast.Call) -> bool:
    return any(isinstance(up, ast.Try) for up in module.ancestors(call))


def _is_iterator_of_a_loader(module: SourceModule, node: ast.expr) -> bool:
    """True for `iter(loader)`, and for a name that is bound to such a call alone."""
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        return bool(bound) and all(b.value is not None and not b.part and _is_iter(b.value) for b in bound)
    return _is_iter(node)


def _is_iter(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "iter" and len(node.args) == 1 and "loader" in dotted(node.args[0])
