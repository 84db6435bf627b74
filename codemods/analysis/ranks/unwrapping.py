"""Functions that take the module out of the DDP wrapper before they use it: `model = model.module`, `unwrap_model(model)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, walk, walk_scope

_ASKING = frozenset({"hasattr", "isinstance", "getattr", "id", "type", "print", "len"})  # no forward


def unwraps_first(function: FunctionNode, parameter: str) -> bool:
    """True where the parameter is bound to the module inside, on a test or always, above every call that may run it."""
    unwrapping = [n for n in walk_scope(function) if isinstance(n, (ast.Assign, ast.AnnAssign)) and _unwraps(n, parameter)]
    if not unwrapping:
        return False
    first = min(unwrapping, key=lambda n: n.lineno)
    own = {id(n) for n in walk(first)}
    return not any(id(use) not in own and use.lineno <= first.lineno for use in _uses(function, parameter))


def _unwraps(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    bound = any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return bound and node.value is not None and _is_inside(node.value, name)


def _is_inside(value: ast.expr, name: str) -> bool:
    """`m.module`, `m.module if … else m`, `getattr(m, "module", m)`, `unwrap_model(m)`, `accelerator.unwrap_model(m)`."""
    if isinstance(value, ast.IfExp):
        sides = (value.body, value.orelse)
        return any(_is_inside(side, name) for side in sides) and all(
            dotted(side) == name or _is_inside(side, name) for side in sides
        )
    if isinstance(value, ast.Attribute):
        return value.attr == "module" and dotted(value.value) == name
    if not isinstance(value, ast.Call) or not value.args or dotted(value.args[0]) != name:
        return False
    called = last(dotted(value.func)).lower()
    if called == "getattr":
        return len(value.args) > 1 and isinstance(value.args[1], ast.Constant) and value.args[1].value == "module"
    return "unwrap" in called


def _uses(function: FunctionNode, name: str) -> Iterator[ast.Call]:
    """Calls that run the model or hand it on."""
    for node in walk(function):
        if not isinstance(node, ast.Call):
            continue
        given = [*node.args, *(k.value for k in node.keywords)]
        handed = any(isinstance(a.value if isinstance(a, ast.Starred) else a, ast.Name) and dotted(a) == name for a in given)
        if dotted(node.func) == name or (handed and last(dotted(node.func)) not in _ASKING):
            yield node
