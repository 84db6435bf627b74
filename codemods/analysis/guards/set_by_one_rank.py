"""Which ways of parting are decisions of one rank, and where that rank gives what it decides by."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.guards.told_collectives import guarded_here
from codemods.analysis.literals import is_none
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.used_on_all import is_missing_elsewhere
from codemods.analysis.variance.exits import is_failure
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import STEP
from codemods.analysis.variance.values import Cause, How
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_SHARED = lazy(r"\b(?:b(?:road)?cast\w*|all_?reduce|all_?gather\w*)\(")


def is_decision(found: Mismatch) -> bool:
    """Shares of unequal length are DDP411's, tests of the rank those of DDP301 and DDP303."""
    if found.form is Form.FAILS or (found.form is Form.ENDS and is_failure(found.leaving)):
        return False
    if found.value.cause is Cause.RANK:
        if any(_SHARED.search(link.text) for link in found.value.chain):
            return False  # what one rank has worked out is handed to all of them on the way
        decides = found.form in (Form.LEAVES, Form.DECIDES, Form.ROUNDS, Form.ENDS)
        return decides and len(found.value.chain) > 1 and (not isinstance(found.node, ast.For) or is_set_by_test(found))
    return not (found.form is Form.ROUNDS and found.value.sized and not isinstance(found.node, ast.While))


def is_set_by_test(found: Mismatch) -> bool:
    """True for what is given a value under a test of the rank."""
    way = found.value.chain
    return len(way) > 1 and way[-1].how is How.ASKS_RANK and way[-2].how is How.ASSIGNED


def stays_on_one_rank(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where what one rank sets changes nothing for the others, decides for that rank alone, or is not there on them."""
    if is_there_on_all(project, module, found) or is_on_one_side(module, found) or _waits_first(project, module, found):
        return True
    return is_set_nowhere_else(project, module, found) or _trains_alone(project, module, found)


def _trains_alone(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True for an error in a step of training that one rank alone comes to: no other waits in its backward pass."""
    attempt = module.parent(found.node)
    if found.form is not Form.RAISES or found.meeting is None or not isinstance(attempt, (ast.Try, ast.TryStar)):
        return False
    if found.meeting.name not in ("backward", "forward", STEP) or not _holds(attempt.body, found.meeting.steps[0].line):
        return False
    return ranks_reaching(project, module, attempt) in _OF_ZERO


def _waits_first(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where the rank waits in the branch itself, above its exit: it gets no further (DDP301 tells of that)."""
    if found.value.cause is not Cause.RANK or not isinstance(found.node, ast.If) or found.leaving is None:
        return False
    alone = (s for s in guarded_here(project, module) if s.guard.node is found.node)
    return any(s.node.lineno < found.leaving.lineno and _holds(found.node.body, s.node.lineno) for s in alone)


def is_on_one_side(module: SourceModule, found: Mismatch) -> bool:
    """True where the value is given, and decides, in one branch of the test of the rank: whoever comes there has that value.

    Two roles of a protocol (one process hands out, the others wait in a branch of their own) part at the test, not here.
    """
    if found.value.cause is not Cause.RANK or not is_set_by_test(found):
        return False
    asked, given = found.value.chain[-1], found.value.chain[-2]
    if {asked.path, given.path} != {module.path}:
        return False
    arms = [arm for test in module.nodes(ast.If) if test.lineno == asked.line for arm in (test.body, test.orelse)]
    return any(_holds(arm, given.line) and _holds(arm, found.node.lineno) for arm in arms)


def _holds(block: list[ast.stmt], line: int) -> bool:
    return bool(block) and block[0].lineno <= line <= (block[-1].end_lineno or 0)


def set_by_one_rank(module: SourceModule, found: Mismatch) -> ast.AST:
    """The statement under the test of the rank that gives the value, where it stands in this file: there it has to be shared.

    Of a step without a loss the exit; of all else, and of ways out of a loop, the statement that decides.
    """
    if found.form is Form.NO_LOSS and found.leaving is not None:
        return found.leaving
    if found.form is Form.LEAVES or found.value.cause is not Cause.RANK:
        return found.node
    if not is_set_by_test(found) or found.value.chain[-2].path != module.path:
        return found.node
    line = found.value.chain[-2].line
    return next((s for s in module.nodes(ast.Assign) if s.lineno == line), found.node)


def is_set_nowhere_else(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where the other ranks have no value to decide by: they end at the first use of the name (DDP210)."""
    at = set_by_one_rank(module, found)
    if at is found.node:
        return False
    names = [n.id for n in ast.walk(at) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return any(is_missing_elsewhere(project, module, at, name) for name in names)


def is_there_on_all(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where a test asks whether a name is None, and every rank gives it something: what rank 0 gives it changes nothing."""
    test = found.node.test if isinstance(found.node, (ast.If, ast.While)) else None
    if found.value.cause is not Cause.RANK or not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return False
    if not isinstance(test.ops[0], (ast.Is, ast.IsNot)) or not is_none(test.comparators[0]):
        return False
    given = (b for b in bindings_of(module, test.left) if b.value is not None and not is_none(b.value))
    return any(ranks_at(module, b.node, project=project) in (Ranks.ALL, Ranks.UNKNOWN) for b in given)
