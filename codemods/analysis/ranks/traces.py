"""What rank 0, and what the other ranks, meet on the way through a function: collectives, and calls that nobody knows.

One reading of a function for each side. Tests of the rank are resolved for the side; tests for a run with several processes are
taken as one; every other test is a choice that both sides make. Calls of project functions are followed, cycles cut, and
remembered for the project, so that a whole repository costs one reading a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, run_function
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.logged.behind_runs import is_behind_a_run
from codemods.analysis.logged.pending_metrics import nothing_waits_in_training
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import AFTER_EVALUATION, PENDING, PROPERTIES, WAITS, Collective, collective_at
from codemods.analysis.ranks.exit_statuses import is_status
from codemods.analysis.ranks.local_calls import stays_here
from codemods.analysis.ranks.rank_guards import ORDERED_CONTEXTS, Ranks, decorated_ranks, speaks_of_ranks
from codemods.analysis.ranks.rank_sets import Split
from codemods.analysis.ranks.rank_tests import split_of
from codemods.analysis.ranks.rounds import gone_through
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.trace_items import (
    Choice,
    Item,
    Key,
    Meeting,
    Side,
    Step,
    Trace,
    Unknown,
    evaluated,
    meetings,
    moved,
    outward,
)
from codemods.analysis.variance.exits import takes_all
from codemods.files.source import FunctionNode, SourceModule, child_nodes, line_of
from codemods.store.project import Project
from codemods.store.tables import Table

DEPTH = 12
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_ENDS_PROCESS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
LONGEST = 150  # items of a function that its callers still see one by one
_Traces = Table[tuple[tuple[str, int, int], Side], Trace]

_PASSES = {
    Side.ZERO: frozenset({Ranks.ALL, Ranks.ZERO, Ranks.LOCAL_ZERO, Ranks.UNKNOWN}),
    Side.OTHER: frozenset({Ranks.ALL, Ranks.OTHERS, Ranks.LOCAL_OTHERS, Ranks.UNKNOWN}),
}


def trace_of(project: Project, module: SourceModule, function: FunctionNode | None, side: Side) -> Trace:
    """What one side meets in a function (None: in the statements of the module itself), whoever calls it."""
    try:
        if function is None:
            return _Reader(project, module, side, None, ()).block(module.tree.body)
        return _whole(project, FunctionSite(module, function), side, ())
    except RecursionError:  # hundreds of `elif`: nothing is known of it
        return Trace((Unknown(((module.path, 0, 0),), "a function that is nested too deeply"),))


def parts_ranks(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    """True where a test (or a context) by rank holds a collective, or an exit, for one side at least."""
    reader = _Reader(project, module, Side.ZERO, function, ())
    test = getattr(node, "test", None)
    if isinstance(test, ast.expr) and reader.split(test) is None:
        return False
    if isinstance(node, ast.BoolOp) and all(reader.split(v) is None for v in node.values[:-1]):
        return False
    for side in Side:
        reader = _Reader(project, module, side, function, ())
        try:
            made = reader.statement(node) if isinstance(node, ast.stmt) else Trace(tuple(reader.expression(node)))
        except RecursionError:
            return True
        if next(meetings(made.items), None) or _leaves(made):
            return True
    return False


def _leaves(trace: Trace) -> bool:
    return trace.end not in ("", "raise") or any(
        isinstance(i, Choice) and any(_leaves(arm) for arm in i.arms) for i in trace.items
    )


def _whole(project: Project, site: FunctionSite, side: Side, above: tuple[tuple[str, int, int], ...]) -> Trace:
    known = _wholes(project)
    if (site.key, side) in known:
        return known[site.key, side]
    if site.key in above or len(above) > DEPTH:
        return Trace((Unknown((site.key,), site.node.name),)) if site.key not in above else Trace()
    with project.apart() as rest:
        reader = _Reader(project, site.module, side, site.node, (*above, site.key))
        made = reader.block(site.node.body)
    if not reader.cut or not above:  # what a cut cycle lacks belongs to the function it began in
        known.put((site.key, side), made, rest)
        if not reader.sided:
            known.put((site.key, side.turned), made, rest)
    return made


def _wholes(project: Project) -> _Traces:
    return project.memo("rank traces", lambda: Table(project))


def _called(project: Project, site: FunctionSite, side: Side, above: tuple[tuple[str, int, int], ...]) -> Trace:
    """A function as its callers see it: what it meets whatever they hand over, the rest as unknown."""
    known: _Traces = project.memo("rank traces of calls", lambda: Table(project))
    if (found := known.get((site.key, side))) is not None:
        return found
    with project.apart() as rest:
        ranks = decorated_ranks(site.module, site.node, project=project) if site.node.decorator_list else Ranks.ALL
        made = Trace() if ranks not in _PASSES[side] else Trace(tuple(outward(_whole(project, site, side, above).items)))
    if sum(1 for _ in meetings(made.items)) > LONGEST:
        made = Trace((Unknown((site.key,), site.node.name),))
    if not above or (site.key, side) in _wholes(project):
        known.put((site.key, side), made, rest)
    return made


class _Reader:
    """Reads the statements of one function for one side.

    sided: a test of the rank was met, here or in a callee. cut: a cycle was cut below.
    """

    def __init__(
        self, project: Project, module: SourceModule, side: Side, function: FunctionNode | None,
        above: tuple[tuple[str, int, int], ...],
    ) -> None:  # fmt: skip
        self.project, self.module, self.side, self.function, self.above = project, module, side, function, above
        self.tested = speaks_of_ranks(module, function, project) or bool(module.nodes(ast.Match))
        self.sided = self.cut = False

    def key(self, node: ast.AST) -> Key:
        return ((self.module.path, line_of(node), getattr(node, "col_offset", 0)),)

    def block(self, statements: list[ast.stmt]) -> Trace:
        items: list[Item] = []
        for statement in statements:
            made = self.statement(statement)
            items += made.items
            if made.end:
                return Trace(tuple(items), made.end)
        return Trace(tuple(items))

    def statement(self, node: ast.stmt) -> Trace:
        if isinstance(node, ast.If):
            return self.tested_arms(node, node.test, node.body, node.orelse)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self.loop(node)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self.attempt(node)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.context(node)
        if isinstance(node, ast.Match):
            return self.match(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return Trace(tuple(i for d in node.decorator_list for i in self.expression(d)))
        items = tuple(i for child in child_nodes(node) for i in self.expression(child))
        return Trace(items, _exit(self.project, self.module, node))

    # Tests

    def arms_taken(self, test: ast.expr) -> tuple[bool, bool, bool]:
        """(may the test be true for this side, may it be false, is it made of ranks that the source does not show)."""
        split = self.split(test)
        if split is not None:
            self.sided = True
            hidden = split.true is Ranks.UNKNOWN and split.false is Ranks.UNKNOWN
            return split.true in _PASSES[self.side], split.false in _PASSES[self.side], hidden
        several = several_processes(self.module, test)
        return several is not False, several is not True, False

    def split(self, test: ast.expr) -> Split | None:
        if not self.tested:
            return None
        key = ("splits", self.module.path, id(test))
        return self.project.memo(key, lambda: split_of(self.module, test, self.project))

    def tested_arms(self, node: ast.AST, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> Trace:
        asked = tuple(self.expression(test))
        true, false, hidden = self.arms_taken(test)
        if not (true and false):
            made = self.block(body if true else orelse)
            return Trace((*asked, *made.items), made.end)
        return self.choice(node, asked, [self.block(body), self.block(orelse)], hidden)

    def choice(self, node: ast.AST, asked: tuple[Item, ...], arms: list[Trace], hidden: bool = False) -> Trace:
        if all(arm.idle for arm in arms):
            return Trace(asked)
        key = self.key(node)
        if hidden and any(arm.items for arm in arms):  # the half of a protocol: it matches anything, but not itself
            return Trace((*asked, Unknown((*key, (self.side.value, 0, 0)), "ranks that are not shown")))
        end = arms[0].end if all(arm.end for arm in arms) else ""
        return Trace((*asked, Choice(key, tuple(arms))), end)

    def match(self, node: ast.Match) -> Trace:
        asked = tuple(self.expression(node.subject))
        taken = []
        for case in node.cases:
            pattern = case.pattern
            true, false = True, not takes_all(case)
            if isinstance(pattern, ast.MatchValue) and case.guard is None:
                test = ast.copy_location(ast.Compare(node.subject, [ast.Eq()], [pattern.value]), pattern)
                if self.tested and (split := split_of(self.module, test, self.project)) is not None:
                    self.sided = True
                    true, false = split.true in _PASSES[self.side], split.false in _PASSES[self.side]
            if true:
                taken.append(self.block(case.body))
            if not false:
                break
        else:
            taken.append(Trace())
        if len(taken) == 1:
            return Trace((*asked, *taken[0].items), taken[0].end)
        return self.choice(node, asked, taken)

    # Blocks

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> Trace:
        head = node.test if isinstance(node, ast.While) else node.iter
        asked = tuple(self.expression(head))
        body, behind = self.block(node.body), self.block(node.orelse)
        items: tuple[Item, ...] = asked
        over = frozenset(gone_through(head)) if not isinstance(node, ast.While) else frozenset()
        if not (isinstance(node, ast.While) and not self.arms_taken(node.test)[0]) and not body.idle:
            items = (*asked, Choice(self.key(node), (body,), True, over))
        return Trace((*items, *behind.items), behind.end)

    def attempt(self, node: ast.Try | ast.TryStar) -> Trace:
        body = self.block(node.body)
        if not body.end:
            more = self.block(node.orelse)
            body = Trace((*body.items, *more.items), more.end)
        handlers = [self.block(h.body) for h in node.handlers]
        items: tuple[Item, ...] = body.items
        if any(not h.idle for h in handlers):
            items = (*items, Choice((*self.key(node), ("except", 0, 0)), (Trace(), *handlers)))
        final = self.block(node.finalbody)
        return Trace((*items, *final.items), final.end or body.end)

    def context(self, node: ast.With | ast.AsyncWith) -> Trace:
        before: list[Item] = []
        after: list[Item] = []
        for item in node.items:
            entered = item.context_expr
            call = entered.func if isinstance(entered, ast.Call) else entered
            if last(dotted(call)) in ORDERED_CONTEXTS:
                self.sided = True
                first = self.side is Side.ZERO
                (after if first else before).append(self.waits(entered))
            elif isinstance(entered, ast.Call) and (site := self.callee(entered)) is not None and _yields(self.project, site):
                inner = self.inlined(entered, site)
                at = next((i for i, x in enumerate(inner) if isinstance(x, Unknown) and x.text == "yield"), len(inner))
                before += inner[:at]
                after = [*inner[at + 1 :], *after]
            else:
                before += self.expression(entered)
        body = self.block(node.body)
        return Trace((*before, *body.items, *after), body.end)

    def waits(self, node: ast.expr) -> Meeting:
        text = f"with {self.module.text_of(node)}"
        step = Step(self.module.path, node.lineno, text)
        made = Collective(node, text, "barrier", "")  # type: ignore[arg-type]
        return Meeting(self.key(node), "barrier", (step,), node, made)

    # Expressions

    def expression(self, node: ast.AST) -> Iterator[Item]:
        """What evaluating an expression meets, in the order of its text; lambdas and inner functions only wait."""
        stack: list[tuple[ast.AST, bool]] = [(node, False)]  # no recursion: expressions can be very deep
        while stack:
            top, entered = stack.pop()
            if entered:
                yield from self.itself(top)
            elif isinstance(top, (ast.IfExp, ast.BoolOp, *_COMPREHENSIONS)):
                yield from self.deciding(top)
            elif not isinstance(top, (ast.Lambda, ast.stmt)):
                if isinstance(top, (ast.Call, ast.Attribute, ast.Yield, ast.YieldFrom)):
                    stack.append((top, True))
                stack += [(child, False) for child in reversed(child_nodes(top))]

    def itself(self, node: ast.AST) -> Iterator[Item]:
        """What a call, a read or a `yield` meets when its parts are there."""
        if isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Attribute) and node.attr in PROPERTIES:
            read = collective_at(self.module, node, self.project)
            yield from self.met(read) if read is not None else ()
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            yield Unknown(self.key(node), "yield")

    def deciding(self, node: ast.expr) -> Iterator[Item]:
        if isinstance(node, ast.IfExp):
            yield from self.expression(node.test)
            yield from self.picked(node, node.test, node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from self.operands(node)
        else:
            inner = tuple(i for child in child_nodes(node) for i in self.expression(child))
            if inner:
                yield Choice(self.key(node), (Trace(inner),), True)

    def picked(self, node: ast.AST, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Iterator[Item]:
        true, false, hidden = self.arms_taken(test)
        arms = [Trace(tuple(self.expression(a))) for a, taken in ((body, true), (orelse, false)) if taken]
        made = arms[0] if len(arms) == 1 else self.choice(node, (), arms, hidden)
        yield from made.items

    def operands(self, node: ast.BoolOp) -> Iterator[Item]:
        """`rank == 0 and barrier()`: the later operands are met where the earlier ones let this side come so far."""
        is_and = isinstance(node.op, ast.And)
        for at, value in enumerate(node.values):
            yield from self.expression(value)
            rest = node.values[at + 1 :]
            if not rest:
                return
            true, false, _ = self.arms_taken(value)
            goes_on, stops = (true, false) if is_and else (false, true)
            if not goes_on:
                return
            if stops:
                inner = tuple(i for v in rest for i in self.expression(v))
                if inner:
                    yield Choice(self.key(value), (Trace(inner), Trace()))
                return

    def call(self, call: ast.Call) -> Iterator[Item]:
        found = collective_at(self.module, call, self.project)
        if found is not None:
            yield from self.met(found)
        elif (site := self.callee(call)) is not None and not _yields(self.project, site) and not keeps_its_results(site.node):
            yield from self.inlined(call, site)
        elif not stays_here(self.module, call):
            yield Unknown(self.key(call), self.module.text_of(call.func))

    def met(self, found: Collective) -> Iterator[Item]:
        if found.name in ("init_process_group", "DistributedDataParallel"):
            return
        if found.grouped:
            yield Unknown((*self.key(found.node), (self.side.value, 0, 0)), found.text)
        elif is_one_here(self.project, self.module, found, self.function):
            name = "barrier" if found.name in WAITS else found.name
            step = Step(self.module.path, found.node.lineno, found.text)
            yield Meeting(self.key(found.node), name, (step,), found.node, found)

    def callee(self, call: ast.Call) -> FunctionSite | None:
        return run_function(self.project, self.module, call)

    def inlined(self, call: ast.Call, site: FunctionSite) -> list[Item]:
        if site.key in self.above:
            self.cut = True
            return []
        if isinstance(site.node, ast.AsyncFunctionDef):
            return [Unknown(self.key(call), site.node.name)]
        one = _called(self.project, site, self.side, self.above)
        if not self.sided and one != _called(self.project, site, self.side.turned, self.above):
            self.sided = True
        if self.function is not None and self.function.name in AFTER_EVALUATION:
            one = Trace(tuple(evaluated(one.items)))
        step = Step(self.module.path, call.lineno, f"{self.module.text_of(call.func)}()")
        if not any(True for _ in meetings(one.items)):
            opaque = [i for i in one.items if isinstance(i, Unknown) and i.text == "yield"] or (
                [Unknown(self.key(call), step.text)] if one.items else []
            )
            return list(opaque)
        return [moved(i, self.key(call), step, call) for i in one.items]


def _exit(project: Project, module: SourceModule, node: ast.stmt) -> str:
    """How a statement leaves its block. A status (`return -1`) or `sys.exit()` is an error told in another way."""
    if isinstance(node, ast.Return):
        return "raise" if is_status(project, module, node) else "return"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and dotted(node.value.func) in _ENDS_PROCESS:
        return "raise"
    return "break" if isinstance(node, ast.Break) else "continue" if isinstance(node, ast.Continue) else (
        "raise" if isinstance(node, ast.Raise) else ""
    )


def _yields(project: Project, site: FunctionSite) -> bool:
    """True for a generator. Few files hold one, so these are looked up by file."""
    module = site.module
    found = project.memo(
        ("generators", module.path),
        lambda: {id(module.function_of(y)) for y in (*module.nodes(ast.Yield), *module.nodes(ast.YieldFrom))},
    )
    return id(site.node) in found


def is_one_here(project: Project, module: SourceModule, found: Collective, function: FunctionNode | None) -> bool:
    """False where the pinned version knows no such collective, and for metrics of which none waits to be reduced."""
    pin = lightning_pin(project, near=module.path) if found.since else None
    if found.since and pin is not None and pin.surely_below(found.since):
        return False
    if found.name not in PENDING:
        return True
    if is_behind_a_run(project, module, found.node):
        return False
    return not (function is not None and function.name in AFTER_EVALUATION) and not nothing_waits_in_training(project)
