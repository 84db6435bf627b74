"""Programs that make a Trainer of Lightning and never let it run: it starts no other process, whatever its devices are.

`trainer = pl.Trainer(gpus=args.gpus)` beside a loop over the rows on one device.
"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted
from codemods.analysis.ranks.one_device import lightning_trainers
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_RUNS = lazy(
    rb"\.(?:fit|test|validate|predict|tune|lr_find|scale_batch_size|fit_loop|launch|run)\(|getattr\(\s*(?:self\.)?\w*rainer|"
    rb"LightningCLI|Tuner\(|torch\.distributed|\bAccelerator\(|(?:from|import) accelerate|Fabric|deepspeed|LOCAL_RANK"
)


def has_an_idle_trainer(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where `function` makes a Trainer that no file of its program runs, and hands it to the project's own code alone."""
    if not module.holds(b"Trainer(") or not any(True for _ in lightning_trainers(module, function)):
        return False
    key = ("idle trainer", module.path, 0 if function is None else function.lineno)
    return project.keep(key, lambda: _is_idle(project, module, function))


def _is_idle(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    if not module.holds(b"__main__") or is_test_file(module.path):
        return False  # who imports it may run the Trainer
    if any(_RUNS.search(project.read(path) or b"") for path in whole_program(project, module.path)):
        return False
    made = list(lightning_trainers(module, function))
    return all(_stays(project, module, call) for call in made)


def _stays(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `trainer = Trainer(…)` whose name is only asked, and handed to functions and classes of the project.

    One that nothing reads stands in a part of a program: what runs it is not shown.
    """
    up = module.parent(call)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return False
    function = module.function_of(call)
    reads = [r for r in module.reads_of(target.id) if module.function_of(r) is function]
    return bool(reads) and all(_keeps_it(project, module, module.parent(read)) for read in reads)


def _keeps_it(project: Project, module: SourceModule, user: ast.AST | None) -> bool:
    if isinstance(user, ast.Attribute):
        return True
    name = dotted(user.func) if isinstance(user, ast.Call) else ""
    return isinstance(user, ast.Call) and bool(
        name and (called_function(project, module, user) is not None or find_class(project, module, name) is not None)
    )
