"""What rank 0 alone does to a path, by the guard under which it does."""

from __future__ import annotations

import ast

from codemods.analysis.files.alike_paths import may_meet
from codemods.analysis.files.file_calls import CHANGES, Act, file_call, meets, names_the_rank
from codemods.analysis.files.file_flow import brought_out, callee, may_touch_files
from codemods.analysis.files.file_paths import forms
from codemods.analysis.guards.leaders import leader
from codemods.analysis.guards.leading_calls import is_all_of
from codemods.analysis.ranks.collectives import trainer_of
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over, ranks_at, speaks_of_ranks
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Write:
    """A change of a path that rank 0 alone makes. forms: the path, in the words of the function asked about.

    path: the expression itself, where what the function gives to others is to be asked. loosely: a path that may be the same
    counts as well.
    """

    act: Act
    forms: frozenset[str]
    module: SourceModule
    call: ast.AST
    written: str
    path: ast.expr | None = None
    loosely: bool = False

    def meets(self, used: Act, path: str) -> bool:
        """True where a use of the path on another rank needs the change."""
        test = may_meet if self.loosely else meets
        return any(test(self.act, made, used, path) for made in self.forms)


Places = dict[tuple[ast.stmt, FunctionNode | None], tuple[Ranks, list[Write]]]


def guarded_changes(project: Project, module: SourceModule) -> Places:
    """The guards under which paths are changed; with the function, where all of the rest of it is guarded."""
    found: Places = {}
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        touched = file_call(module, call)
        if touched is not None and touched.act not in CHANGES:
            continue
        if saved := _saved_by_main(project, module, call):
            found.setdefault((module.statement_of(call), None), (Ranks.ZERO, []))[1].append(saved)
            continue
        if not speaks_of_ranks(module, function, project):
            continue
        stored = touched is None and _stored_by_trainer(project, module, call) is not None
        if touched is None and not stored and not may_touch_files(project, module, call):
            continue
        guard = _outermost(project, module, call)
        if guard is None or not (writes := _writes(project, module, call)):
            continue
        statement = _anchor(module, guard)
        whole = function if guard.kind in ("exit", "decorator") or is_all_of(function, statement) else None
        if statement is not None:
            found.setdefault((statement, whole), (leader(project, module, guard) or guard.ranks, []))[1].extend(writes)
    return found


def _outermost(project: Project, module: SourceModule, call: ast.Call) -> Guard | None:
    """The outermost rank test round a call, if rank 0 alone is sure to pass all of them."""
    guards = [g for g in guards_over(module, call, project=project) if g.ranks.some]
    if not guards:
        return None
    unsure = next((g for g in guards if leader(project, module, g) is None), None)
    if unsure is not None and left(module, call, "rank 0 is not sure to pass this test", at=unsure.node):
        return None
    return None if in_turn(project, module, call) and left(module, call, "the ranks go through it in turn") else guards[-1]


def _anchor(module: SourceModule, guard: Guard) -> ast.stmt | None:
    if isinstance(guard.node, (ast.FunctionDef, ast.AsyncFunctionDef)) or guard.kind == "exit":
        return guard.node if isinstance(guard.node, ast.stmt) else None
    statement = module.statement_of(guard.node)
    parent = module.parent(statement)
    while isinstance(parent, ast.If) and isinstance(statement, ast.If) and _is_elif(module, statement):
        statement, parent = parent, module.parent(parent)
    return statement


def _is_elif(module: SourceModule, statement: ast.If) -> bool:
    return module.text_at(module.span(statement)).startswith("elif")


def _writes(project: Project, module: SourceModule, call: ast.Call) -> list[Write]:
    """What a call on rank 0 changes; nothing where something behind it in its branch waits for the other ranks."""
    if (saved := _stored_by_trainer(project, module, call)) is not None:
        return [saved]
    if found := file_call(module, call):
        if names_the_rank(found.path) and left(module, call, "the path {} names the rank", found.path):
            return []
        known = forms(module, found.path)
        written = "" if isinstance(found.path, ast.Starred) else module.text_of(found.path)
        return [Write(found.act, known, module, call, written)] if known else []
    site = callee(project, module, call)
    if site is None:
        return []
    steps = list(brought_out(project, site, module, call, Ranks.ALL))
    made: list[Write] = []
    for step in steps:
        if step.act is None:
            made = []
        elif step.act in CHANGES and step.ranks in (Ranks.ALL, Ranks.ZERO):
            inner = file_call(step.module, step.call) if isinstance(step.call, ast.Call) else None
            made.append(Write(step.act, step.forms, step.module, step.call, step.module.text_of(inner.path) if inner else ""))
    return made


def _saved_by_main(project: Project, module: SourceModule, call: ast.Call) -> Write | None:
    """`trainer.save_model(path)` of transformers: the main process writes, and nobody waits."""
    found = _stored_by_trainer(project, module, call)
    return None if found is None or ranks_at(module, call, project=project).some else found


def _stored_by_trainer(project: Project, module: SourceModule, call: ast.Call) -> Write | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "save_model" or not call.args:
        return None
    if trainer_of(module, call.func.value, project) != "transformers" or not isinstance(module.statement_of(call), ast.Expr):
        return None
    known = forms(module, call.args[0])
    return Write(Act.FILLS, known, module, call, module.text_of(call.args[0])) if known else None
