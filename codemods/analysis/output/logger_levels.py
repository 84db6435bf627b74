"""A logger that each rank builds for itself: its level goes by the rank where it is built, in the place of a test at every line.

The other ranks go on saying what is a warning or worse.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.effects import Kind, names_rank
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.api.findings import Edit, ReplaceExpression
from codemods.data.host_only import LEVELS
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.runtime.record import record
from codemods.store.project import Project

_MANY = 4  # lines of a logger from which on its level is the shorter change
# Ranks that Lightning starts inside `fit`: their objects are copies of those that the first process has made.
_COPIED = (b"ddp_spawn", b"ddp_fork", b"ddp_notebook", b"notebook_launcher")
_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript)
_LIGHTNING = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE)


@record
class Level:
    """line: where the level is set."""

    edits: tuple[Edit, ...]
    logger: str
    line: int


def level_by_rank(project: Project, module: SourceModule, run: Run) -> Level | None:
    """The level of the logger that all lines of the run go through, set by the rank; None where that is not sure to do."""
    owner, name = module.class_of(run.first), _logger(module, run)
    if owner is None or not name:
        return None
    return project.memo(("level by rank", module.path, owner.lineno, name), lambda: _find(project, module, owner, name))


def has_level_by_rank(project: Project, module: SourceModule, run: Run) -> bool:
    """True where that is done already: the run is silent on the other ranks."""
    owner, name = module.class_of(run.first), _logger(module, run)
    built = _built(module, owner, name) if owner is not None and name else None
    level = _level_of(module, *built[:2]) if built is not None else None
    return isinstance(level, ast.IfExp) and ranks_of_test(module, level.test, project=project) is Ranks.ZERO


def _logger(module: SourceModule, run: Run) -> str:
    """`self.log`, where all that the run puts out goes through it; "" else."""
    names = {e.text.rpartition(".")[0] if e.kind is Kind.LOG and e.path == module.path else "" for e in run.effects.output}
    name = names.pop() if len(names) == 1 else ""
    return name if name.startswith("self.") and name.count(".") == 1 else ""


def _find(project: Project, module: SourceModule, owner: ast.ClassDef, name: str) -> Level | None:
    lines = [c for c in module.calls_named(*LEVELS) if module.class_of(c) is owner and dotted(c.func).rpartition(".")[0] == name]
    told = [c for c in lines if dotted(c.func).endswith((".info", ".debug"))]
    if len(told) < _MANY or any(names_rank(module.text_of(c)) for c in told):
        return None
    built = _built(module, owner, name)
    level = _level_of(module, *built[:2]) if built is not None else None
    if built is None or level is None or not isinstance(level, _PLAIN) or level.lineno != level.end_lineno:
        return None
    if any(project.files_containing(word) for word in _COPIED):
        return None
    spelled = _spelling(project, module, owner, module.statement_of(level))
    logging = dotted(built[2].func).rpartition(".")[0]
    if spelled is None or not logging:
        return None
    code = f"{module.text_of(level)} if {spelled.test} else {logging}.WARNING"
    return Level((ReplaceExpression(module.path, module.span(level), code), *spelled.edits), name, level.lineno)


def _built(module: SourceModule, owner: ast.ClassDef, name: str) -> tuple[FunctionNode, str, ast.Call] | None:
    """(the method that builds the logger, what it calls it there, the call of `getLogger`): the only one of the file."""
    made = [c for c in module.calls_named("getLogger") if qualified(module, c.func) == "logging.getLogger"]
    given = [a for a in module.nodes(ast.Assign) if module.class_of(a) is owner and [dotted(t) for t in a.targets] == [name]]
    if len(made) != 1 or not made[0].args or len(given) != 1:
        return None
    method = module.function_of(made[0])
    if method is None or module.parent(method) is not owner:
        return None
    if given[0].value is made[0]:
        return method, name, made[0]
    assign = module.parent(made[0])
    local = dotted(assign.targets[0]) if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else ""
    back = [n.value for n in walk_scope(method) if isinstance(n, ast.Return)]
    called = given[0].value
    handed = len(back) == 1 and isinstance(back[0], ast.Name) and back[0].id == local
    comes = isinstance(called, ast.Call) and dotted(called.func) == f"self.{method.name}"
    return (method, local, made[0]) if handed and comes else None


def _level_of(module: SourceModule, method: FunctionNode, local: str) -> ast.expr | None:
    """What the method sets the logger's level to, where it does so once and in any case."""
    calls = [n for n in walk(method) if isinstance(n, ast.Call) and dotted(n.func) == f"{local}.setLevel"]
    if len(calls) != 1 or not any(s is module.statement_of(calls[0]) for s in method.body):
        return None
    given = [*calls[0].args, *(k.value for k in calls[0].keywords)]
    return given[0] if len(given) == 1 else None


def _spelling(project: Project, module: SourceModule, owner: ast.ClassDef, statement: ast.stmt) -> Spelling | None:
    """The test for rank 0 where the logger is built: no Trainer is attached to Lightning's objects by then."""
    facts = class_facts(project, module, owner)
    if not any(facts.is_a(role) for role in _LIGHTNING):
        found = guard_for(project, module, statement, lines=True)
        return found if found is not None and not found.assumes else None
    planned = plan_rank_zero_only(module)
    return Spelling(f"{planned.name}.rank == 0", planned.edits) if planned else None
