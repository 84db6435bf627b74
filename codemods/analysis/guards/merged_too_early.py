"""What rank 0 alone reads, or removes, while others may still write it.

Each rank has written its part above, and nobody waits between the two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.file_flow import Step, callee, holder_of, ranks_in_function, steps_in
from codemods.analysis.files.file_paths import names_in, outside
from codemods.analysis.files.parts_of_ranks import counted_round, lies_in, listed_with, reads_what_it_lists, same_series
from codemods.analysis.guards.file_handover import Use, statements_above
from codemods.analysis.guards.leading_calls import leading_to
from codemods.analysis.positions import behind
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_guards import Ranks, early_exit, guards_over, ranks_at, split_of
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.uses import calls_of
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.values import Cause, Proof
from codemods.files.source import FunctionNode, SourceModule, walk, walk_block
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_ZEROS = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_READS = frozenset({Act.READS, Act.LOADS, Act.LISTS, Act.REMOVES})
_CLIMBS = 2
_CALLERS = 6


@record
class Merge:
    """anchor: the guard, above which rank 0 should wait.

    read: where it reads or removes the parts. write: where each rank writes its own.
    """

    module: SourceModule
    anchor: ast.stmt
    read: Use
    write: Use
    ranks: Ranks

    @property
    def function(self) -> FunctionNode | None:
        return self.module.function_of(self.anchor)


@record
class _Read:
    """forms: the path in the words of the function asked about. counted: the names of loops that it is read in."""

    use: Use
    forms: frozenset[str]
    counted: frozenset[str]


def merges(project: Project, module: SourceModule) -> Iterator[Merge]:
    """The guards under which rank 0 reads what every rank has written a part of, with nobody who waits."""
    if not module.holds(b"rank") and not module.holds(b"process_index"):
        return
    for anchor, ranks, branch in _branches(project, module):
        if ranks_at(module, anchor, project=project).some or in_turn(project, module, anchor):
            continue
        reads = list(_reads(project, module, anchor, branch))
        if reads and (found := _last_write(project, module, anchor, reads, 0)) is not None:
            yield Merge(module, anchor, found[0].use, found[1], ranks)


def _branches(project: Project, module: SourceModule) -> Iterator[tuple[ast.stmt, Ranks, Sequence[ast.stmt]]]:
    """(the guard, who passes, what they alone run)."""
    for test in module.nodes(ast.If):
        split = split_of(module, test.test, project)
        if split is None:
            continue
        if split.true in _ZEROS:
            yield test, split.true, test.body
        elif split.false in _ZEROS and test.orelse:
            yield test, split.false, test.orelse
        elif split.false in _ZEROS and early_exit(module, test, project=project) is not None:
            yield test, split.false, behind(module, test)


def _reads(project: Project, module: SourceModule, anchor: ast.stmt, branch: Sequence[ast.stmt]) -> Iterator[_Read]:
    """The series of files that a branch reads before it waits for anybody."""
    for statement in branch:
        for step in steps_in(project, module, [statement]):
            if step.act is None:
                return
            if step.act not in _READS or not isinstance(step.call, ast.Call):
                continue
            if step.act is Act.LISTS and not reads_what_it_lists(step.module, step.call):
                continue
            counted = counted_round(step.module, step.call, _scope(module, anchor, step))
            if (leading := leading_to(project, module, statement, step.call)) is not None:
                counted |= counted_round(module, leading[1], anchor)
            if counted or step.act in (Act.LISTS, Act.REMOVES):
                yield _Read(Use(step.module, step.call, step.act), step.forms, counted)


def _scope(module: SourceModule, anchor: ast.stmt, step: Step) -> ast.AST | None:
    """How far round a read loops count: a loop round the guard itself is the training's."""
    function = step.module.function_of(step.call)
    if step.module is not module or function is not module.function_of(anchor):
        return function
    inside = any(n is step.call for n in walk(anchor))
    return anchor if inside else module.parent(anchor)


def _last_write(
    project: Project, module: SourceModule, anchor: ast.stmt, reads: list[_Read], climbs: int
) -> tuple[_Read, Use] | None:
    for statement in reversed(statements_above(module, anchor)):
        reads = [kept for read in reads if (kept := _meaning_the_same(read, statement)).forms]
        for step in reversed(list(steps_in(project, module, [statement]))) if reads else ():
            if step.act is None:
                return None
            if step.act is Act.WRITES and isinstance(step.call, ast.Call):
                read = next((r for r in reads if _is_part(project, module, statement, step, r)), None)
                if read is not None:
                    return read, Use(step.module, step.call, step.act)
    return _above_calls(project, module, anchor, reads, climbs) if reads and climbs < _CLIMBS else None


def _meaning_the_same(read: _Read, statement: ast.stmt) -> _Read:
    """A read without the forms that hang on a name which the statement gives another value."""
    stored = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))}
    return replace(read, forms=frozenset(f for f in read.forms if not (names_in(f) - read.counted) & stored))


def _is_part(project: Project, module: SourceModule, statement: ast.stmt, step: Step, read: _Read) -> bool:
    """True where every rank writes its part of what is read there."""
    if not _comes_from_all(project, module, statement, step):
        return False
    own = _items(project, module, statement, step.call) if step.module is module else frozenset()
    for made in step.forms:
        for used in read.forms:
            if read.use.act is Act.LISTS and listed_with(made, used):
                return True
            if read.use.act is Act.REMOVES and lies_in(made, used, own):
                return True
            if read.use.act is not Act.LISTS and same_series(made, used, read.counted, own):
                return True
    return False


def _comes_from_all(project: Project, module: SourceModule, statement: ast.stmt, step: Step) -> bool:
    if step.ranks is Ranks.ZERO or any(g.ranks.some for g in guards_over(step.module, step.call, project=project)):
        return False
    leading = leading_to(project, module, statement, step.call)
    return leading is None or ranks_in_function(project, module, leading[1]) is Ranks.ALL


def _items(project: Project, module: SourceModule, statement: ast.stmt, call: ast.AST) -> frozenset[str]:
    """The names that stand for the rank's own samples where a call is made: what a loop over its share binds."""
    for loop in (up for up in module.ancestors(call) if isinstance(up, ast.For)):
        value = variance(project).value(module, unpacked(loop.iter))
        if value.cause is Cause.DATA and value.proof is Proof.PROVEN:
            bound = (n for n in (*walk(loop.target), *walk_block(loop.body)) if isinstance(n, ast.Name))
            return frozenset(n.id for n in bound if isinstance(n.ctx, ast.Store))
        if loop is statement:
            break
    return frozenset()


def _above_calls(
    project: Project, module: SourceModule, anchor: ast.stmt, reads: list[_Read], climbs: int
) -> tuple[_Read, Use] | None:
    """What was written above the calls of the guard's function."""
    function = module.function_of(anchor)
    if function is None or called_by_framework(project, module, function) is not None:
        return None
    for site in (calls_of(project, module, function) or ())[:_CALLERS]:
        if ranks_in_function(project, site.module, site.call) is not Ranks.ALL or in_turn(project, site.module, site.call):
            continue
        if callee(project, site.module, site.call) is None:
            continue
        carried = list(_carried(module, function, site.module, site.call, reads))
        statement = site.module.statement_of(site.call)
        if carried and (found := _last_write(project, site.module, statement, carried, climbs + 1)) is not None:
            return found
    return None


def _carried(
    module: SourceModule, function: FunctionNode, caller: SourceModule, call: ast.Call, reads: list[_Read]
) -> Iterator[_Read]:
    holder = holder_of(caller, call, FunctionSite(module, function))
    for read in reads:
        said = frozenset[str]().union(*(outside(f, function, module, caller, call, holder) for f in read.forms))
        if said:
            yield replace(read, forms=said)
