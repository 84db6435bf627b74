"""Projects that let rank 0 in first: `if rank == 0: build(x)`, a barrier, and then `build(x)` on every rank."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.every_rank import Way
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project


def may_be_let_in_first(project: Project, way: Way) -> bool:
    """True where a class that no seen call makes an object of is on the way, in a project that lets rank 0 in first somewhere.

    A registry or a table makes it then, and what lets rank 0 in may be what asks the registry.
    """
    return any(_is_made_unseen(project, home, node) for home, node in way.frames) and bool(first_of_zero(project))


def _is_made_unseen(project: Project, module: SourceModule, node: ast.AST) -> bool:
    owner = module.class_of(node)
    site = find_class(project, module, owner.name) if owner is not None else None
    made = constructions(project, site.module, site.node) if site is not None else None
    return made is not None and not made.calls


def first_of_zero(project: Project) -> frozenset[str]:
    """The names of the functions that rank 0 calls alone, before a barrier, and all ranks behind it."""

    def build() -> frozenset[str]:
        found: set[str] = set()
        for path in sorted(project.files_containing(b"barrier(")):
            module = None if is_test_file(path) else project.module(path)
            for function in module.functions if module is not None else ():
                if module is not None:
                    found |= _in_function(project, module, function)
        return frozenset(found)

    return project.keep("let in first", build)


def _in_function(project: Project, module: SourceModule, function: FunctionNode) -> set[str]:
    calls = sorted((n for n in walk_scope(function) if isinstance(n, ast.Call)), key=lambda c: (c.lineno, c.col_offset))
    waits = [c.lineno for c in calls if collective_at(module, c, project) is not None]
    by_name: dict[str, list[ast.Call]] = {}
    for call in calls if waits else ():
        by_name.setdefault(dotted(call.func), []).append(call)
    found: set[str] = set()
    for name, same in by_name.items():
        if len(same) > 1 and name and any(same[0].lineno < at < same[-1].lineno for at in waits):
            if ranks_at(module, same[0], project=project) is Ranks.ZERO and not ranks_at(module, same[-1], project=project).some:
                found.add(last(name))
    return found
