"""`accelerator.save_state` of old versions, which all processes cannot call together.

Read in the wheels: up to 0.21 it neither tests the rank nor waits. With `automatic_checkpoint_naming` each process that calls it
removes the oldest checkpoints (`total_limit`), and raises ValueError where another one has made the new folder by then. 0.22
waits, but behind these steps; from 0.23 on the main process alone removes, and all wait before the folder is made.
"""

from __future__ import annotations

import ast

from codemods.analysis.frameworks import accelerate_pin
from codemods.analysis.guards.shown_engines import may_shard
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_SETTLED = (0, 23)
_ENGINES = frozenset({"DEEPSPEED", "FSDP", "MEGATRON_LM"})
_NAMING = "automatic_checkpoint_naming"


def harm_of_all(project: Project, module: SourceModule) -> str:
    """What would happen if every process called `save_state`, "" where all of them may."""
    pin = accelerate_pin(project, near=module.path)
    if pin is not None and pin.surely_at_least(_SETTLED):
        return ""
    old = pin is not None and pin.surely_below(_SETTLED)
    if not old and not _names_checkpoints(project):
        return ""
    shown = f"{pin.text} ({pin.path}:{pin.line}) allows that" if pin is not None else "no file pins accelerate"
    return (
        f"before Accelerate 0.23, and {shown}, `save_state` does not make the ranks take turns: with `{_NAMING}` each process "
        "removes old checkpoints, and raises where another one has made the new folder; require accelerate>=0.23, then call it "
        "on every rank"
    )


def loses_little(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where `save_state` on rank 0 alone loses the random state of the others and nothing else.

    The processes of an old version cannot all call it; or nothing shows DeepSpeed or FSDP, which would hang or leave shards out;
    or their processes come to a call of their own.
    """
    pin = accelerate_pin(project, near=module.path)
    if (pin is not None and pin.surely_below(_SETTLED)) or not may_shard(project):
        return True
    tests = [n for n in module.nodes(ast.If) if module.function_of(n) is function and _asks_for_engine(n.test)]
    inside = (n for test in tests if not ranks_at(module, test, project=project).some for s in test.body for n in ast.walk(s))
    return any(isinstance(n, ast.Call) and last(dotted(n.func)) == "save_state" for n in inside)


def _asks_for_engine(test: ast.expr) -> bool:
    """True for a test that lets every process of DeepSpeed or FSDP through: `accelerator.distributed_type == DEEPSPEED`."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.Or) and any(map(_asks_for_engine, test.values))
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.In, ast.Is)):
        return False
    return any(last(dotted(n)) in _ENGINES or getattr(n, "value", None) in _ENGINES for n in ast.walk(test.comparators[0]))


def _names_checkpoints(project: Project) -> bool:
    """True where the project has Accelerate count its checkpoints, or may."""
    return project.keep(_NAMING, lambda: any(map(_is_set, _modules(project))))


def _modules(project: Project) -> list[SourceModule]:
    found = (project.module(p) for p in project.files_containing(_NAMING.encode()))
    return [m for m in found if m is not None]


def _is_set(module: SourceModule) -> bool:
    for keyword in (k for c in module.nodes(ast.Call) for k in c.keywords):
        if keyword.arg == _NAMING:
            return not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
    return any(c.value == _NAMING for c in module.nodes(ast.Constant)) or any(
        a.attr == _NAMING and isinstance(a.ctx, ast.Store) for a in module.nodes(ast.Attribute)
    )
