"""What every rank puts into the field by which a path is named later: `args.out = f"runs/{now()}"`, then `makedirs(args.out)`."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.every_rank import is_for_some, is_of_the_starter, starts_processes
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project


def put_by_all(project: Project, module: SourceModule, path: ast.expr) -> list[ast.expr]:
    """The one value that the file puts into each field that the path, or what its names are given, is made of."""
    made = [path, *(v for n in walk(path) if isinstance(n, ast.Name) for v in assigned(module, n, n.id)[:2])]
    fields = {name for value in made for n in walk(value) if isinstance(n, ast.Attribute) and (name := dotted(n))}
    found: list[ast.expr] = []
    for field in sorted(fields):
        stores = [n for n in module.nodes(ast.Assign) if any(dotted(t) == field for t in n.targets)]
        if len(stores) == 1 and _is_of_all(project, module, stores[0]):
            found.append(stores[0].value)
    return found


def _is_of_all(project: Project, module: SourceModule, store: ast.Assign) -> bool:
    """False for what some ranks put there, what is handed on to all, and what the process puts there that starts the ranks."""
    function = module.function_of(store)
    if "broadcast" in (module.text_of(function) if function is not None else module.text):
        return False
    if starts_processes(project, module, function) or is_of_the_starter(project, module, store):
        return False
    return not is_for_some(project, module, store)
