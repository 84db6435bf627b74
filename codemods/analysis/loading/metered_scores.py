"""Scores of the batches that are put into a logger of meters, whose sums and counts the logger adds up over the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.loading.score_names import names_score
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk_scope

_VIEWS = frozenset({"values", "items"})
_SUMS = frozenset({"all_reduce", "reduce"})
_PUTS = ("update", "add", "push")


def adds_up_meters(site: FunctionSite) -> bool:
    """True for a method that has each meter of its object add up its sum and its count over the ranks."""
    for loop in (n for n in walk_scope(site.node) if isinstance(n, ast.For)):
        names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        if not dotted(_viewed(loop.iter)).startswith("self."):
            continue
        for call in (n for n in walk_scope(loop) if isinstance(n, ast.Call) and not n.args):
            on_each = isinstance(call.func, ast.Attribute) and dotted(call.func.value) in names
            if on_each and isinstance(call.func, ast.Attribute) and _sums(site.module, call.func.attr):
                return True
    return False


def scores_put_in(module: SourceModule, scope: ast.AST, joined: ast.Call) -> bool:
    """True where a loop above puts a score of each batch into the logger whose meters `joined` adds up."""
    holder = dotted(joined.func.value) if isinstance(joined.func, ast.Attribute) else ""
    calls = (n for n in walk_scope(scope) if isinstance(n, ast.Call) and n.lineno < joined.lineno)
    return bool(holder) and any(
        names_score(key) and any(isinstance(up, ast.For) for up in module.ancestors(call))
        for call in calls
        for key in _keys(call, holder)
    )


def _viewed(node: ast.expr) -> ast.expr:
    """`self.meters` of `self.meters.values()`."""
    is_view = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
    return node.func.value if is_view and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node


def _sums(module: SourceModule, method: str) -> bool:
    """True where a class of the file has such a method, which sums what the object holds over the ranks."""
    return any(
        f.name == method and isinstance(module.parent(f), ast.ClassDef) and _sums_over_ranks(module, f) for f in module.functions
    )


def _sums_over_ranks(module: SourceModule, function: FunctionNode) -> bool:
    calls = (n for n in walk_scope(function) if isinstance(n, ast.Call))
    return any(last(name := qualified(module, c.func)) in _SUMS and "dist" in name for c in calls)


def _keys(call: ast.Call, holder: str) -> Iterator[str]:
    """The names under which a call puts something into the logger.

    `log.update(acc=acc)`, `log.update("acc", acc)`, `log.meters["acc"].update(acc)`, `log["acc"].update(acc)` and
    `log.acc.update(acc)`.
    """
    if not isinstance(call.func, ast.Attribute) or not call.func.attr.startswith(_PUTS) or not (call.args or call.keywords):
        return
    into = call.func.value
    if dotted(into) == holder:
        yield from (k.arg for k in call.keywords if k.arg)
        first = call.args[0] if call.args else None
    elif isinstance(into, ast.Subscript) and _is_of(into.value, holder):
        first = into.slice
    else:
        first = ast.Constant(into.attr) if isinstance(into, ast.Attribute) and dotted(into.value) == holder else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value


def _is_of(node: ast.expr, holder: str) -> bool:
    """True for the logger, and for a field of it."""
    return dotted(node) == holder or (isinstance(node, ast.Attribute) and dotted(node.value) == holder)
