"""Is what a file gets filled batch by batch? Then it may be the rank's own share, and rank 0 alone would lose all others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_BATCHES = lazy(r"loader|iterator|batches|\bdl\b|_iter\b")
_JOINED = lazy(r"gather|all_reduce|broadcast")
_FILLS = frozenset({"append", "extend", "update", "add"})
_JOINS_ROWS = frozenset({"cat", "concat", "concatenate", "vstack", "hstack", "append"})
_MOST = 3  # calls on the way


@record
class Filled:
    """What is written, and the line of the loop that fills it."""

    name: str
    line: int


def filled_by_batches(frames: tuple[tuple[SourceModule, ast.AST], ...]) -> Filled | None:
    """What a statement on the way to a write hands on, where a loop over batches fills it and it is never gathered."""
    for home, node in frames[:_MOST]:
        function = home.function_of(node)
        if function is None or _JOINED.search(home.text_of(function)):
            continue
        handed = {n.id for n in walk(home.statement_of(node)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for name, line in _filled(home, function):
            if name in handed:
                return Filled(name, line)
    return None


def _filled(module: SourceModule, function: FunctionNode) -> Iterator[tuple[str, int]]:
    for loop in walk_scope(function):
        if not isinstance(loop, ast.For) or _BATCHES.search(module.text_of(loop.iter).lower()) is None:
            continue
        for node in (n for s in loop.body for n in walk(s)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
                yield last(dotted(node.func.value)), loop.lineno
            elif isinstance(node, ast.Assign):
                yield from ((last(dotted(t.value)), loop.lineno) for t in node.targets if isinstance(t, ast.Subscript))
                yield from ((t.id, loop.lineno) for t in node.targets if isinstance(t, ast.Name) and _lengthens(node.value, t.id))


def _lengthens(value: ast.expr, name: str) -> bool:
    """`rows = torch.cat((rows, new))`: the rows of one more batch stand behind those of the batches before."""
    if not isinstance(value, ast.Call) or last(dotted(value.func)) not in _JOINS_ROWS:
        return False
    given = [e for a in value.args[:2] for e in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
    return len(given) > 1 and any(isinstance(e, ast.Name) and e.id == name for e in given)
