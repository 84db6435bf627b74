"""Hooks of Lightning that no Trainer of several ranks calls: of a part of another module, of a test on one device, of predictions
that nobody asks for, of a validation without data, of a writer with the other interval, one that Lightning calls no more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.class_index import ClassSite, Role, class_facts, subclasses
from codemods.analysis.hooks import LIGHTNING_HOOKS, WRITER_HOOKS
from codemods.analysis.logged.own_programs import only_loads_modules
from codemods.analysis.ranks.asked_of_one import asked_on_one_device
from codemods.analysis.ranks.described_parts import is_only_a_part
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.unasked_stages import is_of_an_unasked_stage, nobody_asks
from codemods.analysis.ranks.unfed_validation import is_hook_of_unfed_validation
from codemods.analysis.ranks.unused import is_of_a_library, is_packaged
from codemods.analysis.ranks.uses import calls_of, uses_of
from codemods.analysis.ranks.writer_intervals import is_left_out_by_interval
from codemods.analysis.trainer.gone_hooks import gone_hook
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.store.project import Project

_CLASSES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_CALLBACK)
_CLIMBS = 2
_Question = Callable[[Project, SourceModule, ast.ClassDef, FunctionNode, int], bool]
_TEXTS = (".ipynb", ".md", ".rst")
_NETWORK = frozenset({"forward", "train", "eval", "state_dict", "load_state_dict", "parameters", "to"})


def is_in_unrun_hook(project: Project, module: SourceModule, line: int) -> bool:
    """True for a line of a hook that runs on one rank at most, whatever the class can do; of a method that they alone call."""
    return _of_each_hook(project, module, line, _is_unrun)


def _is_unrun(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode, _: int) -> bool:
    if gone_hook(project, module, owner, function) is not None:
        return True
    if function.name not in LIGHTNING_HOOKS - _NETWORK:
        return False
    if is_left_out_by_interval(project, module, owner, function):
        return True
    facts = class_facts(project, module, owner)
    if _is_of_prediction(function.name) and any(facts.is_a(role) for role in _CLASSES):
        if nobody_asks(project, "predict") or _is_predicted_on_one(project):
            return not is_of_a_library(project, module.path)
    if not facts.is_a(Role.LIGHTNING_MODULE):
        return False
    if _is_of_tests(function.name) and asked_on_one_device(project, "test"):
        return True
    if is_hook_of_unfed_validation(project, module, function):
        return True
    if is_run_by_nobody(project, module, function.body[0], shared=False):
        return True
    if only_loads_modules(project) and not is_packaged(project, module.path):
        return True
    kin = (facts.lineage[0], *(s for s in subclasses(project, facts.lineage[0]) if _takes_over(project, s, function)))
    return all(is_only_a_part(project, s) for s in kin)


def is_in_untested_hook(project: Project, module: SourceModule, line: int) -> bool:
    """True for a line of a hook of tests where programs of the project call `fit` and nothing asks a Trainer to test.

    So for `if stage == "validate":` in `setup`, of a stage that nothing asks for, and for a method that such hooks alone call.
    Whoever installs a package may ask for it.
    """
    return _of_each_hook(project, module, line, _is_untested)


def _is_untested(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode, line: int) -> bool:
    tests = _is_of_tests(function.name) and function.name in LIGHTNING_HOOKS and nobody_asks(project, "test")
    tests = tests and not _is_shared(project, module, function)
    if not tests and not is_of_an_unasked_stage(project, module, function, line):
        return False
    facts = class_facts(project, module, owner)
    return any(facts.is_a(role) for role in _CLASSES)


def _is_shared(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where a hook of another stage calls it: `validation_step` that returns `self.test_step(batch)`."""
    callers = (s.module.function_of(s.call) for s in uses_of(project, module, function).calls)
    return any(c is not None and c.name in LIGHTNING_HOOKS and not _is_of_tests(c.name) for c in callers)


def _of_each_hook(project: Project, module: SourceModule, line: int, asked: _Question, steps: int = _CLIMBS) -> bool:
    """True where the answer is yes for the method round the line, or, where that is no hook, for each that calls it."""
    function = _method_at(module, line)
    owner = module.parent(function) if function is not None else None
    if function is None or not isinstance(owner, ast.ClassDef):
        return False
    if asked(project, module, owner, function, line):
        return True
    if not steps or function.name in LIGHTNING_HOOKS or function.name.startswith("__") or function.decorator_list:
        return False
    facts = class_facts(project, module, owner)
    if not any(facts.is_a(role) for role in _CLASSES):
        return False
    sites = calls_of(project, module, function)
    return bool(sites) and all(_of_each_hook(project, s.module, s.call.lineno, asked, steps - 1) for s in sites or ())


def _is_predicted_on_one(project: Project) -> bool:
    """True where each script that predicts has one device, and no notebook and no text does it otherwise."""
    return asked_on_one_device(project, "predict") and not project.files_containing(b"rainer.predict(", kinds=_TEXTS)


def _method_at(module: SourceModule, line: int) -> FunctionNode | None:
    """The method round a line, not a function inside it."""
    return next((f for f in _methods(module) if f.lineno <= line <= (f.end_lineno or line)), None)


@once_a_module
def _methods(module: SourceModule) -> list[FunctionNode]:
    return [f for f in module.functions if isinstance(module.parent(f), ast.ClassDef)]


def _takes_over(project: Project, heir: ClassSite, function: FunctionNode) -> bool:
    given = class_facts(project, heir.module, heir.node).method(function.name)
    return given is None or given[1] is function


def _is_of_tests(name: str) -> bool:
    return name.startswith(("test_", "on_test_"))


def _is_of_prediction(name: str) -> bool:
    return name in WRITER_HOOKS or name.startswith(("predict_", "on_predict_"))
