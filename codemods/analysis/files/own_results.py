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
_MAKES = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict"})
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
        for name, loop, fill in _filled(home, function):
            if name in handed and not _is_begun_anew(home, loop, name, node, fill):
                return Filled(name, loop.lineno)
    return None


def _is_begun_anew(module: SourceModule, loop: ast.For, name: str, node: ast.AST, fill: ast.stmt | ast.expr) -> bool:
    """True where each round begins with an empty one above a place of the loop: it holds nothing of the batches before."""
    above = list(module.ancestors(node))
    if loop not in above:
        return False
    if any(_empties(s, name) and s.lineno < fill.lineno for s in _inside(module.statement_of(node))):
        return True
    below = node
    for up in above[: above.index(loop) + 1]:
        blocks = [block for field in ("body", "orelse", "finalbody") if isinstance(block := getattr(up, field, None), list)]
        for block in blocks:
            if below in block and any(_empties(s, name) for s in block[: block.index(below)]):
                return True
        below = up
    return False


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """What stands in the body of a `with`, and of a loop over the batch: each runs as a whole."""
    for inner in statement.body if isinstance(statement, (ast.With, ast.For)) else ():
        yield inner
        yield from _inside(inner)


def _empties(statement: ast.stmt, name: str) -> bool:
    """`row = {}`, `row: list[int] = []`, `rows, names = [], []`, `row = dict(a=1)`."""
    if isinstance(statement, ast.Assign):
        pairs = [(t, statement.value) for t in statement.targets]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        pairs = [(statement.target, statement.value)]
    else:
        return False
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs += zip(target.elts, value.elts, strict=True)
    return any(isinstance(t, ast.Name) and t.id == name and _is_empty(v) for t, v in pairs)


def _is_empty(value: ast.expr) -> bool:
    """True for a container that is made there, with nothing of a batch before."""
    if isinstance(value, ast.Call):
        return last(dotted(value.func)) in _MAKES
    return isinstance(value, (ast.Dict, ast.List, ast.Set))


def _filled(module: SourceModule, function: FunctionNode) -> Iterator[tuple[str, ast.For, ast.stmt | ast.expr]]:
    for loop in walk_scope(function):
        if not isinstance(loop, ast.For) or _BATCHES.search(module.text_of(loop.iter).lower()) is None:
            continue
        for node in (n for s in loop.body for n in walk(s)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
                yield last(dotted(node.func.value)), loop, node
            elif isinstance(node, ast.Assign):
                yield from ((last(dotted(t.value)), loop, node) for t in node.targets if isinstance(t, ast.Subscript))
                yield from ((t.id, loop, node) for t in node.targets if isinstance(t, ast.Name) and _lengthens(node.value, t.id))


def _lengthens(value: ast.expr, name: str) -> bool:
    """`rows = torch.cat((rows, new))`: the rows of one more batch stand behind those of the batches before."""
    if not isinstance(value, ast.Call) or last(dotted(value.func)) not in _JOINS_ROWS:
        return False
    given = [e for a in value.args[:2] for e in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
    return len(given) > 1 and any(isinstance(e, ast.Name) and e.id == name for e in given)
