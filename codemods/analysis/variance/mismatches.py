"""Where ranks part before a collective: a test, a loop, an exit or an exception that is not the same on all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.guards.no_group_at import may_have_no_group, no_group_at
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted
from codemods.analysis.ranks.exit_statuses import is_status
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.buffers import speaks_of_buffers
from codemods.analysis.variance.contradictions import contradicts_itself
from codemods.analysis.variance.exits import calls_in
from codemods.analysis.variance.may_meet import may_meet
from codemods.analysis.variance.other_forms import other_forms
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause
from codemods.analysis.variance.walk import Walk
from codemods.data.rank_variance import PROCESS_EXITS, STOP_FLAGS
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk, walk_block, walk_scope
from codemods.store.project import Project

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CHOICES = (ast.If, ast.Match, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar)
__all__ = ["Form", "Mismatch", "mismatches", "mismatches_in", "under_rank_tests"]


_NOT_SO = "the steps by which the ranks would differ exclude each other"


def mismatches_in(project: Project, module: SourceModule) -> tuple[Mismatch, ...]:
    """Those of a whole file, in the order of its lines; none where one process runs it."""

    def build() -> tuple[Mismatch, ...]:
        analysis = variance(project)
        if not analysis.is_parallel(module) and left(module, None, "several processes are not seen to run the file"):
            return ()
        found = [m for state in _parting_states(analysis, module) for m in mismatches(analysis, state)]
        found = [m for m in found if not (contradicts_itself(project, m.value.chain) and left(module, m.node, _NOT_SO))]
        found = [m for m in found if not (_meets_nobody(project, module, m) and left(module, m.node, "no group is there"))]
        return tuple(sorted(found, key=lambda m: (m.node.lineno, m.node.col_offset)))

    return project.memo(("mismatches", module.path), build)


def _meets_nobody(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where no group can be at the place at which the ranks part, or at that where some of them wait."""
    if not may_have_no_group(project, module):
        return False
    step = found.meeting.steps[0] if found.meeting is not None and found.meeting.steps else None
    calls = _calls_by_line(module).get(step.line, []) if step is not None and step.path == module.path else []
    return any(no_group_at(project, module, node) for node in (found.node, *calls))


@once_a_module
def _calls_by_line(module: SourceModule) -> dict[int, list[ast.Call]]:
    found: dict[int, list[ast.Call]] = {}
    for call in module.nodes(ast.Call):
        found.setdefault(call.lineno, []).append(call)
    return found


def _parting_states(analysis: Analysis, module: SourceModule) -> Iterator[State]:
    """The functions in which ranks can part before something, interpreted, and the file itself."""
    places = [analysis.of(FunctionSite(module, f)) for f in module.functions if _may_part(analysis.project, module, f)]
    top = [s for s in module.tree.body if not isinstance(s, _DEFINITIONS)]
    below = [n for s in top for n in walk(s)]
    above = analysis.top_level(module) if _parts_alone(below) or may_meet(analysis.project, module, top) else None
    yield from (s for s in (above, *places) if s is not None)


def _may_part(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that chooses a way and may come to a collective, and for one in which ranks part without that."""
    nodes = list(walk_scope(function))
    if _parts_alone(nodes):
        return True
    if not any(isinstance(n, _CHOICES) for n in nodes):
        return False
    owner = module.class_of(function)  # a `training_step` that gives no loss parts them, too
    if owner is not None and class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE):
        return True
    return may_meet(project, module, function.body)


def _parts_alone(nodes: Iterable[ast.AST]) -> bool:
    """True where one of the nodes ends the process, sets a flag for the framework, or is a `step`."""
    for node in nodes:
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in PROCESS_EXITS or (isinstance(node.func, ast.Attribute) and node.func.attr == "step") or name == "step":
                return True
        elif isinstance(node, ast.Attribute) and (node.attr in STOP_FLAGS or node.attr == "param_groups"):
            return True
    return False


def mismatches(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """Every place of a function where what differs between the ranks decides over a collective."""
    yield from other_forms(analysis, state)
    if not state.met and not any(dotted(c.func) in PROCESS_EXITS for c in calls_in(state.body)):
        return
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_block(state.body)):
        return  # the two halves of a context manager, or a generator: who goes on is decided elsewhere
    yield from Walk(analysis, state).block(state.body, (), None)


def under_rank_tests(project: Project, module: SourceModule, told: set[int]) -> Iterator[tuple[ast.AST, Mismatch]]:
    """(call, mismatch) for collectives that a plain test of the rank keeps from some ranks, where nothing in `told` stands near.

    told: lines of which a finding speaks already.
    """
    for found in mismatches_in(project, module):
        if found.value.cause is not Cause.RANK or len(found.value.chain) > 1 or found.meeting is None or not found.meeting.must:
            continue
        if found.form not in (Form.DECIDES, Form.LEAVES) or not isinstance(found.node, (ast.If, ast.Match)):
            continue
        if found.meeting.name == "forward" and found.meeting.maybe and not speaks_of_buffers(project):
            continue
        seen = len(found.meeting.steps) == 1 and found.meeting.name not in ("forward", "backward", "compute")
        if (seen and not isinstance(found.leaving, ast.Break)) or _has_other_half(project, module, found):
            continue  # what stands there itself is laid side by side in `ranks/matching`
        line = found.meeting.steps[0].line
        near = {*range(found.node.lineno, (found.node.end_lineno or found.node.lineno) + 1), line}
        if not near & told:
            call = next((c for c in module.nodes(ast.Call) if c.lineno == line), found.node)
            at_exit = found.form is Form.LEAVES and found.meeting.name != "forward"
            yield (found.leaving or found.node if at_exit else call), found


def _has_other_half(project: Project, module: SourceModule, found: Mismatch) -> bool:
    """True where the ranks that miss it make calls of their own, which may be the other half, or give back a status."""
    if isinstance(found.leaving, ast.Return) and isinstance(found.leaving.value, (ast.Constant, ast.UnaryOp)):
        value = found.leaving.value
        return not is_none(value) and (not _is_number(value) or is_status(project, module, found.leaving))
    other = found.node.orelse if isinstance(found.node, ast.If) else []
    return bool(other) and any(True for _ in calls_in(other))


def _is_number(value: ast.expr) -> bool:
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int) and not isinstance(inner.value, bool)
