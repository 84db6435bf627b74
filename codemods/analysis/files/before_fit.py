"""What a Lightning script does above `fit`: rank 0 is through with it before its Trainer starts the other processes.

`Trainer(strategy="ddp")` starts them in `fit`, `validate`, `test` and `predict` (`_SubprocessScriptLauncher.launch`); each runs
the script again from its top. Only a launcher from outside (torchrun, srun) lets all ranks come to such a place at once.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.loose_ends import BROUGHT_IN
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.files.shown_ranks import is_launched_from_outside
from codemods.analysis.job_files.documented_starts import other_starts, starts, starts_of
from codemods.analysis.job_files.submitted_tasks import is_submitted_as_several
from codemods.analysis.names import family, qualified
from codemods.analysis.paths import origin_text
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_STARTS = frozenset({"fit", "validate", "test", "predict", "tune"})
_OTHERS = lazy(rb"init_process_group|Accelerator\(|deepspeed\.init|\bFabric\(|mp\.spawn|LightningCLI")
_ROLES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE)
_UP = 4


def comes_first(project: Project, way: Way) -> bool:
    """True where the way to a place ends in a script of Lightning, above what starts the other processes."""
    home, node = way.frames[-1]
    return is_above_fit(project, home, node)


def is_made_above_fit(project: Project, way: Way, path: ast.expr | None = None) -> bool:
    """True where a script of Lightning comes to the place above `fit`: what is made there is there for those that start later.

    path: what is made; False where that is another one in each round of a loop over `fit`.
    """
    if path is not None and is_of_each_round(way, path):
        return False
    return _is_made_above_fit(project, way)


def is_of_each_round(way: Way, path: ast.expr) -> bool:
    """True for a path of the round of a loop that also calls `fit`: from the second round on all processes come there."""
    home, node = way.frames[0]
    function = home.function_of(node)
    for loop in home.ancestors(node):
        if loop is function:
            break
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
            started = [c for c in _starts_in(home, function) if getattr(c.func, "attr", "") == "fit" and c in walk(loop)]
            if started and not any(isinstance(n, (ast.Break, ast.Return)) for s in loop.body for n in walk(s)):
                return re.search(rf"\b{re.escape(loop.target.id)}\b", origin_text(home, path)) is not None
    return False


def _is_made_above_fit(project: Project, way: Way) -> bool:
    if comes_first(project, way) or _is_of_a_script(project, way):
        return True
    places = ((home, home.function_of(node)) for home, node in (way.frames[0], way.frames[-1]))
    return any(function is not None and _was_there(project, home, function) for home, function in places)


def _was_there(project: Project, module: SourceModule, function: FunctionNode, up: int = _UP) -> bool:
    for site in callers_of(project, module, function) if not _starts_in(module, function) else ():
        if is_above_fit(project, site.module, site.call):
            return True
        outer = site.module.function_of(site.call)
        if up > 0 and outer is not None and outer is not function and _was_there(project, site.module, outer, up - 1):
            return True
    return False


def _is_of_a_script(project: Project, way: Way) -> bool:
    """True for a class that a script of Lightning brings in over other files: no hook makes it, so the script itself does."""
    if BROUGHT_IN not in way.shown.text:
        return False
    script = project.module(way.shown.path)
    return script is not None and starts_its_ranks(project, script)


def starts_its_ranks(project: Project, module: SourceModule) -> bool:
    """True for a script whose Trainer starts the processes, and nobody else."""
    if not any(module.holds(word) for word in (b"Trainer(", b"Trainer.")) or _OTHERS.search(module.data):
        return False
    made = (c for c in module.calls_named("Trainer", "from_argparse_args") if family(qualified(module, c.func)) == "lightning")
    if is_submitted_as_several(project, module.path):
        return False
    return any(made) and not (is_launched_from_outside(project) and not _is_started_by_python(project, module.path))


def _is_started_by_python(project: Project, path: str) -> bool:
    """True for a script of which each command is `python script.py`: the launchers that the texts speak of start others."""
    own = starts_of(project, path)
    if not own or any(s.launched or s.several for s in own):
        return False
    unnamed = any(s.several and not s.script for s in starts(project))
    return not unnamed and not other_starts(project, path)


def is_above_fit(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place of a script, or of a function that it calls, above what starts the other processes."""
    function = module.function_of(node)
    if not starts_its_ranks(project, module) or _is_of_a_class(project, module, function):
        return False
    return all(line_of(node) < c.lineno for c in _starts_in(module, function))


def _starts_in(module: SourceModule, function: FunctionNode | None) -> list[ast.Call]:
    calls = module.calls_named(*_STARTS)
    return [c for c in calls if isinstance(c.func, ast.Attribute) and module.function_of(c) is function]


def _is_of_a_class(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True in the hooks of a Lightning class: a Trainer runs them, on every rank."""
    owner = module.class_of(function) if function is not None else None
    return owner is not None and any(class_facts(project, module, owner).is_a(role) for role in _ROLES)
