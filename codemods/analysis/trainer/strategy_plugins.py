"""A strategy of Lightning that is handed to the Trainer as a plug-in: `plugins=DDPPlugin(…)`, `plugins="ddp_…"`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import family, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.record import record

_CLASSES = frozenset({"DDPPlugin", "DDPSpawnPlugin", "DeepSpeedPlugin", "DDPStrategy", "DDPSpawnStrategy", "DeepSpeedStrategy"})
STRATEGY_NAMES = frozenset(
    {"ddp", "ddp_spawn", "ddp_find_unused_parameters_false", "ddp_spawn_find_unused_parameters_false",
     "deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3", "deepspeed_stage_2_offload",
     "deepspeed_stage_3_offload"}
)  # fmt: skip


@record
class InPlugins:
    """strategy: the element that is one, None where none is; rest: the others; unknown: something that may be one."""

    strategy: ast.expr | None
    rest: tuple[ast.expr, ...]
    unknown: bool
    several: bool = False


def in_plugins(module: SourceModule, value: ast.expr) -> InPlugins:
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    found = [e for e in elements if is_strategy(module, e)]
    rest = tuple(e for e in elements if e not in found)
    unknown = len(found) > 1 or (not found and any(not _surely_none(module, e) for e in rest))
    return InPlugins(found[0] if len(found) == 1 else None, rest, unknown, len(found) > 1)


def is_strategy(module: SourceModule, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in STRATEGY_NAMES
    if isinstance(node, ast.Name):
        bound = [b.value for b in bindings_of(module, node)]
        made = [v for v in bound if not (isinstance(v, ast.Constant) and v.value is None)]
        return len(made) == 1 and isinstance(made[0], ast.Call) and is_strategy(module, made[0])
    if not isinstance(node, ast.Call):
        return False
    name = qualified(module, node.func)
    return last(name) in _CLASSES and family(name) == "lightning"


def _surely_none(module: SourceModule, node: ast.expr) -> bool:
    """True for what is surely no strategy: None, and a class of Lightning that is none."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if not isinstance(node, ast.Call):
        return False
    name = qualified(module, node.func)
    return family(name) == "lightning" and ("Environment" in last(name) or "Precision" in last(name) or "IO" in last(name))
