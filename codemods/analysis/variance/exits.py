"""Ways out of a block, as they are written: which statement leaves it, and where the round of a loop ends."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.names import dotted
from codemods.data.rank_variance import NOT_A_NUMBER, PROCESS_EXITS
from codemods.files.source import called_name, walk


def leaving_of(arm: Sequence[ast.stmt]) -> ast.stmt | None:
    """The statement that the end of an arm leaves by."""
    for statement in arm:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)) or is_exit(statement):
            return statement
        if isinstance(statement, ast.If) and statement.orelse:
            ends = [leaving_of(statement.body), leaving_of(statement.orelse)]
            if all(e is not None for e in ends):
                return ends[0]
        if isinstance(statement, (ast.With, ast.AsyncWith)) and (inner := leaving_of(statement.body)) is not None:
            return inner
    return None


def own_break(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """A `break` in these statements that leaves the loop round them."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return statement
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for block in blocks_of(statement):
            if (found := own_break(block)) is not None:
                return found
    return None


def is_exit(statement: ast.stmt) -> bool:
    """True for `sys.exit()` and the like."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func) in PROCESS_EXITS


def ends_process(arm: Sequence[ast.stmt]) -> ast.stmt | None:
    return next((s for s in arm if is_exit(s)), None)


def is_failure(leaving: ast.AST | None) -> bool:
    """True for `sys.exit(1)`: torchrun, `mp.spawn` and Lightning's launchers end the other ranks at once, as is meant."""
    call = leaving.value if isinstance(leaving, ast.Expr) else None
    status = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return status is not None and not (isinstance(status, ast.Constant) and status.value in (0, None))


def asks_number(test: ast.expr) -> bool:
    """True for a test whether something is a number at all: `math.isnan(x)`, `loss.isfinite().all()`."""
    return any(isinstance(n, ast.Call) and called_name(n) in NOT_A_NUMBER for n in walk(test))


def end_of(rest: Sequence[ast.stmt]) -> int:
    """Where the present round of the innermost loop ends in what comes behind: the walk puts a `pass` without a place there."""
    for i, statement in enumerate(rest):
        if isinstance(statement, ast.Pass) and not hasattr(statement, "lineno"):
            return i + 1
    return len(rest)


def cases_of(node: ast.Match) -> list[list[ast.stmt]]:
    """The blocks of a `match`; an empty one where no case takes what is left."""
    return [*(c.body for c in node.cases), *([] if any(takes_all(c) for c in node.cases) else [[]])]


def takes_all(case: ast.match_case) -> bool:
    """True for `case _:` and `case name:`."""
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def blocks_of(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def calls_in(body: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        yield from (n for n in walk(statement) if isinstance(n, ast.Call))
