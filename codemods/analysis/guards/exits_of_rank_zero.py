"""Returns that rank 0 alone can take, above a meeting that all the others are sure to come to.

`if is_main: if os.path.exists(log): print("already there"); return -1`: the check is written as if it ended the run, and ends one
process. The others go on to the constructor of the wrapper, or to the next barrier, and wait.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.exit_statuses import is_status
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.state import STEP, State
from codemods.analysis.variance.values import Cause
from codemods.files.source import FunctionNode, SourceModule, walk, walk_block, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_WRAPPERS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel"})
_FIRST = lazy(r"main|master|primary|chief|root|zero|rank0", re.I)
_QUIET = frozenset({"print", "info", "warning", "debug", "error"})


@record
class ExitOfZero:
    """leaving: the `return`. test: the test of the rank. text, line: what the others come to."""

    leaving: ast.Return
    test: ast.If
    text: str
    line: int


def exits_of_rank_zero(project: Project, module: SourceModule) -> Iterator[ExitOfZero]:
    """One for each test of the rank."""
    if not any(True for _ in module.nodes(ast.Return)) or not variance(project).is_parallel(module):
        return
    told: set[int] = set()
    for leaving in module.nodes(ast.Return):
        function = module.function_of(leaving)
        if function is None or not _is_plain(leaving) or not (tests := _tests_over(module, leaving, function)):
            continue
        test = _of_rank(project, module, leaving, tests)
        if test is None or id(test) in told or _others_act(test):
            continue
        if is_status(project, module, leaving) or ranks_entering(project, module, function) is not Ranks.ALL:
            continue
        again = [module.text_of(t.test) for t in tests if t is not test]
        if (met := _Rest(project, module, function, again).behind(test)) is not None:
            told.add(id(test))
            yield ExitOfZero(leaving, test, *met)


def _is_plain(leaving: ast.Return) -> bool:
    value = leaving.value.operand if isinstance(leaving.value, ast.UnaryOp) else leaving.value
    return value is None or isinstance(value, ast.Constant)


def _tests_over(module: SourceModule, leaving: ast.Return, function: FunctionNode) -> list[ast.If]:
    """The tests round the exit, innermost first; none where it stands in a loop or a `try` as well."""
    found: list[ast.If] = []
    for up in module.ancestors(leaving):
        if up is function:
            return found
        if isinstance(up, ast.If):
            found.append(up)
        elif not isinstance(up, (ast.With, ast.AsyncWith)):
            return []
    return found


def _of_rank(project: Project, module: SourceModule, leaving: ast.Return, tests: list[ast.If]) -> ast.If | None:
    """The outermost of the tests, where it lets rank 0 alone through, or the first rank of what a call asks for."""
    outer = tests[-1]
    if any(leaving is n for n in walk_block(outer.orelse)):
        return None
    if outer is tests[0] and not (isinstance(outer.test, ast.BoolOp) and isinstance(outer.test.op, ast.And)):
        return None  # the rank alone decides: the ways of the ranks are laid side by side for that
    if ranks_at(module, leaving, project=project) in _ZERO:
        left_above = ranks_at(module, outer, project=project) is not Ranks.ALL  # then the others do not come to what is below
        return None if left_above else outer
    if not isinstance(outer.test, ast.Call) or not _FIRST.search(last(dotted(outer.test.func))):
        return None
    value = variance(project).tested(module, outer.test)  # `is_master(args, local=args.log_local)`
    return outer if value.differs and value.cause is Cause.RANK else None


def _others_act(test: ast.If) -> bool:
    """True where the other ranks make calls of their own in the other arm: it may be the other half."""
    calls = (n for n in walk_block(test.orelse) if isinstance(n, ast.Call))
    return any(last(dotted(c.func)) not in _QUIET for c in calls)


class _Rest:
    """What stands behind the test in its function. again: the tests of the exit itself: all ranks may make them below."""

    def __init__(self, project: Project, module: SourceModule, function: FunctionNode, again: Sequence[str]) -> None:
        self.project, self.module, self.function = project, module, function
        self.again = set(again)
        self.state: State | None = variance(project).of(FunctionSite(module, function))

    def behind(self, test: ast.If) -> tuple[str, int] | None:
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(self.function)):
            return None
        body = self.function.body
        place = next((i for i, s in enumerate(body) if s is test), -1)
        return self.first(body[place + 1 :]) if place >= 0 else None

    def first(self, statements: Iterable[ast.stmt]) -> tuple[str, int] | None:
        """The first meeting that all who come to the statements are sure to make."""
        for statement in statements:
            if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                return None
            found = self.inside(statement)
            if found is not None:
                return found
            if isinstance(statement, ast.If) and self.module.text_of(statement.test) in self.again:
                return None
        return None

    def inside(self, node: ast.stmt) -> tuple[str, int] | None:
        if isinstance(node, ast.If):
            return self.first(node.body) if self.asks_for_processes(node.test) else None
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.first(node.body)
        if isinstance(node, ast.For):
            return self.first(node.body)
        if isinstance(node, ast.Try):
            return self.first(node.body) if not node.handlers else None
        if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return next((met for n in walk(node) if isinstance(n, ast.Call) and (met := self.met(n))), None)
        return None

    def asks_for_processes(self, test: ast.expr) -> bool:
        """True where a run with several processes goes in; `args.distributed and not args.horovod` too: one of the arms waits."""
        parts = conjuncts(test)
        return any(several_processes(self.module, part) is True for part in parts)

    def met(self, call: ast.Call) -> tuple[str, int] | None:
        if last(qualified(self.module, call.func)) in _WRAPPERS:
            return f"the constructor {self.module.text_of(call.func)}()", call.lineno
        found = collective_at(self.module, call, self.project)
        if found is not None:
            sure = not found.grouped and not found.writes_its_part and found.framework in ("torch", "accelerate")
            return (f"{found.text}()", call.lineno) if sure else None
        for meeting in self.state.met.get(id(call), ()) if self.state is not None else ():
            if meeting.must and not meeting.maybe and not meeting.needs and meeting.name not in (STEP, "forward"):
                return f"{meeting.text} (by {meeting.steps[0].text})", call.lineno
        return None
