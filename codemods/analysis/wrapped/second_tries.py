"""Questions to a wrapper in a `try` that sees to both: `try: n = model.module.n` and `except AttributeError: n = model.n`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule


def is_second_try(module: SourceModule, node: ast.expr) -> bool:
    """True in the handler of a `try` that asks the same object for the same attribute in the other way, and in its body."""
    if not isinstance(node, ast.Attribute):
        return False
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.Try) and (isinstance(below, ast.ExceptHandler) or any(s is below for s in up.body)):
            rest = [*up.body] if isinstance(below, ast.ExceptHandler) else [s for h in up.handlers for s in h.body]
            holder = dotted(node.value)
            mine = f"{holder}.module" if node.attr == "module" else holder
            asked = {a.attr for a in ast.walk(module.statement_of(node)) if isinstance(a, ast.Attribute)} - {"module"}
            tried = (a for s in rest for a in ast.walk(s) if isinstance(a, ast.Attribute))
            others = (dotted(a.value) for a in tried if a.attr in asked)
            if any(o != mine and o.removesuffix(".module") == holder.removesuffix(".module") for o in others):
                return True
        below = up
    return False
