"""Which of the runs that a project shows make an object of a class, and are they all of one process?

`if cfg.network.name == "small": net = Small()`, where each experiment that chooses it has a Trainer of one device. Whoever gives
it more comes to the class on several, so places in it are left out and counted, not denied. Asked of programs that Hydra starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.class_index import ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_own_test
from codemods.analysis.job_files.hydra_programs import HydraProgram, hydra_program, started_by_hydra
from codemods.analysis.job_files.hydra_runs import hydra_runs
from codemods.analysis.job_files.shown_run import Keys, ShownRun
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.ranks.closed_modes import MANY_COMMANDS
from codemods.analysis.ranks.program_starts import start_of
from codemods.analysis.ranks.shown_tests import Roots, is_taken, keys_read, trainer_has_one
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_CALLBACK)
_BY_NAME = lazy(rb"\b(?:import_module|__import__|get_class|locate|get_object)\(|\bglobals\(\)\[|sys\.modules\[")
_OF_ANY = lazy(rb"\bgetattr\(\s*(\w+)[\w.]*,(?!\s*[\"'])")
_MOST, _DEPTH = 12, 3  # places that make one; functions that hand the settings on


def is_made_by_runs_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a class of Lightning that no program makes in a run of several processes, as far as their settings are told."""
    if not project.files_containing(b"hydra.main"):
        return False
    owner = _owner(module, node)
    if owner is None or not any(class_facts(project, module, owner).is_a(role) for role in _ROLES):
        return False
    return project.keep(("made by runs of one", module.path, owner.lineno), lambda: _is_of_one(project, module, owner))


def _owner(module: SourceModule, node: ast.AST) -> ast.ClassDef | None:
    return next((up for up in module.ancestors(node) if isinstance(up, ast.ClassDef)), None)


def _is_of_one(project: Project, module: SourceModule, owner: ast.ClassDef) -> bool:
    sites = _sites(project, module, owner)
    mains = [p for p in project.files_containing(b"__main__") if not is_own_test(project, p)]
    making = [p for p in mains if any(s.module.path in whole_program(project, p) for s in sites)]
    told = [_told(project, path, module, owner) for path in making]
    known = [t for t in told if t is not None]
    if not known or len(known) < len(told) or any(not one for _, _, one in known):
        return False
    return any(made for made, _, _ in known) or sum(shown for _, shown, _ in known) >= MANY_COMMANDS


def _told(project: Project, path: str, module: SourceModule, owner: ast.ClassDef) -> tuple[int, int, bool] | None:
    """(how many runs of a program make one, how many there are, whether each that does has one device); None where it is open."""
    program = hydra_program(project, path)
    home = project.module(path)
    if home is not None and program is None and not home.holds(b"hydra"):
        return (1, 1, True) if start_of(project, home) in (Start.ONE, Start.OPEN) else None
    main = started_by_hydra(home) if home is not None else None
    shown = hydra_runs(project, program) if program is not None else ()
    made = runs_that_make(project, program, module, owner) if program is not None and shown else None
    if home is None or main is None or made is None:
        return None
    return len(made), len(shown), all(trainer_has_one(home, main.body[0], run) for run in made)


def runs_that_make(
    project: Project, program: HydraProgram, module: SourceModule, owner: ast.ClassDef
) -> tuple[ShownRun, ...] | None:
    """The runs of a program that make an object of the class, or of an heir; None where that is not told."""
    key = ("runs that make", program.path, module.path, owner.lineno)
    return project.keep(key, lambda: _find_runs(project, program, module, owner))


def _find_runs(project: Project, program: HydraProgram, module: SourceModule, owner: ast.ClassDef) -> tuple[ShownRun, ...] | None:
    files = whole_program(project, program.path)
    sites = [s for s in _sites(project, module, owner) if s.module.path in files]
    if not sites or any(_makes_by_name(project, p) for p in files):
        return None
    shown = [(site, _roots_at(project, site, files)) for site in sites]
    runs = hydra_runs(project, program)
    return tuple(run for run in runs if any(is_taken(s.module, s.call, run, roots) for s, roots in shown))


def _sites(project: Project, module: SourceModule, owner: ast.ClassDef) -> tuple[CallSite, ...]:
    """Each place that makes an object of the class; nothing where one is handed on, or a text may name it."""
    used = constructions(project, module, owner)
    if used is None or used.more or used.handed_on or not 0 < len(used.calls) <= _MOST:
        return ()
    names = {owner.name, *(s.name for s in subclasses(project, ClassSite(module, owner)))}
    return () if _is_named_by_text(project, names) else used.outside_tests().calls


def _makes_by_name(project: Project, path: str) -> bool:
    """True for a file that takes a class by a text: `getattr(nets, name)` of a module. `getattr(logger, level)` is none."""
    data = project.read(path) or b""
    held = {name.decode() for name in _OF_ANY.findall(data)}
    module = project.module(path) if held else None
    return _BY_NAME.search(data) is not None or (module is not None and not held.isdisjoint(module.imports))


def _is_named_by_text(project: Project, names: Iterable[str]) -> bool:
    return any(project.files_containing(f".{name}".encode(), kinds=(".yaml", ".yml")) for name in names)


def _roots_at(project: Project, site: CallSite, files: frozenset[str], depth: int = _DEPTH) -> Roots:
    """The parameters of the function round a place that are settings, or that each caller in the program hands the same part."""
    function = site.module.function_of(site.call)
    if function is None:
        return {}
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if function is started_by_hydra(site.module):
        return {names[0]: ()} if names and not _is_stored(function, names[0]) else {}
    used = uses_of(project, site.module, function)
    if depth <= 0 or used.more or used.handed_on:
        return {}
    calls = [s for s in used.outside_tests().calls if s.module.path in files]
    handed = [_handed(names, s.call, _roots_at(project, s, files, depth - 1)) for s in calls]
    same = handed[0].items() if handed else ()
    return {name: keys for name, keys in same if all(h.get(name) == keys for h in handed) and not _is_stored(function, name)}


def _is_stored(function: FunctionNode, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in ast.walk(function))


def _handed(names: list[str], call: ast.Call, roots: Roots) -> dict[str, Keys]:
    plain = not any(isinstance(a, ast.Starred) for a in call.args)
    given = [*zip(names, call.args if plain else [], strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
    out: dict[str, Keys] = {}
    for name, value in given:
        keys, optional = keys_read(value, roots)
        if isinstance(value, ast.Name) and value.id in roots:
            out[name] = roots[value.id]
        elif keys and not optional:
            out[name] = keys
    return out
