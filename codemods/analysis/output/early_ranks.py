"""A test by the process group's rank above the Lightning Trainer that will make the group: every process passes it."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.functions import find_function
from codemods.analysis.names import last, qualified
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

_MOST_VALUES = 12


def is_asked_too_early(project: Project, module: SourceModule, node: ast.If) -> bool:
    """True for a test of rank 0 by `torch.distributed` where nobody has made a process group yet.

    Lightning makes it in `fit`; with `is_initialized()` before it the rank is None, or 0, on every process until then.
    """
    if not module.holds(b".fit(") or not module.holds(b"rank") or not makes_trainer_below(module, node):
        return False
    if not _asks_for_zero(module, project, node.test) or not _asks_the_group(project, module, node.test):
        return False
    return not project.files_containing(b"init_process_group")


def under_such_a_test(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for a statement under a test that comes too early: it is the test that has to change."""
    if not module.holds(b".fit("):
        return False
    return any(isinstance(up, ast.If) and is_asked_too_early(project, module, up) for up in module.ancestors(statement))


def has_no_group_yet(project: Project, module: SourceModule, statement: ast.stmt, test: str) -> bool:
    """True where `test` asks torch.distributed for the rank at a place above the Trainer that makes the group.

    The place is above it where the Trainer is made below in its function, or below every call of its function.
    """
    if not project.files_containing(b".fit(") or project.files_containing(b"init_process_group"):
        return False
    asked = ast.parse(test, mode="eval").body
    function = module.function_of(statement)
    values: list[ast.expr] = [asked]
    for value in values:  # it grows: a flag is made from a rank that is made from a call
        names = {n.id for n in walk(value) if isinstance(n, ast.Name)} if len(values) < _MOST_VALUES else set()
        bound = [b.value for name in names for b in bindings_in(module, function, name)]
        values += [v for v in bound if v is not None and not any(v is known for known in values)]
    if not _is_of_group(project, module, values, statement) or not _is_above_trainer(project, module, statement):
        return False
    return not any(module.function_of(c) is function for c in module.calls_named("Trainer") if c.lineno < statement.lineno)


def _is_above_trainer(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    if makes_trainer_below(module, statement):
        return True
    function = module.function_of(statement)
    sites = (calls_of(project, module, function) or ()) if function is not None else ()
    return bool(sites) and all(makes_trainer_below(s.module, s.module.statement_of(s.call)) for s in sites)


def _asks_for_zero(module: SourceModule, project: Project, test: ast.expr) -> bool:
    """True for a test of rank 0, `rank is None or …` before it included."""
    operands = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    asked = [o for o in operands if ranks_of_test(module, o, project=project) is Ranks.ZERO]
    rest = [o for o in operands if o not in asked]
    return bool(asked) and all(ast.unparse(o).endswith(" is None") for o in rest)


def makes_trainer_below(module: SourceModule, node: ast.stmt) -> bool:
    """True where Lightning's Trainer is made behind the test, and none before it.

    That is in the same function, and for a constructor in a method of the class.
    """
    function = module.function_of(node)
    made = [c for c in module.calls_named("Trainer") if _is_trainer(module, c)]
    here = [c for c in made if module.function_of(c) is function]
    if not here and function is not None and function.name == "__init__":
        owner = module.class_of(function)
        return any(module.class_of(c) is owner for c in made)
    return bool(here) and all(c.lineno > (node.end_lineno or node.lineno) for c in here)


def _is_trainer(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    return last(name) == "Trainer" and name.startswith(("lightning.", "pytorch_lightning."))


def _asks_the_group(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True where the rank in the test comes from torch.distributed, here or in a helper of the project."""
    given = [test, *(v for n in walk(test) if isinstance(n, ast.Name) for v in values_of(module, n))]
    return _is_of_group(project, module, given, test)


def _is_of_group(project: Project, module: SourceModule, given: list[ast.expr], place: ast.AST) -> bool:
    if any("environ" in ast.unparse(v) for v in given):
        return False
    for call in (n for v in given for n in walk(v) if isinstance(n, ast.Call)):
        if qualified(module, call.func) == "torch.distributed.get_rank":
            return True
        if found := find_function(project, module, call.func, place):
            home, helper = found
            inside = [n for n in walk_scope(helper) if isinstance(n, ast.Call)]
            if any(qualified(home, c.func) == "torch.distributed.get_rank" for c in inside) and not home.holds(b"environ"):
                return True
    return False
