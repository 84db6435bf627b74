"""Does a function train on one device of one node? Its Trainer starts no other process then, whatever its strategy is called."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import family, qualified
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule

_DEPTH = 2  # functions that hand the devices on


def trains_on_one_device(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where all of Lightning's Trainers in a function, or in the script itself, have one device on one node."""
    if not module.holds(b"Trainer("):
        return False
    made = [c for c in module.calls_named("Trainer") if module.function_of(c) is function and _is_lightning(module, c)]
    return bool(made) and all(_has_one(project, module, call) for call in made)


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    return family(qualified(module, call.func)) == "lightning"


def _has_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    devices, nodes = given.get("devices", given.get("gpus")), given.get("num_nodes")
    if devices is None or None in given or not (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1)):
        return False
    return _is_one(project, module, devices, _DEPTH)


def _is_one(project: Project, module: SourceModule, devices: ast.expr, depth: int) -> bool:
    if isinstance(devices, ast.Constant):
        return devices.value in (1, "1") and devices.value is not True
    if isinstance(devices, (ast.List, ast.Tuple)):
        return len(devices.elts) == 1
    if not isinstance(devices, ast.Name) or depth < 0:
        return False
    bound = bindings_of(module, devices)
    function = module.function_of(devices)
    if function is not None and len(bound) == 1 and bound[0].parameter:
        handed = list(arguments(project, module, function, devices.id))
        return bool(handed) and all(_is_one(project, home, value, depth - 1) for home, value in handed)
    return bool(bound) and all(b.value is not None and not b.part and _is_one(project, module, b.value, depth - 1) for b in bound)
