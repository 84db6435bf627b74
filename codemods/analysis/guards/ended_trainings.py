"""A collective behind Accelerate's `end_training()`, which destroys the process group.

Measured on two gloo processes with Accelerate 1.15: `wait_for_everyone`, `gather`, `reduce` and `main_process_first` raise there,
`unwrap_model`, `get_state_dict` of plain DDP and `save_state` do not. In a notebook's launcher the group stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.branches import branches_round
from codemods.analysis.frameworks import accelerate_pin
from codemods.analysis.guards.called_with_group import words_of
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.guards.group_may_be_missing import ASKED
from codemods.analysis.handlers import tries_over
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import behind
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_guards import guards_over
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

ENDS = b".end_training("
_DESTROYS = (0, 34)  # of Accelerate: `end_training` destroys the process group
_WAITS = frozenset(
    {"wait_for_everyone", "gather", "gather_for_metrics", "reduce", "main_process_first", "local_main_process_first"}
)
_MADE_WITHOUT = frozenset({"init_process_group", "DistributedDataParallel", "new_group"})
_FORKS = (b"notebook_launcher", b"debug_launcher")
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@record
class EndedTraining:
    """ends: the call that destroys the group. needs: the first one behind it that cannot do without. under: the tests round ends.

    known: the pin by which the version is one that destroys the group, which stands in `path` and `line`; "" where none says so.
    """

    ends: ast.Call
    needs: ast.Call
    under: str
    known: str
    path: str
    line: int


def ended_trainings(project: Project, module: SourceModule) -> Iterator[EndedTraining]:
    """Each `end_training()` of an Accelerator behind which the same function comes to a collective."""
    calls = [c for c in module.calls_named("end_training") if isinstance(c.func, ast.Attribute)]
    calls = [c for c in calls if isinstance(c.func, ast.Attribute) and is_accelerator(project, module, c.func.value)]
    if not calls or any(project.files_containing(word) for word in _FORKS):
        return
    pin = accelerate_pin(project, near=module.path)
    if pin is not None and pin.surely_below(_DESTROYS) and left(module, calls[0], "Accelerate is older than 0.34"):
        return
    for call in calls:
        if (needs := _first_behind(project, module, call)) is not None:
            known = pin is not None and pin.surely_at_least(_DESTROYS)
            where = (pin.path, pin.line) if pin is not None else ("", 0)
            under = " and ".join(f"`{module.text_of(t)}`" for t in reversed(_tests(module, call)))
            yield EndedTraining(call, needs, under, pin.text if pin is not None and known else "", *where)


def _first_behind(project: Project, module: SourceModule, ends: ast.Call) -> ast.Call | None:
    tests = [module.text_of(t) for t in _tests(module, ends)]
    for statement in _statements_behind(module, ends):
        calls = [n for n in (statement, *walk_scope(statement)) if isinstance(n, ast.Call)]
        for call in sorted(calls, key=lambda c: (c.lineno, c.col_offset)):
            if starts_group(module, call) or last(qualified(module, call.func)) in ("Accelerator", "_reset_state"):
                return None  # there may be a group again
            if _needs_group(project, module, call, ends) and not _is_apart(project, module, call, tests):
                return call
    return None


def _statements_behind(module: SourceModule, ends: ast.Call) -> Iterator[ast.stmt]:
    """What the function runs once the call is made, up to where it leaves: behind the call, and behind each block round it."""
    statement: ast.AST = module.statement_of(ends)
    while isinstance(statement, ast.stmt) and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for later in behind(module, statement):
            if isinstance(later, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            yield later
            if isinstance(later, _LEAVES) or leaves([later]):
                return
        above = module.parent(statement)
        if above is None or isinstance(above, (ast.ExceptHandler, ast.Try)):
            return  # an error may have led here, or be caught there
        statement = above


def _needs_group(project: Project, module: SourceModule, call: ast.Call, ends: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _WAITS and isinstance(ends.func, ast.Attribute):
        return dotted(func.value) != "" and dotted(func.value) == dotted(ends.func.value)
    found = collective_at(module, call, project)
    return found is not None and found.framework == "torch" and found.name not in _MADE_WITHOUT and not found.grouped


def _is_apart(project: Project, module: SourceModule, call: ast.Call, tests: list[str]) -> bool:
    """True on some ranks, under a test for a group or one that may exclude that of the end, and where the error is caught."""
    if any(g.ranks.some for g in guards_over(module, call, project=project)):
        return True
    if any(t.handlers for t in tries_over(module, call)) or any(words_of(t) & ASKED for t in _tests(module, call)):
        return True
    others = [t for t in _tests(module, call) if module.text_of(t) not in tests]
    words = {w for t in tests for w in _words(ast.parse(t, mode="eval"))}
    return any(words & _words(t) for t in others) or _in_other_arm(module, call)


def _in_other_arm(module: SourceModule, call: ast.Call) -> bool:
    """True below the `else` of a test: with the test of the end it may never be run."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and any(s is below for s in up.orelse):
            return True
        below = up
    return False


def _tests(module: SourceModule, node: ast.AST) -> list[ast.expr]:
    """The tests round a node within its function, the innermost first."""
    return [branch.test for branch in branches_round(module, node, kinds=(ast.If, ast.IfExp), until=(ast.Lambda,))]


def _words(node: ast.AST) -> set[str]:
    """The names and fields that a test speaks of, without the objects that hold the fields."""
    fields = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    holders = {id(f.value) for f in fields}
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in holders]
    return {*names, *(f.attr for f in fields)}
