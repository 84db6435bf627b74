"""The walk through a function: at each test, loop and `try`, do all ranks come to the same collectives?"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks, negated
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.exceptions import caught
from codemods.analysis.variance.exits import asks_number, cases_of, ends_process, leaving_of, own_break
from codemods.analysis.variance.inner_exits import inner_exits
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import Meeting
from codemods.analysis.variance.values import Cause, Value
from codemods.analysis.variance.ways import Statements, Ways, missed_of, sort_of
from codemods.files.source import walk_block
from codemods.runtime.record import replace

Arms = list[list[ast.stmt]]


class Walk(Ways):
    """Statement by statement; of statements inside of each other the outer one that parts the ranks is told."""

    def block(self, body: Statements, after: Statements, loop: Statements | None) -> Iterator[Mismatch]:
        """after: what comes behind the block in the function (in the round of the loop, where there is one); loop: its body."""
        for i, statement in enumerate(body):
            rest = (*body[i + 1 :], *after)
            yield from self.statement(statement, rest, loop)

    def statement(self, node: ast.stmt, rest: Statements, loop: Statements | None) -> Iterator[Mismatch]:
        if isinstance(node, ast.If):
            yield from self._branches(node, node.test, [node.body, node.orelse], rest, loop)
        elif isinstance(node, ast.Match):
            yield from self._branches(node, node.subject, cases_of(node), rest, loop)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            yield from self._loop(node, rest, loop)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            yield from self._attempt(node, rest, loop)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self.block(node.body, rest, loop)

    # Tests

    def _branches(
        self, node: ast.If | ast.Match, test: ast.expr, arms: Arms, rest: Statements, loop: Statements | None
    ) -> Iterator[Mismatch]:
        """A test that differs parts the ranks; where it parts them over nothing, what stands in the arms is looked at."""
        value = self.test(test)
        told = False
        several = several_processes(self.state.module, test)
        self.by_rank = value.cause is Cause.RANK
        if value.differs and several is None:
            for found in self._parting(node, value, arms, rest, loop):
                if not told or isinstance(found.leaving, ast.Break):  # a way out of the loop is another matter
                    yield found
                told = True
        self.by_rank = False
        if not told:
            if several is not None and isinstance(node, ast.If):
                arms = [node.body if several else node.orelse]  # one process alone takes the other
            for arm in arms:
                yield from self.block(arm, rest, loop)

    def _parting(self, node: ast.stmt, value: Value, arms: Arms, rest: Statements, loop: Statements | None) -> Iterator[Mismatch]:
        """Where the collectives of one arm, and of what comes behind it, are not those of another."""
        sides = self._sides(node, value, arms)
        if all(sides) and (self._balanced(sides) or (loop is None and self._end_alike(arms, sides, rest))):
            return
        if all(sides) and not any(leaving_of(arm) for arm in arms):  # what comes behind the test is asked at the tests there
            ways: list[list[Meeting] | None] = [self.meets(arm, side) for arm, side in zip(arms, sides, strict=True)]
            rest_of_all = self.meets(rest)
        else:
            ways = [self.way(arm, rest, loop, side) for arm, side in zip(arms, sides, strict=True)]
            rest_of_all = []
        for ending in filter(None, map(ends_process, arms)):
            if (value.cause is not Cause.RANK or len(value.chain) > 1) and self.state.is_parallel:
                yield Mismatch(Form.ENDS, node, value, next(iter(self.meets(rest)), None), ending)
        if value.cause is Cause.DATA and isinstance(node, ast.If) and asks_number(node.test):
            raising = leaving_of(node.body)
            if isinstance(raising, ast.Raise) and (met := self.meets(rest) or self.meets(loop or ())):
                yield Mismatch(Form.FAILS, node, value, met[0], raising)
        for found in self._missed_by_arms(node, value, arms, ways):
            named = self._waiting(node, found, arms, rest, loop)
            if named is not None:
                yield named
        if value.cause is not Cause.RANK:
            yield from inner_exits(self, node, value, arms, rest, loop)
        else:
            full = [None if w is None else [*w, *rest_of_all] for w in ways]
            yield from self._inner_exits(node, value, arms, full, sides)
            yield from self._inner_breaks(node, value, arms, loop)

    def _missed_by_arms(self, node: ast.stmt, value: Value, arms: Arms, ways: list[list[Meeting] | None]) -> Iterator[Mismatch]:
        """Each pair of arms, side by side; an arm that ends the process leads nowhere."""
        kept = [(arm, way) for arm, way in zip(arms, ways, strict=True) if way is not None]
        for i, (arm, way) in enumerate(kept):
            for other, way_of_other in kept[i + 1 :]:
                missed = missed_of(way, way_of_other) or missed_of(way_of_other, way)
                if missed is None:
                    continue
                leaving = leaving_of(arm) or leaving_of(other)
                if leaving is None:  # of several that are alike the one that stands in an arm is the one that is missed
                    alike = (m for each in (arm, other) for m in self.meets(each) if sort_of(m) == sort_of(missed))
                    missed = next(alike, missed)
                held = any(m is missed for each in arms for m in self.meets(each))
                yield Mismatch(Form.LEAVES if leaving is not None and not held else Form.DECIDES, node, value, missed, leaving)

    def _waiting(
        self, node: ast.stmt, found: Mismatch, arms: Arms, rest: Statements, loop: Statements | None
    ) -> Mismatch | None:
        """By a test of the rank and of more (`rank == 0 and stop`) the ranks wait that it never lets through: where they do.

        What stands under a test of the same rank below is no place of theirs. None where they wait nowhere.
        """
        split = known_split(self.state.module, node.test, self.state.project) if isinstance(node, ast.If) else None
        if split is None or split.alone or found.form is not Form.LEAVES or found.leaving is None:
            return found
        stays = 1 if leaving_of(arms[0]) is not None else 0
        side = negated(split.false if stays == 0 else split.true)
        if side is Ranks.UNKNOWN:
            return found
        theirs, left = self.way(arms[stays], rest, loop, side), self.way(arms[1 - stays], rest, loop)
        missed = missed_of(theirs or [], left or [])
        return replace(found, meeting=missed) if missed is not None else None

    def _sides(self, node: ast.stmt, value: Value, arms: Arms) -> list[Ranks | None]:
        """The ranks that take each arm, where a test of the rank alone decides."""
        split = known_split(self.state.module, node.test, self.state.project) if isinstance(node, ast.If) else None
        if value.cause is not Cause.RANK or split is None or not split.alone:
            return [None] * len(arms)
        return [split.true, split.false]

    @cached_property
    def _returns_early(self) -> bool:
        body = self.state.body
        return any(isinstance(n, ast.Return) for n in walk_block(body[:-1]))

    def _balanced(self, sides: list[Ranks | None]) -> bool:
        """True where both sides come to the same collectives in the function as a whole: two halves of one protocol."""
        if self._returns_early:
            return False
        body = self.state.body
        one, other = (Counter(sort_of(m) for m in self.meets(body, side)) for side in sides)
        return one == other

    def _end_alike(self, arms: Arms, sides: list[Ranks | None], rest: Statements) -> bool:
        """True where both sides have come to the same collectives at each `return` that they may leave by."""
        if not any(isinstance(n, ast.Return) for n in walk_block(list(rest))):
            return False
        ends = [self.ends([*arm, *rest], side) for arm, side in zip(arms, sides, strict=True)]
        one = ends[0]
        return bool(one) and all(each is not None and all(met == one[0] for met in each) for each in ends if one)

    def _inner_exits(
        self, node: ast.stmt, value: Value, arms: Arms, ways: list[list[Meeting] | None], sides: list[Ranks | None]
    ) -> Iterator[Mismatch]:
        """A `return` inside of the branch of one rank, past what that rank and all others come to at its end."""
        for i, arm in enumerate(arms):
            others = next((w for j, w in enumerate(ways) if j != i and w), None)
            if others is None or leaving_of(arm) is not None or any(m.name == others[0].name for m in self.meets(arm, sides[i])):
                continue
            for inner in (n for n in walk_block(arm) if isinstance(n, ast.Return)):
                yield Mismatch(Form.LEAVES, node, value, others[0], inner)
                return

    def _inner_breaks(self, node: ast.stmt, value: Value, arms: Arms, loop: Statements | None) -> Iterator[Mismatch]:
        """A `break` inside of the branch of one rank, out of a loop in which all ranks meet."""
        met = self.meets(loop) if loop else []
        for arm in arms:
            inner = own_break(arm) if met and leaving_of(arm) is None else None
            if inner is not None:
                yield Mismatch(Form.LEAVES, node, value, met[0], inner)
                return

    # Loops and exceptions

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, rest: Statements, loop: Statements | None) -> Iterator[Mismatch]:
        """A loop with a collective in it, whose rounds are not as many on every rank; else its body, round by round."""
        value = self.test(node.test if isinstance(node, ast.While) else node.iter)
        counted = isinstance(node, ast.While) or value.sized
        found = self.meets(node.body) if counted and value.differs else []
        if isinstance(node, ast.While) and value.differs:
            found = [*self.in_expression(node.test), *found]
        if found:
            yield Mismatch(Form.ROUNDS, node, value, found[0])
            for i, statement in enumerate(node.body):  # an error that is caught in a round parts the ranks in any case
                if isinstance(statement, (ast.Try, ast.TryStar)):
                    yield from caught(self, statement, (*node.body[i + 1 :], *rest), [*node.body])
            return
        mark = ast.Pass()  # where the loop ends among what comes behind
        yield from self.block(node.body, (mark, *node.orelse, *rest), [*node.body])
        yield from self.block(node.orelse, rest, loop)

    def _attempt(self, node: ast.Try | ast.TryStar, rest: Statements, loop: Statements | None) -> Iterator[Mismatch]:
        yield from caught(self, node, rest, loop)
        self.finals.append(node.finalbody)
        for block in ([*node.body, *node.orelse], *(h.body for h in node.handlers)):
            yield from self.block(block, (*node.finalbody, *rest), loop)
        self.finals.pop()
