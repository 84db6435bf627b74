"""Seeds of a text's `hash()`: Python salts it, so that each process that a launcher starts has another one."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, is_parameter, last
from codemods.files.source import SourceModule, walk
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TEXTS = lazy(r"(?:^|_)(?:names?|paths?|file|dir|folder|text|str|string|url|title|caption|prompt|sentence)$", re.IGNORECASE)
_MADE = frozenset({"str", "repr", "join", "format", "lower", "upper", "strip", "hexdigest", "basename", "dumps"})
_DEPTH = 3


def salted_hash(project: Project, module: SourceModule, value: ast.expr) -> ast.Call | None:
    """The `hash()` of a text that a seed is made of, by the one value of each name; None where none is seen.

    A number has the same hash everywhere, and a repository that speaks of PYTHONHASHSEED may have fixed the salt.
    """
    if not module.holds(b"hash("):
        return None
    found = _hash_in(module, value, _DEPTH)
    kinds = (*SHELL_KINDS, ".py", ".yaml", ".yml", ".md", ".toml")
    return None if found is None or any(project.files_containing(b"PYTHONHASHSEED", kinds=kinds)) else found


def _hash_in(module: SourceModule, value: ast.expr, depth: int) -> ast.Call | None:
    for node in walk(value):
        if isinstance(node, ast.Call) and dotted(node.func) == "hash" and len(node.args) == 1 and _is_builtin(module, node):
            if _is_text(module, node.args[0]):
                return node
        elif isinstance(node, ast.Name) and depth > 0:
            bound = bindings_of(module, node)
            inner = bound[0].value if len(bound) == 1 and not bound[0].part else None
            found = _hash_in(module, inner, depth - 1) if inner is not None and not isinstance(inner, ast.Name) else None
            if found is not None:
                return found
    return None


def _is_builtin(module: SourceModule, call: ast.Call) -> bool:
    own = "hash" in module.imports or any(f.name == "hash" for f in module.functions)
    return not own and isinstance(call.func, ast.Name) and not bindings_of(module, call.func)


def _is_text(module: SourceModule, value: ast.expr) -> bool:
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (str, bytes))
    if isinstance(value, ast.Tuple):
        return any(_is_text(module, e) for e in value.elts)
    if isinstance(value, ast.BinOp):
        return _is_text(module, value.left) or _is_text(module, value.right)
    if isinstance(value, ast.Call):
        return last(dotted(value.func)) in _MADE
    if isinstance(value, ast.Name) and not is_parameter(module, value.id, value):
        bound = bindings_of(module, value)
        if len(bound) == 1 and bound[0].value is not None and not bound[0].part and not isinstance(bound[0].value, ast.Name):
            return _is_text(module, bound[0].value)
    return isinstance(value, (ast.Name, ast.Attribute)) and _TEXTS.search(last(dotted(value))) is not None
