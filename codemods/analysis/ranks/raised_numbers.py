"""Numbers of a process on its node that the program itself makes global: `args.local_rank += node * gpus`."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.names import dotted, end_of
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project


def is_raised(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True where the program of this file adds something to the field, and not only below the place in the same function."""
    holder = end_of(node.value)
    paths = project.keep(("raised", holder, node.attr), lambda: _raising(project, holder, node.attr))
    elsewhere = holder not in ("self", "cls")  # of another file it is another object
    if elsewhere and any(path != module.path and same_program(project, module.path, path) for path in paths):
        return True
    home = module.function_of(node)
    places = _raised_here(module).get((holder, node.attr), ()) if module.path in paths else ()
    return any(module.function_of(place) is not home or place.lineno < node.lineno for place in places)


def _raising(project: Project, holder: str, name: str) -> tuple[str, ...]:
    found = []
    for path in sorted(project.files_containing(f"{holder}.{name} ".encode())):
        other = project.module(path) if path.endswith(PYTHON_KINDS) and not is_test_file(path) else None
        if other is not None and (holder, name) in _raised_here(other):
            found.append(path)
    return tuple(found)


@once_a_module
def _raised_here(module: SourceModule) -> dict[tuple[str, str], list[ast.stmt]]:
    out: dict[tuple[str, str], list[ast.stmt]] = {}
    for change in module.nodes(ast.AugAssign):
        if isinstance(change.op, ast.Add) and isinstance(change.target, ast.Attribute):
            out.setdefault((end_of(change.target.value), change.target.attr), []).append(change)
    for assign in module.nodes(ast.Assign):
        target, value = assign.targets[0], assign.value
        if isinstance(target, ast.Attribute) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            if any(dotted(n) == dotted(target) for n in walk(value)):
                out.setdefault((end_of(target.value), target.attr), []).append(assign)
    return out
