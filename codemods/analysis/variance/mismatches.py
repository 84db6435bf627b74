"""Where ranks part before a collective: a test, a loop, an exit or an exception that is not the same on all of them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.state import Meeting, State
from codemods.analysis.variance.values import Cause, Kind, Proof, Value, differing
from codemods.data.rank_variance import PROCESS_EXITS
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, child_nodes, walk, walk_scope

_WAITS = frozenset({"barrier", "wait_for_everyone", "monitored_barrier", "synchronize"})
_OTHER_MATTERS = frozenset({"KeyboardInterrupt", "ImportError", "ModuleNotFoundError", "AttributeError", "SystemExit", "FileExistsError"})
_BROAD = frozenset({"", "Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})


class Form(Enum):
    DECIDES = "decides"  # a test decides whether a collective is met
    LEAVES = "leaves"  # an exit passes by a collective that the others come to
    ENDS = "ends"  # the process ends by its own data
    ROUNDS = "rounds"  # how often a loop with a collective runs
    NO_LOSS = "no loss"  # a training_step that gives none
    PLATEAU = "plateau"  # a scheduler is told a rank's own number
    STOPS = "stops"  # the framework is told to stop, by what is one rank's own
    RAISES = "raises"  # an exception leads past a collective, and is swallowed


@record
class Mismatch:
    """node: the statement that decides. value: what it decides by, callers included. meeting: what only some ranks come to.

    leaving: the statement that leaves, for LEAVES and ENDS.
    """

    form: Form
    node: ast.stmt | ast.ExceptHandler
    value: Value
    meeting: Meeting | None
    leaving: ast.stmt | None = None


def mismatches_in(project: Project, module: SourceModule) -> tuple[Mismatch, ...]:
    """Those of a whole file, in the order of its lines; none where one process runs it."""

    def build() -> tuple[Mismatch, ...]:
        analysis = variance(project)
        if not analysis.is_parallel(module):
            return ()
        found = [m for state in analysis.states(module) for m in mismatches(analysis, state)]
        return tuple(sorted(found, key=lambda m: (m.node.lineno, m.node.col_offset)))

    return project.memo(("mismatches", module.path), build)


def under_rank_tests(project: Project, module: SourceModule, told: set[int]) -> Iterator[tuple[ast.AST, Mismatch]]:
    """(call, mismatch) for collectives that a plain test of the rank keeps from some ranks, where nothing in `told` stands near.

    told: lines of which a finding speaks already.
    """
    for found in mismatches_in(project, module):
        if found.value.cause is not Cause.RANK or len(found.value.chain) > 1 or found.meeting is None or not found.meeting.must:
            continue
        if found.form not in (Form.DECIDES, Form.LEAVES) or not isinstance(found.node, (ast.If, ast.Match)):
            continue
        seen = len(found.meeting.steps) == 1 and found.meeting.name not in ("forward", "compute") and not isinstance(found.leaving, ast.Break)
        if seen or _has_other_half(found):  # what stands there itself is laid side by side in `ranks/matching`
            continue
        line = found.meeting.steps[0].line
        near = {*range(found.node.lineno, (found.node.end_lineno or found.node.lineno) + 1), line}
        if not near & told:
            call = next((c for c in module.nodes(ast.Call) if c.lineno == line), found.node)
            at_exit = found.form is Form.LEAVES and found.meeting.name != "forward"
            yield (found.leaving or found.node if at_exit else call), found


def _has_other_half(found: Mismatch) -> bool:
    """True where the ranks that miss it make calls of their own, which may be the other half, or give back a status."""
    if isinstance(found.leaving, ast.Return) and isinstance(found.leaving.value, (ast.Constant, ast.UnaryOp)):
        return found.leaving.value is not None and not (isinstance(found.leaving.value, ast.Constant) and found.leaving.value.value is None)
    other = found.node.orelse if isinstance(found.node, ast.If) else []
    return bool(other) and any(True for _ in _calls(other))


def mismatches(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """Every place of a function where what differs between the ranks decides over a collective."""
    body = state.function.body if state.function is not None else state.module.tree.body
    site = FunctionSite(state.module, state.function) if state.function is not None else None
    yield from _stops(analysis, state, site)
    yield from _no_losses(analysis, state, site)
    yield from _ends_well(analysis, state)
    yield from _told(analysis, state, site)
    if not state.met and not any(dotted(c.func) in PROCESS_EXITS for c in _calls(body)):
        return
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in body for n in walk_scope(s)):
        return  # the two halves of a context manager, or a generator: who goes on is decided elsewhere
    yield from _Walk(analysis, state, site).block(body, (), None)


def _stops(analysis: Analysis, state: State, site: FunctionSite | None) -> Iterator[Mismatch]:
    """`trainer.should_stop = True` under what is one rank's own: the framework takes it for everybody's."""
    for node, found in {id(n): (n, v) for n, v in state.stops}.values():
        value = analysis.resolved(site, found) if found.params else found
        if value.differs and not any(m.carries for meetings in state.met.values() for m in meetings):
            yield Mismatch(Form.STOPS, node, value, None)


def _no_losses(analysis: Analysis, state: State, site: FunctionSite | None) -> Iterator[Mismatch]:
    """`return None` from a training_step, by the rank's own batch: Lightning makes no backward on this rank."""
    function, module = state.function, state.module
    if function is None or site is None or function.name != "training_step" or (owner := module.class_of(function)) is None:
        return
    if not class_facts(analysis.project, module, owner).is_a(Role.LIGHTNING_MODULE):
        return
    for node in (n for s in function.body for n in (s, *walk_scope(s)) if isinstance(n, ast.If)):
        value = state.tests.get(id(node.test), Value())
        value = analysis.resolved(site, value) if value.params else value
        for arm in (node.body, node.orelse):
            leaving = _leaving(arm)
            empty = isinstance(leaving, ast.Return) and (leaving.value is None or _is_none(leaving.value))
            if value.differs and value.cause is not Cause.RANK and empty and leaving is not None:
                yield Mismatch(Form.NO_LOSS, node, value, None, leaving)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _ends_well(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`sys.exit(0)` in a function that rank 0 alone runs: the launcher takes it for a success, and the others wait."""
    module, function = state.module, state.function
    if function is None or b"exit(" not in module.data or not analysis.is_parallel(module):
        return
    if ranks_entering(analysis.project, module, function) not in (Ranks.ZERO, Ranks.LOCAL_ZERO):
        return
    for call in _calls(function.body):
        status = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if dotted(call.func) in PROCESS_EXITS and (not call.args or status == 0) and module.function_of(call) is function:
            link = state.link(function, f"only rank 0 runs {function.name}()")
            statement = module.statement_of(call)
            yield Mismatch(Form.ENDS, statement, differing(Cause.RANK, Proof.PROVEN, link, link), None, statement)


def _told(analysis: Analysis, state: State, site: FunctionSite | None) -> Iterator[Mismatch]:
    """`scheduler.step(val_loss)` of a rank's own loss: the learning rates part."""
    if not analysis.is_parallel(state.module):
        return
    for told in {id(t.call): t for t in state.told}.values():
        value = analysis.resolved(site, told.value) if told.value.params else told.value
        name = dotted(told.call.func).lower()
        if value.differs and value.cause is not Cause.RANK and ("sched" in name or "plateau" in name):
            yield Mismatch(Form.PLATEAU, state.module.statement_of(told.call), value, None)


def _calls(body: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        yield from (n for n in walk(statement) if isinstance(n, ast.Call))


class _Walk:
    def __init__(self, analysis: Analysis, state: State, site: FunctionSite | None) -> None:
        self.analysis, self.state, self.site = analysis, state, site
        self.by_rank = False  # it is a test of the rank that is looked at
        self.finals: list[list[ast.stmt]] = []  # of the `try`s round the present statement

    def meets(self, statements: Iterable[ast.stmt], side: Ranks | None = None) -> list[Meeting]:
        """The collectives that the statements come to, in order.

        side: the ranks that come; of another test of the rank only the branch that is theirs counts.
        """
        return [m for s in statements for m in self._in_statement(s, side)] if self.state.met else []

    def _in_statement(self, node: ast.stmt, side: Ranks | None) -> list[Meeting]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return []
        if side is None or not any(isinstance(n, (ast.If, ast.Match)) for n in (node, *walk_scope(node))):
            return [m for n in (node, *walk_scope(node)) for m in self.state.met.get(id(n), ()) if self._counts(m)]
        if isinstance(node, ast.If):
            here = self._in_expression(node.test)
            split = known_split(self.state.module, node.test, self.state.project)
            if split is not None and split.alone and side in (split.true, split.false) and split.true is not split.false:
                return [*here, *self.meets(node.body if side is split.true else node.orelse, side)]
            return [*here, *self.meets(node.body, side), *self.meets(node.orelse, side)]
        found = [m for child in child_nodes(node) if isinstance(child, ast.expr) for m in self._in_expression(child)]
        return [*found, *(m for block in _blocks(node) for m in self.meets(block, side))]

    def _in_expression(self, node: ast.expr) -> list[Meeting]:
        return [m for n in walk(node) for m in self.state.met.get(id(n), ()) if self._counts(m)]

    def _counts(self, meeting: Meeting) -> bool:
        """False for the forward of a parameter that is not known to be a wrapped model with buffers.

        Of a model that is not seen the forward counts under a test of the rank only: one rank that runs it alone is wrong anyway.
        """
        if not meeting.needs:
            return self.by_rank or not meeting.maybe
        thing = self.analysis.resolved(self.site, Value(Cause.UNKNOWN, params=frozenset({meeting.needs}))).thing
        if thing is None or thing.kind is not Kind.WRAPPED:
            return False
        return self.by_rank if thing.waits is None else thing.waits

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
            yield from self._branches(node, node.subject, _cases(node), rest, loop)
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
        self.by_rank = value.cause is Cause.RANK
        if value.differs and several_processes(self.state.module, test) is None:
            for found in self._parting(node, value, arms, rest, loop):
                told = True
                yield found
                break
        self.by_rank = False
        if not told:
            for arm in arms:
                yield from self.block(arm, rest, loop)

    def _parting(
        self, node: ast.stmt, value: Value, arms: list[list[ast.stmt]], rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        sides = self._sides(node, value, arms)
        if all(sides) and self._balanced(sides):
            return
        if all(sides) and not any(_leaving(arm) for arm in arms):  # what comes behind the test is asked at the tests there
            ways: list[list[Meeting] | None] = [self.meets(arm, side) for arm, side in zip(arms, sides, strict=True)]
            rest_of_all = self.meets(rest)
        else:
            ways = [self.way(arm, rest, loop, side) for arm, side in zip(arms, sides, strict=True)]
            rest_of_all = []
        for arm in arms:
            ending = _ends_process(arm)
            if ending is not None and (value.cause is not Cause.RANK or len(value.chain) > 1) and self.analysis.is_parallel(self.state.module):
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

        if value.cause is Cause.RANK:
            full = [None if w is None else [*w, *rest_of_all] for w in ways]
            yield from self._inner_exits(node, value, arms, full, sides)
            yield from self._inner_breaks(node, value, arms, loop)

    def _sides(self, node: ast.stmt, value: Value, arms: list[list[ast.stmt]]) -> list[Ranks | None]:
        """The ranks that take each arm, where a test of the rank alone decides."""
        split = known_split(self.state.module, node.test, self.state.project) if isinstance(node, ast.If) else None
        if value.cause is not Cause.RANK or split is None or not split.alone:
            return [None] * len(arms)
        return [split.true, split.false]

    def _balanced(self, sides: list[Ranks | None]) -> bool:
        """True where both sides come to the same collectives in the function as a whole: two halves of one protocol."""
        body = self.state.function.body if self.state.function is not None else self.state.module.tree.body
        if any(isinstance(n, ast.Return) for s in body for n in (s, *walk_scope(s)) if s is not body[-1]):
            return False
        one, other = (Counter(_sort(m) for m in self.meets(body, side)) for side in sides)
        return one == other

    def _inner_exits(
        self, node: ast.stmt, value: Value, arms: list[list[ast.stmt]], ways: list[list[Meeting] | None], sides: list[Ranks | None]
    ) -> Iterator[Mismatch]:
        """A `return` inside of the branch of one rank, past what that rank and all others come to at its end."""
        for i, arm in enumerate(arms):
            others = next((w for j, w in enumerate(ways) if j != i and w), None)
            if others is None or _leaving(arm) is not None or any(m.name == others[0].name for m in self.meets(arm, sides[i])):
                continue
            for inner in (n for s in arm for n in (s, *walk_scope(s)) if isinstance(n, ast.Return)):
                yield Mismatch(Form.LEAVES, node, value, others[0], inner)
                return

    def _inner_breaks(
        self, node: ast.stmt, value: Value, arms: list[list[ast.stmt]], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        """A `break` inside of the branch of one rank, out of a loop in which all ranks meet."""
        met = self.meets(loop) if loop else []
        for arm in arms:
            inner = _own_break(arm) if met and _leaving(arm) is None else None
            if inner is not None:
                yield Mismatch(Form.LEAVES, node, value, met[0], inner)
                return

    def _holds(self, arms: list[list[ast.stmt]], meeting: Meeting) -> bool:
        return any(m is meeting for arm in arms for m in self.meets(arm))

    def way(
        self, arm: Sequence[ast.stmt], rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None, side: Ranks | None = None
    ) -> list[Meeting] | None:
        """What a rank comes to that takes this arm, as far as the end of the function; None where it raises or ends."""
        leaving = _leaving(arm)
        here = self.meets(arm, side)
        if leaving is not None:
            here = [*here, *(m for block in self.finals for m in self.meets(block, side))]
        if leaving is None:
            return [*here, *self.meets(rest, side), *(self.meets(loop, side) if loop else ())]
        if isinstance(leaving, ast.Raise) or _is_exit(leaving):
            return None
        if isinstance(leaving, ast.Continue):
            return [*here, *(self.meets(loop, side) if loop else ()), *self.meets(rest[_end_of(rest) :], side)]
        if isinstance(leaving, ast.Break):
            return [*here, *self.meets(rest[_end_of(rest) :] if loop else rest, side)]
        return here

    # Loops

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        value = self.test(node.test if isinstance(node, ast.While) else node.iter)
        counted = isinstance(node, ast.While) or value.sized
        found = self.meets(node.body) if counted and value.differs else []
        if isinstance(node, ast.While) and value.differs:
            found = [*self._in_expression(node.test), *found]
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
            if "StopIteration" in names:
                yield from self._ended_stream(node, handler, rest, loop)
                continue
            if not self.analysis.is_parallel(self.state.module) or names & _OTHER_MATTERS:
                continue
            way = self.way([*handler.body, *node.finalbody], rest, loop)
            other = self.way([*normal, *node.finalbody], rest, loop)
            if (ending := _ends_as_success(handler)) is not None and self.meets(loop or rest):
                link = self.state.link(handler, "an exception on one rank leads here")
                yield Mismatch(Form.ENDS, ending, differing(Cause.PLACE, Proof.LIKELY, link), None, ending)
                continue
            if way is None or other is None or _raises(handler):
                continue
            if not names & _BROAD and not (loop and any(m.name == "backward" for m in self.meets(node.body))):
                continue  # one kind of error, round something else than a step of the training
            if (missed := _missed(other, way)) is not None and self._is_risky(node, missed):
                link = self.state.link(handler, f"an exception on one rank is caught here: `except {' '.join(sorted(names)) or ''}`")
                yield Mismatch(Form.RAISES, handler, differing(Cause.PLACE, Proof.LIKELY, link), missed, handler.body[0])
                break
        self.finals.append(node.finalbody)
        for block in (normal, *(h.body for h in node.handlers)):
            yield from self.block(block, (*node.finalbody, *rest), loop)
        self.finals.pop()

    def _ended_stream(
        self, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler, rest: Sequence[ast.stmt], loop: Sequence[ast.stmt] | None
    ) -> Iterator[Mismatch]:
        """`except StopIteration: break`: the loop ends with the rank's own data."""
        if not isinstance(_leaving(handler.body), (ast.Break, ast.Return)):
            return
        for call in _calls(node.body):
            if dotted(call.func) != "next" or not call.args or id(call.args[0]) not in self.state.values:
                continue
            value = self.analysis.resolved(self.site, self.state.values[id(call.args[0])])
            found = self.meets(loop or rest)
            if value.differs and value.sized and found:
                yield Mismatch(Form.ROUNDS, handler.body[0], value, found[0], handler.body[0])

    def _is_risky(self, node: ast.Try | ast.TryStar, missed: Meeting) -> bool:
        """True where the body does more than wait: an exception in the collective itself meets all ranks."""
        calls = [c for c in _calls(node.body)]
        return any(id(c) not in self.state.met or len(self.state.met[id(c)][0].steps) > 1 for c in calls) and bool(missed)


def _cases(node: ast.Match) -> list[list[ast.stmt]]:
    closed = any(isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None and c.guard is None for c in node.cases)
    return [*(c.body for c in node.cases), *([] if closed else [[]])]


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _end_of(rest: Sequence[ast.stmt]) -> int:
    """Where the present round of the innermost loop ends in what comes behind."""
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


def _own_break(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """A `break` in these statements that leaves the loop round them."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return statement
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for block in _blocks(statement):
            if (found := _own_break(block)) is not None:
                return found
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


def _ends_as_success(handler: ast.ExceptHandler) -> ast.stmt | None:
    """`exit()` in a handler: the process ends with status 0, and the launcher lets the others go on."""
    for statement in handler.body:
        if _is_exit(statement) and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            status = statement.value.args[0] if statement.value.args else None
            if status is None or (isinstance(status, ast.Constant) and status.value in (0, None)):
                return statement
    return None


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Raise) or (isinstance(n, ast.stmt) and _is_exit(n)) for s in handler.body for n in walk(s))
