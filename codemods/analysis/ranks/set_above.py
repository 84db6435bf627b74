"""What the program itself gave a field of its settings right above: `args.gpus = 1`, whatever the command line said."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, once_a_module, walk


def set_above(module: SourceModule, field: ast.expr) -> ast.expr | None:
    """The value that `args.gpus` was given last on each way to this place; None where another one may have come in between."""
    name = dotted(field)
    if not isinstance(field, ast.Attribute) or not name or name.startswith(("self.", "cls.")):
        return None
    given = given_above(module, name, field)
    above = in_between(module, given[0], module.statement_of(field)) if given is not None else None
    if given is None or above is None or any(_may_change(s, name) for s in above):
        return None
    return given[1]


def given_above(module: SourceModule, name: str, place: ast.AST) -> tuple[ast.stmt, ast.expr] | None:
    """The last assignment to the field above a place in its function, with the value."""
    here, function = module.statement_of(place), module.function_of(place)
    made = [(s, v) for s, v in _given(module).get(name, ()) if s.lineno < here.lineno and module.function_of(s) is function]
    return max(made, key=lambda pair: pair[0].lineno) if made else None


def in_between(module: SourceModule, statement: ast.stmt, here: ast.stmt) -> list[ast.stmt] | None:
    """The statements of the block behind `statement`, with the one that holds `here`; None where it is not on the way there."""
    block = module.block_of(statement)
    way = {id(here), *(id(up) for up in module.ancestors(here))}
    behind = block[block.index(statement) + 1 :]
    last = next((i for i, s in enumerate(behind) if id(s) in way), None)
    if last is None:
        return None
    return behind[: last if behind[last] is here else last + 1]


def _may_change(statement: ast.stmt, name: str) -> bool:
    """True where the object, or the field, gets another value, or somebody is handed the object."""
    root = name.rpartition(".")[0]
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load) and dotted(node) in (name, root):
            return True
        if isinstance(node, ast.Call) and root in map(dotted, (*node.args, *(k.value for k in node.keywords))):
            return True
    return False


@once_a_module
def _given(module: SourceModule) -> dict[str, list[tuple[ast.stmt, ast.expr]]]:
    """Dotted name of a field -> where it is given a value, and which."""
    found: dict[str, list[tuple[ast.stmt, ast.expr]]] = {}
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            for part, value in _pairs(target, assign.value):
                if isinstance(part, ast.Attribute):
                    found.setdefault(dotted(part), []).append((assign, value))
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """A target with its value; of `a.x, a.y = 1, False` each with its own."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        if not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
            yield from zip(target.elts, value.elts, strict=True)
