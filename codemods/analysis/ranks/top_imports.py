"""What a file imports at its top whatever happens, and the names that it has for those that import it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.files.source import SourceModule, once_a_module, walk_scope


def brought_in(module: SourceModule) -> Iterator[tuple[str, str]]:
    """(module, name in it) of the plain imports at the top of a file; "" for the module itself and for `*`."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, "") for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            source = "." * statement.level + (statement.module or "")
            yield from ((source, "" if alias.name == "*" else alias.name) for alias in statement.names)


def has_at_top(module: SourceModule, name: str) -> bool:
    """True for a name that the file has for those that import it, also where that cannot be told."""
    names = _bound_at_top(module)
    return name in names or "*" in names


@once_a_module
def _bound_at_top(module: SourceModule) -> frozenset[str]:
    """The names that a file has for those that import it; "*" where that cannot be told."""
    found: set[str] = set()
    if module.holds(b"globals()") or any(_binds_at_top(module, call) for call in module.calls_named("exec")):
        found.add("*")
    for node in walk_scope(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    found.update(name for statement in module.nodes(ast.Global) for name in statement.names)
    return frozenset(found)


def _binds_at_top(module: SourceModule, call: ast.Call) -> bool:
    """True for an `exec` at the top, or into a dict that it is given; one in a function leaves what it binds there."""
    return module.function_of(call) is None or len(call.args) > 1 or bool(call.keywords)
