"""The scale of what a call gives: a reduction over the ranks, a sum, a mean, a count, or the number that it is handed."""

from __future__ import annotations

import ast
import re

from codemods.analysis.averages.frame import Frame
from codemods.analysis.averages.scale import CONSTANT, PROCESSES, Items, Number, Parts, Scale, averaged, joined, plus, summed
from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import Collective, collective_at
from codemods.analysis.variance.paths import path_of, unpacked
from codemods.files.source import SourceModule
from codemods.runtime.record import replace

_SAME = frozenset(
    {"item", "cpu", "cuda", "to", "detach", "clone", "float", "double", "half", "long", "int", "numpy", "tolist", "squeeze",
     "unsqueeze", "view", "reshape", "flatten", "clamp", "clamp_min", "clip", "round", "max", "min", "diag", "diagonal",
     "sigmoid", "contiguous", "type", "type_as", "copy", "asnumpy"}
)  # fmt: skip
CASTS = frozenset(
    {"float", "int", "round", "abs", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "numpy.array",
     "numpy.asarray", "torch.stack", "torch.cat", "list", "tuple", "torch.from_numpy", "numpy.concatenate", "numpy.stack"}
)  # fmt: skip
_MEANS = frozenset({"mean", "average", "nanmean", "fmean"})
_SUMS = frozenset({"sum", "nansum", "fsum"})
_LARGEST = frozenset({"max", "min", "torch.clamp", "torch.max", "torch.min", "numpy.maximum", "torch.maximum"})
_BLANK = frozenset({"zeros", "zeros_like", "new_zeros", "empty"})
_PROCESSES = re.compile(r"^(world_?size|num_processes|nprocs|get_world_size|num_replicas|world)$", re.I)
_NO_OTHER = frozenset({"all_reduce", "reduce"})


def is_process_count(frame: Frame, node: ast.expr) -> bool:
    return is_process_count_in(frame.module, node)


def is_process_count_in(module: SourceModule, node: ast.expr) -> bool:
    """True for the number of processes: by a call, by its name, or by a name that holds it."""
    name = last(dotted(node.func if isinstance(node, ast.Call) else node))
    if _PROCESSES.search(name):
        return True
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    if isinstance(node, ast.Attribute):
        bound = attribute_bindings(module, node)
    values = [b.value for b in bound if b.value is not None and not b.part and not _is_one(b.value)]
    return bool(values) and all(isinstance(v, ast.Call) and _PROCESSES.search(last(dotted(v.func))) for v in values)


def _is_one(node: ast.expr) -> bool:
    """True for the number of a run with one process."""
    return isinstance(node, ast.Constant) and node.value == 1


def call_number(frame: Frame, node: ast.Call) -> Number:
    collective = collective_at(frame.module, node, frame.reading.project)
    if collective is not None:
        return None if collective.grouped else reduced_here(frame, node, collective)
    name = qualified(frame.module, node.func)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if _PROCESSES.search(last(name) or method):
        return PROCESSES
    if method and not _is_of_package(name):
        return _of_method(frame, node, node.func.value, method) if isinstance(node.func, ast.Attribute) else None
    return _of_function(frame, node, name, last(name))


def _is_of_package(name: str) -> bool:
    return name.startswith(("torch.", "numpy.", "math.", "statistics."))


def _of_method(frame: Frame, node: ast.Call, held: ast.expr, method: str) -> Number:
    if method in _MEANS:
        return averaged(frame.of(held))
    if method in _SUMS:
        return summed(frame.of(held))
    if method in _SAME:
        return frame.of(held)
    if method in _BLANK:
        return CONSTANT
    if method in ("size", "numel") and frame.is_of_batch(held):
        return Scale(own=True, content=frame.is_by_data(node))
    return frame.inlined(node)


def _of_function(frame: Frame, node: ast.Call, name: str, end: str) -> Number:
    if not node.args:
        return frame.inlined(node)
    first = node.args[0]
    if end == "len" and len(node.args) == 1:
        return count_of(frame, first)
    if end in _BLANK:
        return CONSTANT
    if name in CASTS:
        return frame.of(first)
    if end in _SUMS and (name == end or _is_of_package(name)):
        return summed(frame.of(first))
    if end in _MEANS and _is_of_package(name):
        return averaged(frame.of(first))
    if name in _LARGEST:
        found = frame.of(first)
        for other in node.args[1:]:
            found = plus(found, frame.of(other))
        return found
    return frame.inlined(node)


# How many


def count_of(frame: Frame, node: ast.expr) -> Scale | None:
    """How many there are in something: a constant, a number of the reading, or an open count of what stands at a path."""
    node = unpacked(node)
    if isinstance(node, ast.Call):
        end = last(dotted(node.func))
        if end in ("range", "trange") and node.args:
            found = frame.scale_of(node.args[-1 if len(node.args) < 3 else 1])
            return replace(found, joined=None) if found is not None else None
        if end == "zip" and node.args:
            return count_of(frame, node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys", "values"):
            return count_of(frame, node.func.value)
        return None
    if isinstance(node, (ast.Tuple, ast.List, ast.Constant, ast.Set)):
        return CONSTANT
    path = path_of(node) if not isinstance(node, ast.Subscript) else ""
    if not path:
        return None
    held = frame.env.get(path)
    if isinstance(held, Items):
        return None if isinstance(held.element, Items) else held.count
    if isinstance(held, Parts):
        return CONSTANT
    if frame.is_of_batch(node):
        return Scale(own=True)
    if path.endswith(".dataset"):
        return _of_dataset(frame, node)
    return frame.many(path.removesuffix(".sampler").removesuffix(".batch_sampler"), _loader_of(node))


def _loader_of(node: ast.expr) -> ast.expr:
    sampled = isinstance(node, ast.Attribute) and node.attr in ("sampler", "batch_sampler")
    return node.value if sampled and isinstance(node, ast.Attribute) else node


def _of_dataset(frame: Frame, node: ast.expr) -> Scale | None:
    """`len(loader.dataset)`: the whole, where a sampler shares it out; what the rank itself picked is a share."""
    assert isinstance(node, ast.Attribute)
    value = frame.value(node.value)
    if not value.differs or value.sized:
        return None
    shared = value.origin is not None and not value.origin.by_name and ("share" in value.origin.text)
    return Scale() if shared else None


# Reductions


def reduced_here(frame: Frame, node: ast.Call, found: Collective) -> Number:
    """What a collective gives back; what it changes in place is changed in the frame."""
    given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in ("tensor", "input")), None)
    if given is None:
        return None
    if found.framework == "torch" and found.name in _NO_OTHER:
        op = _operation(node, node.args[1:] if found.name == "all_reduce" else node.args[2:], "op", "SUM")
        _in_place(frame, given, node, op)
        return None
    if found.framework == "torch" and found.name in ("all_gather", "all_gather_object", "gather_object", "gather"):
        _gathered(frame, node, found.name)
        return None
    if found.framework == "accelerate" and found.name in ("gather", "gather_for_metrics"):
        element = joined(frame.at(node), frame.of(given), adds=False, averages=True)
        return Items(element, PROCESSES) if found.name == "gather" else Items(element, None)
    if found.framework in ("accelerate", "fabric") and found.name in ("reduce", "all_reduce"):
        default = "sum" if found.framework == "accelerate" else "mean"
        op = _operation(node, node.args[1:], "reduction" if default == "sum" else "reduce_op", default)
        return _joined_as(frame, frame.of(given), node, op)
    return None


def _operation(node: ast.Call, rest: list[ast.expr], keyword: str, default: str) -> str:
    """The name of the operation, in capitals; "" where it is not written out."""
    given = next((k.value for k in node.keywords if k.arg == keyword), rest[0] if rest else None)
    if given is None:
        return default.upper()
    if isinstance(given, ast.Constant):
        return str(given.value).upper()
    return last(dotted(given)).upper() if "ReduceOp" in dotted(given) else ""


def _joined_as(frame: Frame, number: Number, node: ast.Call, op: str) -> Number:
    if op not in ("SUM", "AVG", "MEAN", "MAX", "MIN"):
        return None
    return joined(frame.at(node), number, adds=op == "SUM", averages=op in ("AVG", "MEAN"))


def _in_place(frame: Frame, given: ast.expr, call: ast.Call, op: str) -> None:
    path = path_of(given).removesuffix(".data")
    if not path:
        return
    for name in [n for n in frame.env if n == path or n.startswith(f"{path}[")]:
        frame.env[name] = _joined_as(frame, frame.env[name], call, op)
    if path not in frame.env:
        frame.env[path] = _joined_as(frame, frame.of(given), call, op)
    frame.changed.add(path)


def _gathered(frame: Frame, node: ast.Call, name: str) -> None:
    """`dist.all_gather(parts, x)`: the list holds what each rank had."""
    into, given = (1, 0) if name in ("gather", "gather_object") else (0, 1)
    if len(node.args) <= max(into, given):
        return
    path = path_of(node.args[into])
    if path:
        element = joined(frame.at(node), frame.of(node.args[given]), adds=False, averages=True)
        frame.env[path] = Items(element, PROCESSES)
        frame.changed.add(path)
