"""Places that freeze or release parameters outside a constructor: what DDP was told at the wrap may then be wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import dirname

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.store.project import Project

_CONSTRUCTORS = ("__init__", "_freeze_parameters", "_init_weights")
_FINETUNING = frozenset({"BackboneFinetuning", "BaseFinetuning"})


def grad_switch(project: Project, *near: SourceModule) -> str:
    """The first place that switches `requires_grad` in the folders of `near` and below, tests left out; "" for none."""
    return next((f"{path}:{line}" for path, line in grad_switches(project, *near)), "")


def grad_switches(project: Project, *near: SourceModule) -> Iterator[tuple[str, int]]:
    """The files of these folders that switch `requires_grad`, each with its first line that does."""
    folders = {dirname(module.path) for module in near}
    for path, line in project.keep("requires_grad switches", lambda: _all(project)):
        if any(not folder or path.startswith(f"{folder}/") for folder in folders):
            yield path, line


def _all(project: Project) -> list[tuple[str, int]]:
    paths = {path for word in (b"requires_grad", b"Finetuning") for path in project.files_containing(word)}
    out = []
    for path in sorted(paths):
        if any(part.startswith("test") for part in path.split("/")):
            continue
        module = project.module(path)
        if module is not None and (line := _switch_in(module)):
            out.append((path, line))
    return out


def _switch_in(module: SourceModule) -> int:
    for call in module.calls_named(*_FINETUNING):
        return call.lineno
    for assign in module.nodes(ast.Assign):
        switched = any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in assign.targets)
        if switched and _counts(module, assign):
            return assign.lineno
    for call in module.calls_named("requires_grad_"):
        # `x.requires_grad_()` on a tensor (gradient penalty, saliency) has no argument and is no switch
        given = [*call.args, *(k.value for k in call.keywords)]
        if given and _counts(module, call) and last(dotted(call.func)):
            return call.lineno
    return 0


def _counts(module: SourceModule, node: ast.AST) -> bool:
    function = module.function_of(node)
    return function is not None and function.name not in _CONSTRUCTORS
