"""The branches of a statement, each with the ranks that take it: `if`, `while`, `match`. Tests are resolved once a file."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_carriers import may_speak_of_ranks
from codemods.analysis.ranks.rank_comparisons import constant_of
from codemods.analysis.ranks.rank_sets import Ranks, Split, both, negated
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.rank_tests import split_of
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record
from codemods.store.project import Project

# By the id of a test. Named once: making such a type at each call costs more than the call.


@record
class Branch:
    """A block and the ranks that run it. alone: nothing but the rank decides. rest: the ranks that may pass it by."""

    ranks: Ranks
    body: list[ast.stmt]
    alone: bool
    rest: Ranks = Ranks.UNKNOWN


def known_split(module: SourceModule, test: ast.expr, project: Project | None) -> Split | None:
    """What a test says of ranks, remembered: many statements stand under the same one."""
    def build() -> Split | None:
        return split_of(module, test, project) if may_speak_of_ranks(module, test, project) else None

    if project is not None:
        return project.memo(("rank tests", module.path, id(test)), build)
    known = _alone(module)
    if id(test) not in known:
        known[id(test)] = build()
    return known[id(test)]


@once_a_module
def _alone(module: SourceModule) -> dict[int, Split | None]:
    return {}


def ranks_of_test(module: SourceModule, test: ast.expr, *, project: Project | None = None) -> Ranks | None:
    """The ranks for which a test can be true; None where it has nothing to do with ranks."""
    split = known_split(module, test, project)
    return split.true if split else None


def branches_of(module: SourceModule, statement: ast.If | ast.Match, project: Project | None) -> tuple[Branch, ...]:
    """The blocks of an `if` or a `match`, the missing ones too; none where ranks have no say."""
    if isinstance(statement, ast.Match):
        return _cases(module, statement, project)
    split = known_split(module, statement.test, project)
    if split is None:
        return ()
    return (
        Branch(split.true, statement.body, split.alone, split.false),
        Branch(split.false, statement.orelse, split.alone, split.true),
    )


def _cases(module: SourceModule, match: ast.Match, project: Project | None) -> tuple[Branch, ...]:
    """`match rank: case 0: …`, and guards of cases (`case _ if rank == 0`)."""
    split = known_split(module, match.subject, project)
    source = rank_source(module, match.subject, project)
    guards = [known_split(module, c.guard, project) if c.guard else None for c in match.cases]
    if split is None and source is None and not any(guards):
        return ()
    left: Ranks = Ranks.ALL
    found: list[Branch] = []
    closed = False
    for case, guard in zip(match.cases, guards, strict=True):
        here = _pattern(module, case.pattern, source, split)
        ranks = both(left, here.true)
        if guard is not None:
            ranks = both(ranks, guard.true)
        found.append(Branch(ranks, case.body, case.guard is None or (guard is not None and guard.alone)))
        if case.guard is None:
            left = Ranks.UNKNOWN if here.false is Ranks.UNKNOWN else both(left, here.false)
            closed = closed or takes_all(case.pattern)
        elif guard is not None and takes_all(case.pattern):
            left = both(left, guard.false)
    return (*found, *(() if closed else (Branch(left, [], True),)))


def _pattern(module: SourceModule, pattern: ast.pattern, source: Ranks | None, split: Split | None) -> Split:
    """The ranks for which a pattern of the subject (a rank, or a test of one) can match, and those for which it can fail."""
    if takes_all(pattern):
        return Split(Ranks.ALL, Ranks.ALL)
    if isinstance(pattern, ast.MatchSingleton) and split is not None and isinstance(pattern.value, bool):
        return split if pattern.value else split.turned
    if source is None or source is Ranks.UNKNOWN:
        return Split(Ranks.ALL, Ranks.ALL) if source is None and split is None else Split(Ranks.UNKNOWN, Ranks.UNKNOWN)
    parts = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    values = {str(constant_of(module, p.value)) if isinstance(p, ast.MatchValue) else "None" for p in parts}
    if "0" in values and values <= {"0", "-1", "None"}:
        return Split(source, negated(source))
    return Split(Ranks.UNKNOWN, Ranks.UNKNOWN)


def takes_all(pattern: ast.pattern) -> bool:
    """True for `case _` and `case name`."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None
