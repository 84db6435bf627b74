"""Which methods a framework calls itself, and in which of its stages: `Trainer.fit` runs no `on_test_epoch_end`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts, find_class, is_lightning
from codemods.analysis.job_files.command_lines import CommandLine
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

STAGES = ("fit", "validate", "test", "predict")
OF_VALIDATION = ("fit", "validate")
_HOOKS = (
    (re.compile(r"(?:on_)?test_(?:step|epoch|batch|start|end|model|dataloader)"), ("test",)),
    (re.compile(r"(?:on_)?predict_(?:step|epoch|batch|start|end|model|dataloader)"), ("predict",)),
    (re.compile(r"(?:on_)?(?:validation_(?:step|epoch|batch|start|end|model)|val_dataloader)"), OF_VALIDATION),
    (re.compile(r"training_step|on_train_(?:start|end|epoch|batch)|on_fit_|train_dataloader|configure_optimizers$"), ("fit",)),
    (re.compile(r"(?:setup|prepare_data)$"), STAGES),
)
_OWN_ROOTS = frozenset({"object", "ABC", "abc.ABC"})
_DEEPEST = 6


def stages_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[str, ...]:
    """The methods of the Trainer that run a hook of Lightning, the first the best known; nothing for what is no hook."""
    owner = module.class_of(function)
    found = next((stages for name, stages in _HOOKS if name.match(function.name)), ()) if owner is not None else ()
    if owner is None or not found:
        return ()
    is_one = module.holds(b"lightning") or any(map(is_lightning, class_facts(project, module, owner).external))
    return found if is_one else ()


def calls_of_stages(project: Project, files: frozenset[str], stages: tuple[str, ...]) -> Iterator[tuple[SourceModule, ast.Call]]:
    """`trainer.test(…)` in files of a program."""
    words = [f".{stage}(".encode() for stage in stages]
    for path in sorted(files):
        data = project.read(path) or b""
        module = project.module(path) if any(word in data for word in words) else None
        if isinstance(module, SourceModule):
            yield from ((module, c) for c in module.calls_named(*stages) if isinstance(c.func, ast.Attribute))


def starts_a_stage(project: Project, files: frozenset[str]) -> bool:
    """True where the program calls another of these methods, on what is made by the name of Trainer."""
    texts = [project.read(path) or b"" for path in files]
    return any(b"Trainer(" in text for text in texts) and any(b".fit(" in text for text in texts)


def has_no_validation_data(project: Project, files: frozenset[str]) -> bool:
    """True where each `val_dataloader` of a program gives nothing, and its `fit` is handed no loader."""
    hooks: list[tuple[SourceModule, FunctionNode]] = []
    for path in sorted(files):
        data = project.read(path) or b""
        if b"val_dataloaders" in data:
            return False
        module = project.module(path) if b"def val_dataloader(" in data else None
        if isinstance(module, SourceModule):
            hooks += [(module, f) for f in module.functions if f.name == "val_dataloader"]
    handed = (call for _, call in calls_of_stages(project, files, ("fit",)) if len(call.args) > 2)
    return bool(hooks) and not any(returned(f, m) for m, f in hooks) and next(handed, None) is None


def is_called_with_its_object(function: FunctionNode) -> bool:
    """True for what Python or torch calls where an object is made or used: `__init__`, `forward`."""
    return function.name == "forward" or (function.name.startswith("__") and function.name.endswith("__"))


def stage_of(project: Project, files: frozenset[str], command: CommandLine) -> str:
    """The sub-command where Lightning reads the command line."""
    at = next((i for i, word in enumerate(command.words) if word.text == command.target), None)
    given = command.words[at + 1].text if at is not None and at + 1 < len(command.words) else ""
    return given if given in STAGES and any(b"LightningCLI(" in (project.read(path) or b"") for path in files) else ""


def is_called_by_the_project_alone(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a plain function, and for a method of a class that has nothing of another package."""
    owner = module.class_of(function)
    if function.decorator_list or (owner is not None and function.name.startswith("__")):
        return False
    return owner is None or _is_of_the_project(project, module, owner, 0)


def _is_of_the_project(project: Project, module: SourceModule, owner: ast.ClassDef, depth: int) -> bool:
    for base in owner.bases:
        name = dotted(base)
        if name in _OWN_ROOTS:
            continue
        found = find_class(project, module, name) if name and depth < _DEEPEST else None
        if found is None or not _is_of_the_project(project, found.module, found.node, depth + 1):
            return False
    return not owner.decorator_list
