"""The ways through a function: which collectives a rank comes to that takes this arm, as far as the end."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.exits import blocks_of, end_of, is_exit, leaving_of
from codemods.analysis.variance.kept_meetings import is_kept_to_one_rank
from codemods.analysis.variance.state import Meeting, State
from codemods.analysis.variance.values import SAME, Cause, Kind, Value
from codemods.files.source import child_nodes, walk, walk_block, walk_scope

_WAITS = frozenset({"barrier", "Barrier", "wait_for_everyone", "monitored_barrier", "synchronize"})
Statements = Sequence[ast.stmt]
_MOST_ENDS = 8


class Ways:
    """What the statements of one function come to.

    by_rank: it is a test of the rank that is looked at. finals: those of the `try`s round the present statement.
    """

    def __init__(self, analysis: Analysis, state: State) -> None:
        self.analysis, self.state = analysis, state
        self.by_rank = False
        self.finals: list[list[ast.stmt]] = []
        self._answers: dict[tuple[int, Ranks | None, bool], list[Meeting]] = {}

    def meets(self, statements: Iterable[ast.stmt], side: Ranks | None = None) -> list[Meeting]:
        """The collectives that the statements come to, in order.

        side: the ranks that come; of another test of the rank only the branch that is theirs counts.
        """
        return [m for s in statements for m in self._known(s, side)] if self.state.met else []

    def _known(self, node: ast.stmt, side: Ranks | None) -> list[Meeting]:
        """What a statement comes to, remembered: each test of the rank asks for all that stands behind it."""
        key = (id(node), side, self.by_rank)
        if key not in self._answers:
            self._answers[key] = self._in_statement(node, side)
        return self._answers[key]

    def _in_statement(self, node: ast.stmt, side: Ranks | None) -> list[Meeting]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return []
        if side is None or not any(isinstance(n, (ast.If, ast.Match)) for n in (node, *walk_scope(node))):
            return [m for n in (node, *walk_scope(node)) for m in self.state.met.get(id(n), ()) if self._counts(m)]
        if isinstance(node, ast.If):
            here = self.in_expression(node.test)
            return [*here, *(m for arm in self._arms_of(node, side) for m in self.meets(arm, side))]
        found = [m for child in child_nodes(node) if isinstance(child, ast.expr) for m in self.in_expression(child)]
        return [*found, *(m for block in blocks_of(node) for m in self.meets(block, side))]

    def _arms_of(self, node: ast.If, side: Ranks | None) -> list[list[ast.stmt]]:
        """The arms that the ranks may take: of another test of the rank only theirs."""
        split = known_split(self.state.module, node.test, self.state.project)
        if split is not None and split.alone and side in (split.true, split.false) and split.true is not split.false:
            return [node.body if side is split.true else node.orelse]
        return [node.body, node.orelse]

    def in_expression(self, node: ast.expr) -> list[Meeting]:
        return [m for n in walk(node) for m in self.state.met.get(id(n), ()) if self._counts(m)]

    def _counts(self, meeting: Meeting) -> bool:
        """False for the forward of a parameter that is not known to be a wrapped model with buffers.

        Of a model that is not seen the forward counts under a test of the rank only: one rank that runs it alone is wrong anyway.
        What a called function keeps to rank 0 counts there, too: by any other test rank 0 alone is where it would be anyway.
        """
        if not self.by_rank and is_kept_to_one_rank(self.analysis.project, meeting):
            return False
        if not meeting.needs:
            return self.by_rank or not meeting.maybe
        thing = self.analysis.resolved(self.state.site, Value(Cause.UNKNOWN, params=frozenset({meeting.needs}))).thing
        if thing is None or thing.kind is not Kind.WRAPPED:
            return False
        return self.by_rank if thing.waits is None else thing.waits

    def test(self, node: ast.expr) -> Value:
        """What a test, or the source of a loop, decides, callers included."""
        return self.analysis.resolved(self.state.site, self.state.tests.get(id(node), SAME))

    def way(self, arm: Statements, rest: Statements, loop: Statements | None, side: Ranks | None = None) -> list[Meeting] | None:
        """What a rank comes to that takes this arm, as far as the end of the function; None where it raises or ends."""
        leaving = leaving_of(arm)
        here = self.meets(arm, side)
        if leaving is None:
            return [*here, *self.meets(rest, side), *(self.meets(loop, side) if loop else ())]
        here = [*here, *(m for block in self.finals for m in self.meets(block, side))]
        if isinstance(leaving, ast.Raise) or is_exit(leaving):
            return None
        if isinstance(leaving, ast.Continue):
            return [*here, *(self.meets(loop, side) if loop else ()), *self.meets(rest[end_of(rest) :], side)]
        if isinstance(leaving, ast.Break):
            return [*here, *self.meets(rest[end_of(rest) :] if loop else rest, side)]
        return here

    def ends(self, statements: Statements, side: Ranks | None) -> list[Counter[str]] | None:
        """What a rank has come to at each end of a function that the statements lead to, by its `return`s.

        None where a way out stands in a loop or a `try`, or where there are more ways than are worth the while.
        """
        found = self._ends(statements, side)
        return None if found is None else [met for met, _ in found]

    def _ends(self, statements: Statements, side: Ranks | None) -> list[tuple[Counter[str], bool]] | None:
        """The same, and whether the end is that of the function, or only that of the statements."""
        before: Counter[str] = Counter()
        for i, statement in enumerate(statements):
            if isinstance(statement, ast.Raise):
                return []
            if not any(isinstance(n, ast.Return) for n in walk_block([statement])):
                before.update(map(sort_of, self.meets([statement], side)))
            elif isinstance(statement, ast.Return):
                return [(before + Counter(map(sort_of, self.meets([statement], side))), True)]
            elif isinstance(statement, ast.If):
                before.update(map(sort_of, self.in_expression(statement.test)))
                found: list[tuple[Counter[str], bool]] = []
                for arm in self._arms_of(statement, side):
                    inner = self._ends([*arm, *statements[i + 1 :]], side)
                    if inner is None or len(found) + len(inner) > _MOST_ENDS:
                        return None
                    found += [(before + met, left) for met, left in inner]
                return found
            else:
                return None
        return [(before, False)]


def missed_of(way: list[Meeting], other: list[Meeting]) -> Meeting | None:
    """The first collective of one way that the other does not come to, as often."""
    left = Counter(sort_of(m) for m in other)
    for meeting in way:
        if left[sort_of(meeting)]:
            left[sort_of(meeting)] -= 1
        else:
            return meeting
    return None


def sort_of(meeting: Meeting) -> str:
    """What a meeting is matched by: one wait is as good as another."""
    return "barrier" if meeting.name in _WAITS else meeting.name
