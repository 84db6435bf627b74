"""Items of a mapping that hold a test of the rank: `params["verbose"] = rank == 0`, read where the mapping has gone."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import end_of
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_MOST_FILES = 8
_GIVEN = Site(rb"\[[ \t]*[\"']\w+[\"'][ \t]*\][ \t]*=[^=\n]*rank[^\n]{0,40}[=!]=[ \t]*0", b"rank")
_KEY = lazy(rb"\[[ \t]*[\"'](\w+)[\"'][ \t]*\][ \t]*=[^=\n]*rank[^\n]{0,40}[=!]=[ \t]*0")


def rank_keys(project: Project) -> frozenset[str]:
    """The keys under which a file of the project puts what looks like a test of the rank, told from the bytes."""

    def build() -> frozenset[str]:
        paths = (p for p in project.files_containing(b"rank") if p.endswith(".py") and not is_test_file(p))
        return frozenset(key for path in paths for key in project.fact(_keys_in, path))

    return project.keep("keys of rank tests", build)


@file_fact
def _keys_in(path: str, data: bytes) -> frozenset[str]:
    del path
    return frozenset(m.decode() for m in _KEY.findall(data)) if _GIVEN.search(data) else frozenset()


def item_values(project: Project | None, node: ast.Subscript) -> list[tuple[SourceModule, ast.expr]]:
    """What the project puts under the key of `params["verbose"]`, in mappings of that name; nothing for other keys."""
    key, holder = node.slice, end_of(node.value)
    if project is None or not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not holder:
        return []
    if key.value not in rank_keys(project):
        return []
    name = key.value
    return project.memo(("items of a key", holder, name), lambda: _given(project, holder, name))


def _given(project: Project, holder: str, name: str) -> list[tuple[SourceModule, ast.expr]]:
    paths = sorted({p for q in ("'", '"') for p in project.files_containing(f"[{q}{name}{q}]".encode()) if p.endswith(".py")})
    modules = [m for p in paths if (m := project.module(p)) is not None] if len(paths) <= _MOST_FILES else []
    found: list[tuple[SourceModule, ast.expr]] = []
    for module in modules:
        for assign in module.nodes(ast.Assign):
            for target in assign.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == name:
                    found += [(module, assign.value)] if end_of(target.value) == holder else []
    return found
