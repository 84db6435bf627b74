"""Statements after which a script is one process: a Trainer of one device, an assertion."""

from __future__ import annotations

import ast
import re

from codemods.analysis.names import qualified
from codemods.analysis.paths import origin_text
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

TRAINERS = frozenset({"lightning.pytorch.Trainer", "pytorch_lightning.Trainer", "lightning.Trainer"})
_COUNTED = lazy(r"gpu|device|world_size|num_proc|n_?proc", re.IGNORECASE)


def is_alone(module: SourceModule, value: ast.expr) -> bool:
    """True for a Trainer of one device on one node: the script runs as one process, whatever its strategy is called."""
    if not isinstance(value, ast.Call) or qualified(module, value.func) not in TRAINERS:
        return False
    given = {k.arg: k.value for k in value.keywords}
    nodes = given.get("num_nodes")
    devices = given.get("devices", given.get("gpus"))
    single = isinstance(devices, ast.Constant) and devices.value in (1, "1")
    single |= isinstance(devices, ast.List) and len(devices.elts) == 1
    return single and (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1)) and None not in given


def claims_one_process(module: SourceModule, statement: ast.stmt) -> bool:
    """True for `assert len(args.gpus) == 1`: what follows is one process."""
    if not isinstance(statement, ast.Assert):
        return False
    compared = [n for n in walk(statement.test) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq)]
    of_one = [n for n in compared if isinstance(n.comparators[0], ast.Constant) and n.comparators[0].value == 1]
    return any(_COUNTED.search(origin_text(module, n.left)) for n in of_one)
