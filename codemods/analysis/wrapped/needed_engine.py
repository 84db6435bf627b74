"""Programs that run under DeepSpeed or not at all: `AcceleratorState().deepspeed_plugin.deepspeed_config[…] = …` with no test.

Without DeepSpeed the plugin is None (accelerate 1.15, `AcceleratorState.deepspeed_plugin`), and the line raises on every process.
With it, Accelerate wraps the optimizer in one whose `step` and `zero_grad` do nothing, and the engine passes attributes on.
"""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import above
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ARMS = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.Match, ast.Lambda, ast.comprehension, ast.While, ast.For)
_WORD = b"deepspeed_plugin"


def needs_deepspeed(project: Project, path: str) -> bool:
    """True where each function of the program that makes an accelerator asks the plugin for something, whatever it is."""
    return project.keep(("needs deepspeed", path), lambda: _needs(project, path))


def _needs(project: Project, path: str) -> bool:
    if not project.files_containing(_WORD):
        return False
    made = 0
    for part in sorted(whole_program(project, path)):
        module = project.module(part) if b"Accelerator(" in (project.read(part) or b"") else None
        for call in module.calls_named("Accelerator") if module is not None else ():
            if module is None or last(qualified(module, call.func)) != "Accelerator":
                continue
            if not _is_asked_for(project, module, module.function_of(call)):
                return False
            made += 1
    return made > 0


def _is_asked_for(project: Project, module: SourceModule, function: ast.AST | None) -> bool:
    return module.holds(_WORD) and any(
        module.function_of(node) is function and _ends_without(project, module, node, function)
        for node in module.nodes(ast.Attribute)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "deepspeed_plugin"
    )


def _ends_without(project: Project, module: SourceModule, node: ast.Attribute, function: ast.AST | None) -> bool:
    """True where the plugin is Accelerate's, and no test round the place or exit above it asks whether there is one."""
    assert isinstance(node.value, ast.Attribute)
    holder = node.value.value
    state = isinstance(holder, ast.Call) and last(dotted(holder.func)) == "AcceleratorState"
    own = holder.value if isinstance(holder, ast.Attribute) and holder.attr == "state" else holder
    if not state and not is_accelerator(project, module, own):
        return False
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, _ARMS):
            return False
    leaves = (n for s in above(module, module.statement_of(node)) for n in ast.walk(s))
    return not any(isinstance(n, (ast.Return, ast.Raise)) for n in leaves)
