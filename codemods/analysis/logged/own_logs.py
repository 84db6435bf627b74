"""Does the `log` that a class has of its own ask for the reduction over the ranks, whatever its callers say?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import family_of
from codemods.analysis.literals import is_false
from codemods.analysis.logged.log_calls import LogCall
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule

_OWN = frozenset({"log", "log_dict"})


def reduces_by_itself(log: LogCall) -> bool:
    """True where an own `log` of the class, or a table of options in its file, sets `sync_dist`."""
    if not log.on_self:
        return False
    for site in family_of(log.project, log.facts):
        own = [m for name, m in site.methods().items() if name in _OWN]
        if own and site.module.holds(b"sync_dist") and any(_sets(site.module, m) for m in own):
            return True
    return False


def _sets(module: SourceModule, own: ast.AST) -> bool:
    inside = any(not is_false(value) for value in _values(own))
    tables = (n for s in module.tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in ast.walk(s))
    return inside or any(not is_false(value) for n in tables for value in _given(n))


def _values(scope: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        yield from _given(node)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.Constant) and key.value == "sync_dist":
                    yield node.value


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """`sync_dist=True` of a call, and `{"sync_dist": True}`."""
    if isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == "sync_dist")
        if dotted(node.func).endswith(".setdefault") and len(node.args) == 2 and _is_key(node.args[0]):
            yield node.args[1]
    elif isinstance(node, ast.Dict):
        yield from (v for k, v in zip(node.keys, node.values, strict=True) if k is not None and _is_key(k))


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "sync_dist"
