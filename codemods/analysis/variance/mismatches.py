"""Where ranks part before a collective: a test, a loop, an exit or an exception that is not the same on all of them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.state import Meeting, State
from codemods.analysis.variance.values import Cause, Proof, Value, differing
from codemods.data.rank_variance import PROCESS_EXITS
from codemods.record import record
from codemods.source import walk, walk_scope

_WAITS = frozenset({"barrier", "wait_for_everyone", "monitored_barrier", "synchronize"})
_BROAD = frozenset({"", "Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})


class Form(Enum):
    DECIDES = "decides"  # a test decides whether a collective is met
    LEAVES = "leaves"  # an exit passes by a collective that the others come to
    ENDS = "ends"  # the process ends by its own data
    ROUNDS = "rounds"  # how often a loop with a collective runs
    RAISES = "raises"  # an exception leads past a collective, and is swallowed


@record
class Mismatch:
    """node: the statement that decides. value: what it decides by, callers included. meeting: what only some ranks come to.

    leaving: the statement that leaves, for LEAVES and ENDS.
    """

    form: Form
    node: ast.stmt
    value: Value
    meeting: Meeting | None
    leaving: ast.stmt | None = None


def mismatches(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """Every place of a function where what differs between the ranks decides over a collective."""
    body = state.function.body if state.function is not None else state.module.tree.body
    if not state.met and not any(dotted(c.func) in PROCESS_EXITS for c in _calls(body)):
        return
    site = FunctionSite(state.module, state.function) if state.function is not None else None
    yield from _Walk(analysis, state, site).block(body, (), None)


def _calls(body: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        yield from (n for n in walk(statement) if isinstance(n, ast.Call))


class _Walk:
    def __init__(self, analysis: Analysis, state: State, site: FunctionSite | None) -> None:
        self.analysis, self.state, self.site = analysis, state, site

    def meets(self, statements: Iterable[ast.stmt]) -> list[Meeting]:
        """The collectives that the statements come to, in order; what several processes never enter is left out."""
        found: list[Meeting] = []
        for statement in statements:
            found += self._in_statement(statement)
        return found

    def _in_statement(self, statement: ast.stmt) -> list[Meeting]:
        if not self.state.met:
            return []
        found: list[Meeting] = []
        nodes = [statement, *walk_scope(statement)] if not isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) else []
        for node in nodes:
            found += self.state.met.get(id(node), ())
        return found

    def test(self, node: ast.expr) -> Value:
        value = self.state.tests.get(id(node))
        if value is None:
            return Value()
        return self.analysis.resolved(self.site, value) if value.params else value

    def block(self, body: Sequence[ast.stmt], after: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None) -> Iterator[Mismatch]:
        """after: what comes behind the block in the function (in the round of the loop, where there is one); loop: its body."""
        for i, statement in enumerate(body):
            rest = (*body[i + 1 :], *after)
            yield from self.statement(statement, rest, loop)

    def statement(self, node: ast.stmt, rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None) -> Iterator[Mismatch]:
        if isinstance(node, ast.If):
            yield from self._branches(node, node.test, [node.body, node.orelse], rest, loop)
        elif isinstance(node, ast.Match):
            yield from self._branches(node, node.subject, [*(c.body for c in node.cases), []], rest, loop)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            yield from self._loop(node, rest, loop)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            yield from self._attempt(node, rest, loop)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self.block(node.body, rest, loop)

    # Tests

    def _branches(
        self, node: ast.If | ast.Match, test: ast.expr, arms: list[list[ast.stmt]], rest: Sequence[ast.stmt],
        loop: Sequence[ast.stmt] | None,
    ) -> Iterator[Mismatch]:  # fmt: skip
        value = self.test(test)
        told = False
        if value.differs and several_processes(self.state.module, test) is None:
            for found in self._parting(node, value, arms, rest, loop):
                told = True
                yield found
                break
        if not told:
            for arm in arms:
                yield from self.block(arm, rest, loop)

    def _parting(
        self, node: ast.stmt, value: Value, arms: list[list[ast.stmt]], rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        ways = [self.way(arm, rest, loop) for arm in arms]
        for arm in arms:
            ending = _ends_process(arm)
            if ending is not None and value.cause is not Cause.RANK and self.analysis.is_parallel(self.state.module):
                yield Mismatch(Form.ENDS, node, value, next(iter(self.meets(rest)), None), ending)
        kept = [(arm, way) for arm, way in zip(arms, ways, strict=True) if way is not None]
        for i, (arm, way) in enumerate(kept):
            for other, way_of_other in kept[i + 1 :]:
                missed = _missed(way, way_of_other) or _missed(way_of_other, way)
                if missed is None:
                    continue
                leaving = _leaving(arm) or _leaving(other)
                form = Form.LEAVES if leaving is not None and not self._holds(arms, missed) else Form.DECIDES
                yield Mismatch(form, node, value, missed, leaving)

    def _holds(self, arms: list[list[ast.stmt]], meeting: Meeting) -> bool:
        return any(m is meeting for arm in arms for m in self.meets(arm))

    def way(self, arm: list[ast.stmt], rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None) -> list[Meeting] | None:
        """What a rank comes to that takes this arm, as far as the end of the function; None where it raises or ends."""
        leaving = _leaving(arm)
        here = self.meets(arm)
        if leaving is None:
            return [*here, *self.meets(rest), *(self.meets(loop) if loop else ())]
        if isinstance(leaving, ast.Raise) or _is_exit(leaving):
            return None
        if isinstance(leaving, ast.Continue):
            return [*here, *(self.meets(loop) if loop else ())]
        if isinstance(leaving, ast.Break):
            outside = rest[_end_of(rest, loop) :] if loop else rest
            return [*here, *self.meets(outside)]
        return here

    # Loops

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        value = self.test(node.test if isinstance(node, ast.While) else node.iter)
        counted = isinstance(node, ast.While) or value.sized
        found = self.meets(node.body) if counted and value.differs else []
        if found:
            yield Mismatch(Form.ROUNDS, node, value, found[0])
            return
        mark = ast.Pass()  # where the loop ends among what comes behind
        yield from self.block(node.body, (mark, *node.orelse, *rest), [*node.body])
        yield from self.block(node.orelse, rest, loop)

    # Exceptions

    def _attempt(
        self, node: ast.Try | ast.TryStar, rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        normal = [*node.body, *node.orelse]
        for handler in node.handlers:
            names = _caught(handler)
            if not names & _BROAD or not self.analysis.is_parallel(self.state.module):
                continue
            way = self.way([*handler.body, *node.finalbody], rest, loop)
            other = self.way([*normal, *node.finalbody], rest, loop)
            if way is None or other is None or _raises(handler):
                continue
            if (missed := _missed(other, way)) is not None and self._is_risky(node, missed):
                link = self.state.link(handler, f"an exception on one rank is caught here: `except {' '.join(sorted(names)) or ''}`")
                yield Mismatch(Form.RAISES, node, differing(Cause.PLACE, Proof.LIKELY, link), missed, handler.body[0])
                break
        yield from self.block(normal, (*node.finalbody, *rest), loop)
        for handler in node.handlers:
            yield from self.block(handler.body, (*node.finalbody, *rest), loop)

    def _is_risky(self, node: ast.Try | ast.TryStar, missed: Meeting) -> bool:
        """True where the body does more than wait: an exception in the collective itself meets all ranks."""
        calls = [c for c in _calls(node.body)]
        return any(id(c) not in self.state.met or len(self.state.met[id(c)][0].steps) > 1 for c in calls) and bool(missed)


def _end_of(rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None) -> int:
    """Where the present round of the innermost loop ends in what comes behind."""
    del loop
    for i, statement in enumerate(rest):
        if isinstance(statement, ast.Pass) and not hasattr(statement, "lineno"):
            return i + 1
    return len(rest)


def _missed(way: list[Meeting], other: list[Meeting]) -> Meeting | None:
    """The first collective of one way that the other does not come to, as often."""
    left = Counter(_sort(m) for m in other)
    for meeting in way:
        if left[_sort(meeting)]:
            left[_sort(meeting)] -= 1
        else:
            return meeting
    return None


def _sort(meeting: Meeting) -> str:
    return "barrier" if meeting.name in _WAITS else meeting.name


def _leaving(arm: Sequence[ast.stmt]) -> ast.stmt | None:
    """The statement that the end of an arm leaves by."""
    for statement in arm:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)) or _is_exit(statement):
            return statement
        if isinstance(statement, ast.If) and statement.orelse:
            ends = [_leaving(statement.body), _leaving(statement.orelse)]
            if all(e is not None for e in ends):
                return ends[0]
        if isinstance(statement, (ast.With, ast.AsyncWith)) and (inner := _leaving(statement.body)) is not None:
            return inner
    return None


def _is_exit(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and dotted(statement.value.func) in PROCESS_EXITS


def _ends_process(arm: Sequence[ast.stmt]) -> ast.stmt | None:
    return next((s for s in arm if _is_exit(s)), None)


def _caught(handler: ast.ExceptHandler) -> frozenset[str]:
    if handler.type is None:
        return frozenset({""})
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return frozenset(last(dotted(t)) for t in types)


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Raise) or (isinstance(n, ast.stmt) and _is_exit(n)) for s in handler.body for n in walk(s))
