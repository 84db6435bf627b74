"""The GPU's number as the name of a process: `if self.device == 0:`, and a file named after it.

Where one process has one GPU the number is the local rank. What a parameter `device` is given cannot always be followed (by
hydra's `instantiate(cfg, device=device)`, through a configuration): the names alone say that others than this rank are meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy

DEVICE_NAMES = frozenset({"device", "device_id", "device_index", "gpu", "gpu_id", "gpu_index", "gpu_idx", "local_rank"})
_TEST = lazy(rb"\b(?:device|gpu)(?:_id|_index|_idx)?[ \t]*(?:[!=]=|(?:not[ \t]+)?in\b)|\bcurrent_device\(")
# How many GPUs or processes there are: the last one is somebody, too.
_COUNT = lazy(r"gpus|devices|n_?procs?(?:_|\b)|num_proc|world_?size|device_count", re.IGNORECASE)
_PLAIN = frozenset({"cpu", "cuda", "mps", "auto"})  # a device that is the same text on every rank
_DEPTH = 2


def asks_for_a_device(module: SourceModule, test: ast.expr) -> bool:
    """True for `device == 0`, `args.gpu != ngpus - 1`, `torch.cuda.current_device() == 0` and `gpu in (-1, 0)` within a test.

    `gpu >= 0` asks whether there is any.
    """
    if not _may_ask(module):
        return False
    return any(isinstance(n, ast.Compare) and _is_of_one(n) for n in walk(test))


@once_a_module
def _may_ask(module: SourceModule) -> bool:
    return _TEST.search(module.data) is not None


def _is_of_one(node: ast.Compare) -> bool:
    if len(node.ops) != 1 or not _is_number_of_device(node.left):
        return False
    other = node.comparators[0]
    if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return _is_zero(other) or _is_last(other)
    if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(other, (ast.List, ast.Tuple, ast.Set)):
        return any(_is_zero(e) for e in other.elts)
    return False


def _is_number_of_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and dotted(node.func) == "int" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in ("current_device", "get_device") and not node.args
    return last(dotted(node)) in DEVICE_NAMES


def _is_last(node: ast.expr) -> bool:
    """True for `ngpus_per_node - 1`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or not isinstance(node.right, ast.Constant):
        return False
    counted = node.left.func if isinstance(node.left, ast.Call) else node.left
    return node.right.value == 1 and _COUNT.search(last(dotted(counted))) is not None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)


def names_a_device(module: SourceModule, path: ast.expr) -> bool:
    """True for a path with the device of its process in it, itself or in what its names were made from."""
    return any(not _is_plain(module, node) for node in _devices(module, path, _DEPTH))


def _devices(module: SourceModule, path: ast.expr, depth: int) -> Iterator[ast.expr]:
    for node in walk(path):
        if isinstance(node, ast.Call) and _is_number_of_device(node) and _is_put_into_text(module, node, path):
            yield node
        if not isinstance(node, (ast.Name, ast.Attribute)) or not (name := dotted(node)):
            continue
        if last(name) in DEVICE_NAMES or name.endswith("device.index"):
            if _is_put_into_text(module, node, path):
                yield node
        elif depth > 0 and (isinstance(node, ast.Name) or name.startswith("self.")):
            for value in assigned(module, node, name)[:4]:
                if isinstance(value, (ast.JoinedStr, ast.BinOp, ast.Call, ast.Name, ast.Subscript)):
                    yield from _devices(module, value, depth - 1)


def _is_put_into_text(module: SourceModule, node: ast.expr, path: ast.expr) -> bool:
    """`f"{device}.pt"`, `"%d.pt" % gpu`, `str(device)`, `"{}.pt".format(gpu)`: not `load(path, device)`."""
    below: ast.AST = node
    for up in (node, *module.ancestors(node)):
        if isinstance(up, (ast.FormattedValue, ast.BinOp)):
            return True
        if isinstance(up, ast.Call) and up is not node and below is not up.func:
            return last(dotted(up.func)) in ("str", "join", "joinpath") or getattr(up.func, "attr", "") == "format"
        if up is path:
            return up is node
        below = up
    return False


def _is_plain(module: SourceModule, node: ast.expr) -> bool:
    """True where the device is `"cuda"` or `torch.device("cuda")`, the same on every rank."""
    values = assigned(module, node, dotted(node))
    return bool(values) and all(_names_a_kind(v) for v in values)


def _names_a_kind(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _names_a_kind(value.body) and _names_a_kind(value.orelse)
    if isinstance(value, ast.Call) and last(dotted(value.func)) == "device" and len(value.args) == 1:
        return _names_a_kind(value.args[0])
    return isinstance(value, ast.Constant) and value.value in _PLAIN
