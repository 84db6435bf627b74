"""Who runs a function that Accelerate was given to run before it saves its state: whoever calls `save_state`.

`Accelerator.save_state` runs the functions of `register_save_state_pre_hook` on the process that calls it, before it saves
anything (accelerate 1.15, `accelerator.py`): under a guard that is the main process alone.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import CallSite, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_REGISTERS = "register_save_state_pre_hook"


def saving_calls(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...] | None:
    """The calls of `save_state` that run the function; None for one that is no such hook."""
    if not module.holds(_REGISTERS.encode()):
        return None
    handed = uses_of(project, module, function).handed_on
    if not any(_registers(place.module, place.node) for place in handed):
        return None
    calls = ((c, c.func) for c in module.calls_named("save_state"))
    named = ((c, last(dotted(f.value))) for c, f in calls if isinstance(f, ast.Attribute))
    return tuple(CallSite(module, c) for c, name in named if "accelerator" in name.lower())


def _registers(module: SourceModule, node: ast.expr) -> bool:
    up = module.parent(node)
    return isinstance(up, ast.Call) and last(dotted(up.func)) == _REGISTERS
