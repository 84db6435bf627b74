"""May a LightningModule have its Trainer when a method runs? `self.global_rank` is 0 on every rank without one.

A constructor runs before `fit` attaches the Trainer, and so does what a script, or a function that it calls, calls on its model
above the Trainer that it makes; Fabric attaches none at all. A test of the member is true everywhere then.
"""

from __future__ import annotations

import ast

from codemods.analysis.callers import entries
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.output.early_ranks import makes_trainer_below
from codemods.analysis.ranks.uses import calls_of, constructions
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_WHILE_LOADING = frozenset({"on_load_checkpoint", "load_state_dict"})
_DEPTH = 2  # functions that the call of the method stands in
_CONTAINERS = frozenset({"ModuleList", "ModuleDict", "Sequential"})


def may_be_attached(project: Project, facts: ClassFacts, function: FunctionNode) -> bool:
    """False where nobody is seen to call the method but constructors, and in a project that trains with Fabric alone.

    And for a module that is held in a list: Lightning hands the Trainer on to the modules that are attributes of another one
    (2.6, `LightningModule.trainer`: `for v in self.children()`), and a `ModuleList` is none of its own.
    """
    if _trains_with_fabric_alone(project):
        return False
    if _is_held_apart(project, facts):
        return False
    if function.name in LIGHTNING_HOOKS:
        return True
    found = entries(project, facts, function)
    if found.hooks:
        return True
    if found.outside:
        return not all(_comes_first(project, o.module, o.call, _DEPTH) for o in found.outside)
    known = [s.function.name for s in found.steps if s.function.name != function.name]
    return bool(known) and "__init__" not in known


def runs_by_the_trainer(project: Project, facts: ClassFacts, function: FunctionNode) -> bool:
    """True for a hook, and for a method that is called on `self` alone, by hooks and what only they call: the Trainer is there.

    Anybody else may call it on a module that no Trainer has, or has yet.
    """
    if not may_be_attached(project, facts, function):
        return False
    if function.name in LIGHTNING_HOOKS:
        return True
    found = entries(project, facts, function)
    if not found.hooks or found.outside or found.unknown:
        return False
    called = {last(dotted(s.call.func)) for s in found.steps}
    return all(s.function.name in LIGHTNING_HOOKS or s.function.name in called for s in found.steps)


def _comes_first(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    """True where a Trainer is made below the call, or below each call of the plain function that it stands in."""
    if makes_trainer_below(module, module.statement_of(call)):
        return True
    function = module.function_of(call)
    if function is None or depth == 0 or isinstance(module.parent(function), ast.ClassDef):
        return False
    calls = calls_of(project, module, function)
    return bool(calls) and all(_comes_first(project, s.module, s.call, depth - 1) for s in calls or ())


def runs_while_loading(project: Project, facts: ClassFacts, function: FunctionNode) -> bool:
    """True for what `load_from_checkpoint` runs, in a project that calls it: no Trainer knows the module yet."""
    if not project.files_containing(b"load_from_checkpoint("):
        return False
    return function.name in _WHILE_LOADING or bool(entries(project, facts, function).hooks & _WHILE_LOADING)


def _is_held_apart(project: Project, facts: ClassFacts) -> bool:
    """True where every object of the class goes into a container of modules, or into a network that is not Lightning's."""
    site = facts.lineage[0]
    made = constructions(project, site.module, site.node)
    if made is None or made.more or made.handed_on:
        return False
    return bool(made.calls) and all(_is_out_of_reach(project, s.module, s.call) for s in made.calls)


def _is_out_of_reach(project: Project, module: SourceModule, call: ast.Call) -> bool:
    for up in module.ancestors(call):
        if isinstance(up, ast.Call) and (last(dotted(up.func)) in _CONTAINERS or _adds(up)):
            return True
        if isinstance(up, ast.stmt):
            owner = module.class_of(up)
            targets = up.targets if isinstance(up, ast.Assign) else []
            if owner is None or not any(dotted(t).startswith("self.") for t in targets):
                return False
            above = class_facts(project, module, owner)
            return above.is_a(Role.NN_MODULE) and not above.is_a(Role.LIGHTNING_MODULE) and not above.unresolved
    return False


def _adds(call: ast.Call) -> bool:
    """True for `self.parts.append(…)`."""
    return last(dotted(call.func)) in ("append", "extend") and dotted(call.func).startswith("self.")


def _trains_with_fabric_alone(project: Project) -> bool:
    return project.keep("trains with fabric alone", lambda: _makes(project, "Fabric") and not _makes(project, "Trainer"))


def _makes(project: Project, name: str) -> bool:
    """True where the project's own code makes Lightning's object of that name."""
    for path in project.files_containing(f"{name}(".encode()):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named(name) if module is not None else ():
            if module is not None and family(qualified(module, call.func)) == "lightning":
                return True
    return False
