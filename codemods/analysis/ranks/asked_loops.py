"""Loops of Lightning's Trainer that the programs of a project ask for on one device alone, or in no run that it shows.

`trainer.test(model)` of an `evaluate.py` with `devices=[1]`, and `if cfg.get("test"):` where the settings of the program that
trains on several say `test: False`. Whoever turns it on, or gives it more devices, comes there: places in hooks of such a loop are
left out and counted. Asked by program, with its own settings: what one of them does on several devices says nothing of another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_test_file
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.job_files.hydra_runs import HydraRun, hydra_program, runs
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, family, last
from codemods.analysis.ranks.closed_modes import is_in_closed_mode
from codemods.analysis.ranks.hydra_tests import has_one_process, is_taken
from codemods.analysis.ranks.one_device import trains_on_one_device
from codemods.analysis.ranks.program_starts import Start, start_of
from codemods.analysis.ranks.run_by_programs import has_programs
from codemods.analysis.ranks.unused import is_of_a_library
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LOOPS = ("test", "predict")
_CLASSES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_CALLBACK)
_BY_TEXT = lazy(rb"getattr\(\s*(?:self\.)?trainer|LightningCLI|\btrainer_fn\b")
_MADE_BY_TEXT = lazy(rb"\b(?:instantiate|import_module|__import__|get_class|locate|get_object|getattr)\(")
_SAID = lazy(rb"(?i)trainer\w*(?:\(\))?\.%b\(")
_MODEL = lazy(r"(?i)model|net$|clf|classif|estim|regress|pipe|(?:^|\.)self$|scaler|tree|svm|knn|predictor|agent|policy")
_TEXTS = (".md", ".rst", ".ipynb")
_DEPTH, _MOST_CALLS = 3, 12


def is_in_loop_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a hook of a test or a prediction, and in what only such hooks call, that no program comes to on several devices."""
    if not project.files_containing(b"ightning"):
        return False
    function = module.function_of(node)
    if function is None:
        return False
    return any(
        _is_of_loop(project, module, function, loop, _DEPTH) and _is_asked_on_one(project, module, loop) for loop in _LOOPS
    )


def _is_of_loop(project: Project, module: SourceModule, function: FunctionNode, loop: str, depth: int) -> bool:
    """True for a hook of the loop, and for a function whose calls all stand in such hooks."""
    key = ("of a loop", module.path, function.lineno, loop)
    return project.keep(key, lambda: _find_loop(project, module, function, loop, depth))


def _find_loop(project: Project, module: SourceModule, function: FunctionNode, loop: str, depth: int) -> bool:
    hook = _is_hook(project, module, function, loop)
    outer = module.function_of(function)
    if outer is not None:
        return depth > 0 and _is_of_loop(project, module, outer, loop, depth - 1)
    if depth <= 0 or (not hook and (function.name in LIGHTNING_HOOKS or function.name.startswith("__"))):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or len(used.calls) > _MOST_CALLS or not (used.calls or hook):
        return False
    return all(_comes_from_loop(project, s.module, s.call, function, loop, depth) for s in used.calls)


def _comes_from_loop(
    project: Project, module: SourceModule, call: ast.Call, function: FunctionNode, loop: str, depth: int
) -> bool:
    caller = module.function_of(call)
    if caller is None:
        return False
    return caller is function or _is_of_loop(project, module, caller, loop, depth - 1)


def _is_hook(project: Project, module: SourceModule, function: FunctionNode, loop: str) -> bool:
    owner = module.parent(function)
    if not function.name.startswith((f"{loop}_", f"on_{loop}_")) or function.name not in LIGHTNING_HOOKS:
        return False
    return isinstance(owner, ast.ClassDef) and any(class_facts(project, module, owner).is_a(role) for role in _CLASSES)


# Who asks for it


def _is_asked_on_one(project: Project, module: SourceModule, loop: str) -> bool:
    """True where no program that has the file asks for the loop on several devices, in the runs that the project shows."""
    return project.keep(("asked on one", module.path, loop), lambda: _find_asked(project, module, loop))


def _find_asked(project: Project, module: SourceModule, loop: str) -> bool:
    if not has_programs(project) or not project.files_containing(b".fit("):
        return False
    if any(_BY_TEXT.search(project.read(p) or b"") for p in project.files_containing(b"rainer") if not is_test_file(p)):
        return False
    said = f"rainer.{loop}(".encode()
    if project.files_containing(said, kinds=_TEXTS):
        return False
    found = False
    for path in project.files_containing(f".{loop}(".encode()):
        home = project.module(path) if not is_test_file(path) else None
        for call in _asking(home, loop) if home is not None else ():
            if home is None or not (programs := _programs(project, module, home)):
                continue
            found = True
            if not _is_of_one(project, module, home, call, programs):
                return False
    return found or not is_of_a_library(project, module.path)


def _asking(module: SourceModule, loop: str) -> Iterator[ast.Call]:
    """The calls that may ask a Trainer for the loop: models and estimators have methods of these names, too."""
    for call in module.calls_named(loop):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if held is None:
            continue
        name = dotted(held.func if isinstance(held, ast.Call) else held)
        if "trainer" in name.lower() or any("rainer" in dotted(v.func) for v in _made(module, held) if isinstance(v, ast.Call)):
            yield call
        elif any(family(m) == "lightning" for m in module.imported_modules) and not _MODEL.search(name):
            yield call


def _made(module: SourceModule, held: ast.expr) -> list[ast.expr]:
    return [v for v in assigned(module, held, held.id) if v is not None] if isinstance(held, ast.Name) else []


def _programs(project: Project, module: SourceModule, home: SourceModule) -> tuple[str, ...]:
    """The programs that come to the call and may have the class: by their imports, or by a text that names it."""

    def build() -> tuple[str, ...]:
        mains = [p for p in project.files_containing(b"__main__") if not is_test_file(p)]
        asking = [p for p in mains if home.path in whole_program(project, p)] or [home.path]
        return tuple(p for p in asking if module.path in whole_program(project, p) or _makes_by_text(project, p))

    return project.keep(("programs that ask", module.path, home.path), build)


def _makes_by_text(project: Project, path: str) -> bool:
    return any(_MADE_BY_TEXT.search(project.read(p) or b"") for p in whole_program(project, path))


def _is_of_one(project: Project, module: SourceModule, home: SourceModule, call: ast.Call, programs: tuple[str, ...]) -> bool:
    """True for a call whose Trainer has one device, and for one that no run comes to."""
    if trains_on_one_device(project, home, home.function_of(call)) or is_in_closed_mode(project, home, call):
        return True
    return all(_program_has_one(project, path, module, home, call) for path in programs)


def _program_has_one(project: Project, path: str, module: SourceModule, home: SourceModule, call: ast.Call) -> bool:
    program = hydra_program(project, path)
    if program is None:
        made = project.module(path)
        return made is not None and start_of(project, made) in (Start.ONE, Start.OPEN)
    shown = runs(project, program)
    having = [run for run in shown if _has_class_of(project, run, module)] or shown
    return bool(shown) and all(not is_taken(home, call, run) or has_one_process(run) for run in having)


def _has_class_of(project: Project, run: HydraRun, module: SourceModule) -> bool:
    """True for a run whose settings name a class of the file."""
    return any(run.has(project, node.name.encode()) for node in module.nodes(ast.ClassDef))
