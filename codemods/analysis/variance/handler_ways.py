"""The ways through an `except` that let the rank go on: `if "out of memory" in str(e): continue` above a `raise` is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.variance.exits import is_exit, leaving_of
from codemods.files.source import walk
from codemods.runtime.lazy_pattern import lazy

_MOST = 8
# What the text of an error says where it is one rank's own; others ("size mismatch") come to all ranks alike.
_OWN = lazy(r"memory|alloc|cuda|cudnn|cublas|hip\b|nan\b|inf\b", 2)  # 2: re.IGNORECASE


def ways_on(handler: ast.ExceptHandler) -> list[list[ast.stmt]]:
    """The statements of each way that neither raises nor ends the process; the whole body where nothing in it parts ways."""
    if not any(isinstance(n, ast.Raise) or (isinstance(n, ast.stmt) and is_exit(n)) for s in handler.body for n in walk(s)):
        return [list(handler.body)]
    found = []
    for way, ends in _ways(handler.body, handler.name or ""):
        if not ends:
            found.append(way)
        if len(found) >= _MOST:
            break
    return found


def _ways(body: Sequence[ast.stmt], error: str) -> Iterator[tuple[list[ast.stmt], bool]]:
    """(statements, whether they end in an error) for each way through a block; tests that no arm leaves are not taken apart."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Raise) or is_exit(statement):
            yield list(body[: i + 1]), True
            return
        if isinstance(statement, (ast.Return, ast.Continue, ast.Break)):
            yield list(body[: i + 1]), False
            return
        if isinstance(statement, ast.If) and _parts(statement):
            for arm in (statement.body, statement.orelse):
                if arm is statement.body and _asks_of_another(statement.test, error):
                    continue
                for way, ends in _ways(arm, error):
                    if ends or leaving_of(way) is not None:
                        yield [*body[:i], *way], ends
                    else:
                        yield from (([*body[:i], *way, *more], e) for more, e in _ways(body[i + 1 :], error))
            return
        if isinstance(statement, (ast.Try, ast.TryStar, ast.For, ast.While, ast.Match)) and _raises(statement):
            yield list(body[: i + 1]), True  # what is not taken apart counts as one that raises
            return
    yield list(body), False


def _parts(statement: ast.If) -> bool:
    return any(isinstance(n, (ast.Raise, ast.Return, ast.Continue, ast.Break)) for n in walk(statement)) or _raises(statement)


def _raises(statement: ast.stmt) -> bool:
    return any(isinstance(n, ast.Raise) or (isinstance(n, ast.stmt) and is_exit(n)) for n in walk(statement))


def _asks_of_another(test: ast.expr, error: str) -> bool:
    """True where the test asks the error for a text that speaks of no error of one rank."""
    if not error or not any(isinstance(n, ast.Name) and n.id == error for n in walk(test)):
        return False
    texts = [n.value for n in walk(test) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return bool(texts) and not any(_OWN.search(t) for t in texts)
