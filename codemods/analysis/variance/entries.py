"""Objects that keep values under keys: `store.get("step")` asks for another value than the one under `"loss"`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import parameters
from codemods.analysis.variance.values import Value
from codemods.files.source import FunctionNode, walk


def is_under_another_key(call: ast.Call, method: FunctionNode, held: Value) -> bool:
    """True where a method picks an entry by a key that is written out, and no step of the way to what the object was told
    names that key."""
    key = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(key, str) or not _picks_by_key(method):
        return False
    return not any(f"{quote}{key}{quote}" in link.text for link in held.chain for quote in "'\"")


def key_told(call: ast.Call, method: FunctionNode) -> str:
    """The key that a call hands over to a method which does nothing but `self.values[key] = value` with it; "" for any other."""
    statements = [s for s in method.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    store = statements[0] if len(statements) == 1 else None
    target = store.targets[0] if isinstance(store, ast.Assign) else None
    if not isinstance(target, ast.Subscript) or not dotted(target.value).startswith("self.") or not call.args:
        return ""
    first = next((n for n in parameters(method) if n not in ("self", "cls")), "")
    key = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    return key if isinstance(key, str) and dotted(target.slice) == first else ""


def _picks_by_key(method: FunctionNode) -> bool:
    """True for `return self.values[key]` and `return self.values.get(key)` of the first parameter."""
    names = parameters(method)
    first = next((n for n in names if n not in ("self", "cls")), "")
    for node in walk(method) if first else ():
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and dotted(node.value).startswith("self."):
            key: ast.AST = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            key = node.args[0]
        else:
            continue
        if any(isinstance(n, ast.Name) and n.id == first for n in walk(key)):
            return True
    return False
