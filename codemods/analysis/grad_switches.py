"""Places that freeze or release parameters outside a constructor: what DDP was told at the wrap may then be wrong."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.project import Project
from codemods.source import SourceModule

_CONSTRUCTORS = ("__init__", "_freeze_parameters", "_init_weights")
_FINETUNING = (b"BackboneFinetuning", b"BaseFinetuning")


def grad_switch(project: Project, model: SourceModule) -> str:
    """The first place in the project, tests left out, that switches `requires_grad`; "" where there is none."""
    return project.memo("requires_grad switches", lambda: _first(project))


def _first(project: Project) -> str:
    for word in _FINETUNING:
        for path in project.files_containing(word):
            return path
    for path in project.files_containing(b"requires_grad"):
        if any(part.startswith("test") for part in path.split("/")):
            continue
        module = project.module(path)
        if module is not None and (line := _switch_in(module)):
            return f"{path}:{line}"
    return ""


def _switch_in(module: SourceModule) -> int:
    for assign in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in assign.targets) and _counts(module, assign):
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
