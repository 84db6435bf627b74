"""Is a file opened, and so emptied, outside of the statements that write to it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.reaching import reaching
from codemods.files.source import SourceModule, walk


def emptied_above(module: SourceModule, statements: Sequence[ast.stmt]) -> int:
    """The line in which a file is opened anew, outside of the statements that write to it; 0 without one."""
    opening = opened_above(module, statements)
    return opening.lineno if opening is not None else 0


def opened_above(module: SourceModule, statements: Sequence[ast.stmt]) -> ast.Call | None:
    """The call that opens a file anew, outside of the statements that write to it.

    Under a test of its own rank 0 would still write, and a slower rank empty the file behind it.
    """
    inside = {id(n) for s in statements for n in walk(s)}
    for statement in statements:
        taken = {n.id for c in walk(statement) if isinstance(c, ast.Call) for n in _names_given(c)}
        taken -= {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for up in module.ancestors(statement) if taken else ():
            for item in up.items if isinstance(up, (ast.With, ast.AsyncWith)) else ():
                bound = isinstance(item.optional_vars, ast.Name) and item.optional_vars.id in taken
                if bound and isinstance(item.context_expr, ast.Call) and _empties(item.context_expr):
                    return item.context_expr
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
        for name in (n for n in walk(statement) if isinstance(n, ast.Name) and n.id in taken):
            for binding in reaching(module, name, bindings_of(module, name)):
                value = binding.value
                if isinstance(value, ast.Call) and id(value) not in inside and _empties(value):
                    return value
    return None


def _names_given(call: ast.Call) -> Iterator[ast.Name]:
    """The names that a call writes to: whose method it is, or what a `dump` is handed."""
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    yield from (n for n in (*own, *call.args, *(k.value for k in call.keywords)) if isinstance(n, ast.Name))


def _empties(call: ast.Call) -> bool:
    """True for `open(path, "w")` and `path.open("w")`."""
    if (last(dotted(call.func)) or getattr(call.func, "attr", "")) != "open":
        return False
    modes = [a.value for a in call.args if isinstance(a, ast.Constant)]
    modes += [k.value.value for k in call.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)]
    return any(isinstance(m, str) and m.strip("bt+") in ("w", "x") for m in modes)
