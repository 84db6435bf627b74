"""Loops of Lightning's Trainer that the programs of a project ask for on one device alone, or in no run that it shows.

`trainer.test(model)` of an `evaluate.py` with `devices=[1]`, and `if cfg.get("test"):` where the settings of the program that
trains on several say `test: False`. Whoever turns it on, or gives it more devices, comes there: places in hooks of such a loop
are left out and counted. Asked by program, with its own settings: what one does on several devices says nothing of another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_own_test
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.job_files.command_runs import command_runs
from codemods.analysis.job_files.documented_starts import other_starts, starts, starts_of
from codemods.analysis.job_files.hydra_programs import hydra_program
from codemods.analysis.job_files.hydra_runs import hydra_runs
from codemods.analysis.job_files.shown_run import ShownRun
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, family
from codemods.analysis.ranks.closed_modes import MANY_COMMANDS, is_in_closed_mode
from codemods.analysis.ranks.made_in_runs import runs_that_make
from codemods.analysis.ranks.one_device import lightning_trainers, trains_on_one_device
from codemods.analysis.ranks.program_starts import start_of
from codemods.analysis.ranks.run_by_programs import has_programs
from codemods.analysis.ranks.shown_tests import is_taken, never_validates, trainer_has_one
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.corpus import uses
from codemods.store.project import Project

_LOOPS = ("test", "predict", "validation")
_CLASSES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_CALLBACK)
_BY_TEXT = lazy(rb"getattr\(\s*(?:\w+\.)*trainer\s*,(?!\s*[\"'](?!test|predict))|LightningCLI|\btrainer_fn\b")
_MADE_BY_TEXT = lazy(
    rb"\b(?:instantiate|import_module|__import__|get_class|locate|get_object)\(|"
    rb"getattr\(\s*(?!(?:self|cls|args|opt|hparams|orig|obj|other|\w*cfg|\w*config)\b)[\w.]+,(?!\s*[\"'])"
)
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
    names = _classes(project, module, node)
    loops = _loops_of(project, module, function, _DEPTH)
    return bool(loops) and all(_is_asked_on_one(project, module, names, loop) for loop in loops)


def _classes(project: Project, module: SourceModule, node: ast.AST) -> frozenset[str]:
    """The class round a place and its heirs; nothing for a place outside of classes."""
    owner = next((up for up in module.ancestors(node) if isinstance(up, ast.ClassDef)), None)
    if owner is None:
        return frozenset()
    return frozenset({owner.name, *(s.node.name for s in subclasses(project, ClassSite(module, owner)))})


def _loops_of(project: Project, module: SourceModule, function: FunctionNode, depth: int) -> frozenset[str]:
    """The loop of a hook, and those of a function whose calls all stand in such hooks; none for one that is called elsewhere."""
    key = ("loops of", module.path, function.lineno, depth)
    return project.keep(key, lambda: _find_loops(project, module, function, depth))


def _find_loops(project: Project, module: SourceModule, function: FunctionNode, depth: int) -> frozenset[str]:
    hook = {loop for loop in _LOOPS if _is_hook(project, module, function, loop)}
    outer = module.function_of(function)
    if outer is not None:
        return _loops_of(project, module, outer, depth - 1) if depth > 0 else frozenset()
    if depth <= 0 or (not hook and (function.name in LIGHTNING_HOOKS or function.name.startswith("__"))):
        return frozenset()
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or len(used.calls) > _MOST_CALLS:
        return frozenset()
    found = [frozenset(hook), *(_loops_from(project, s.module, s.call, function, depth) for s in used.calls)]
    known = [loops for loops in found if loops is not None]
    return frozenset().union(*known) if all(known[1:]) else frozenset()


def _loops_from(
    project: Project, module: SourceModule, call: ast.Call, function: FunctionNode, depth: int
) -> frozenset[str] | None:
    """Those that come to a call; None for a function that calls itself."""
    caller = module.function_of(call)
    if caller is function:
        return None
    return _loops_of(project, module, caller, depth - 1) if caller is not None else frozenset()


def _is_hook(project: Project, module: SourceModule, function: FunctionNode, loop: str) -> bool:
    owner = module.parent(function)
    if not function.name.startswith((f"{loop}_", f"on_{loop}_")) or function.name not in LIGHTNING_HOOKS:
        return False
    return isinstance(owner, ast.ClassDef) and any(class_facts(project, module, owner).is_a(role) for role in _CLASSES)


# Who asks for it


def _is_asked_on_one(project: Project, module: SourceModule, names: frozenset[str], loop: str) -> bool:
    """True where programs that have the classes ask for the loop, and none on several devices in the runs that are shown."""
    return project.keep(("asked on one", module.path, names, loop), lambda: _find_asked(project, module, names, loop))


def _find_asked(project: Project, module: SourceModule, names: frozenset[str], loop: str) -> bool:
    if not has_programs(project) or not (project.files_containing(b".fit(") or project.files_containing(f".{loop}(".encode())):
        return False
    if any(_BY_TEXT.search(project.read(p) or b"") for p in project.files_containing(b"rainer") if not is_own_test(project, p)):
        return False
    if loop == "validation":
        return _is_switched_off(project, module, names)
    if project.files_containing(f"rainer.{loop}(".encode(), kinds=_TEXTS):
        return False
    asked = [(home, call, path) for home, call in _asking(project, loop) for path in _programs(project, module, names, home)]
    shown = {path for _, _, path in asked if starts_of(project, path)}
    return bool(asked) and all(
        (shown and path not in shown and len(starts(project)) >= MANY_COMMANDS and not _is_told_to_start(project, path))
        or _is_on_one_device(project, home, call)
        or _program_has_one(project, module, path, names, home, call)
        for home, call, path in asked
    )


def _is_switched_off(project: Project, module: SourceModule, names: frozenset[str]) -> bool:
    """True for validation in a project whose settings keep it off each training of the classes."""
    asked = [(home, c, p) for loop in ("fit", "validate") for home, c in _asking(project, loop)
             for p in _programs(project, module, names, home)]  # fmt: skip
    having = [(home, call, _having(project, module, path, names)) for home, call, path in asked]
    return bool(asked) and all(
        _is_told_never(home, call) or (not _fits(call) and _is_on_one_device(project, home, call))
        or (runs and all(not is_taken(home, call, run) or _has_none(home, call, run) for run in runs))
        for home, call, runs in having
    )  # fmt: skip


def _has_none(home: SourceModule, call: ast.Call, run: ShownRun) -> bool:
    """True for a run that validates nothing, or does so on one device."""
    return trainer_has_one(home, call, run) or (_fits(call) and never_validates(home, call, run))


def _fits(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "fit"


def _is_told_never(home: SourceModule, call: ast.Call) -> bool:
    """True for `fit` of a Trainer that is made beside it with `limit_val_batches=0`: it does not validate, nor try it out."""
    made = list(lightning_trainers(home, home.function_of(call))) if _fits(call) else []
    given = [next((k.value for k in c.keywords if k.arg == "limit_val_batches"), None) for c in made]
    return bool(given) and all(isinstance(v, ast.Constant) and v.value == 0 and v.value is not False for v in given)


def _having(project: Project, module: SourceModule, path: str, names: frozenset[str]) -> Sequence[ShownRun]:
    """The runs of a Hydra program that make one of the classes, or whose settings name it."""
    program = hydra_program(project, path)
    if program is None:
        return ()
    owner = next((n for n in module.nodes(ast.ClassDef) if n.name in names), None)
    made = runs_that_make(project, program, module, owner) if owner is not None else None
    if made:
        return made
    return [run for run in hydra_runs(project, program) if any(run.has(project, n.encode()) for n in names)]


def _is_told_to_start(project: Project, path: str) -> bool:
    """True for a program that a text may start by a command which is not told apart, or that another file launches."""
    return starts_of(project, path) is None or other_starts(project, path)


def _asking(project: Project, loop: str) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls that may ask a Trainer for the loop: models and estimators have methods of these names, too."""
    for path in project.files_containing(f".{loop}(".encode()):
        module = project.module(path) if not is_own_test(project, path) else None
        for call in module.calls_named(loop) if module is not None else ():
            if module is not None and _asks(module, call):
                yield module, call


def _asks(module: SourceModule, call: ast.Call) -> bool:
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    if held is None:
        return False
    name = dotted(held.func if isinstance(held, ast.Call) else held)
    made = assigned(module, held, held.id) if isinstance(held, ast.Name) else []
    if "trainer" in name.lower() or any("rainer" in dotted(v.func) for v in made if isinstance(v, ast.Call)):
        return True
    speaks = module.holds(b"rainer") or any(family(m) == "lightning" for m in module.imported_modules)
    return speaks and not _MODEL.search(name)


def _programs(project: Project, module: SourceModule, names: frozenset[str], home: SourceModule) -> tuple[str, ...]:
    """The programs that come to a call and may have one of the classes: by their files, or by a text that names it."""

    def build() -> tuple[str, ...]:
        mains = [p for p in project.files_containing(b"__main__") if not is_own_test(project, p)]
        asking = [p for p in mains if home.path in whole_program(project, p)] or [home.path]
        return tuple(p for p in asking if not _is_run(project, p) or _has_one_of(project, module, names, p))

    return project.keep(("programs that ask", module.path, names, home.path), build)


def _is_run(project: Project, path: str) -> bool:
    """False for a file of functions that no program imports: whoever calls them hands in the Trainer."""
    data = project.read(path) or b""
    return b"__main__" in data or b"Trainer(" in data or b"Trainer.from" in data


def _has_one_of(project: Project, module: SourceModule, names: frozenset[str], program: str) -> bool:
    files = {p: project.read(p) or b"" for p in whole_program(project, program)}
    if any(_MADE_BY_TEXT.search(data) for data in files.values()):
        return True
    if module.path not in files or not names or program == module.path:
        return module.path in files
    return any(uses(data, name.encode()) for path, data in files.items() if path != module.path for name in names)


def _is_on_one_device(project: Project, home: SourceModule, call: ast.Call) -> bool:
    """True for a call whose Trainer has one device whatever is asked, and for one that each run is kept off."""
    return trains_on_one_device(project, home, home.function_of(call)) or is_in_closed_mode(project, home, call)


def _program_has_one(
    project: Project, module: SourceModule, path: str, names: frozenset[str], home: SourceModule, call: ast.Call
) -> bool:
    """True where no run of a program comes to the call, or each that does has one device."""
    program = hydra_program(project, path)
    having: Sequence[ShownRun]
    if program is not None:
        having = _having(project, module, path, names) or hydra_runs(project, program)
    else:
        made = project.module(path)
        if made is not None and _is_run(project, path) and start_of(project, made) in (Start.ONE, Start.OPEN):
            return True
        having = command_runs(project, path)
    return bool(having) and all(not is_taken(home, call, run) or trainer_has_one(home, call, run) for run in having)
