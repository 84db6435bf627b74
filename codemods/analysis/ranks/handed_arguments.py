"""What the callers of a function give for one of its parameters, also those that start a process with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def arguments(
    project: Project, module: SourceModule, function: FunctionNode, name: str
) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What each caller of a function gives for a parameter, also through `mp.spawn` and `Process`."""
    owner = module.parent(function)
    method = isinstance(owner, ast.ClassDef)
    made = constructions(project, module, owner) if isinstance(owner, ast.ClassDef) and function.name == "__init__" else None
    used = made if made is not None else uses_of(project, module, function)
    if used.more:
        return
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if method and names[:1] in (["self"], ["cls"]) else names
    for place in used.outside_tests().calls:
        if (given := argument(place.call, names, name)) is not None:
            yield place.module, given
    for handed in used.outside_tests().handed_on:
        if (given := spawned_with(handed.module, handed.node, names, name)) is not None:
            yield handed.module, given


def argument(call: ast.Call, names: list[str], name: str) -> ast.expr | None:
    """What a call gives for a parameter, None where it leaves the default."""
    if name in names and names.index(name) < len(call.args):
        given = call.args[: names.index(name) + 1]
        return None if any(isinstance(a, ast.Starred) for a in given) else given[-1]
    return next((k.value for k in call.keywords if k.arg == name), None)


def spawned_with(module: SourceModule, node: ast.expr, names: list[str], name: str) -> ast.expr | None:
    """What `mp.spawn(f, args=(…))` and `Process(target=f, args=(…))`, which hold f at `node`, give its parameter."""
    up = module.parent(node)
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call) or name not in names:
        return None
    end = last(dotted(call.func)) or end_of(call.func)
    if end not in ("spawn", "start_processes", "Process"):
        return None
    given = next((k.value for k in call.keywords if k.arg == "args"), None)
    if given is None and end != "Process" and len(call.args) > 1:
        given = call.args[1]
    position = names.index(name) - (0 if end == "Process" else 1)
    if not isinstance(given, (ast.Tuple, ast.List)) or not 0 <= position < len(given.elts):
        return None
    return given.elts[position]
