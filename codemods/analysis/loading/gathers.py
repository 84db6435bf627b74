"""What gathers a tensor from all ranks as it is: a collective, or a function of the project that hands it to one."""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.call_graph import run_function
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_KEEPS_SHAPE = frozenset({"to", "cpu", "cuda", "detach", "clone", "contiguous", "long", "int", "bool", "float"})
_CALLS = 3  # of functions that hand the tensor on
# Where the tensor stands among the arguments of what gathers it, and its keyword.
_GATHERS = {"all_gather": (1, "tensor"), "all_gather_into_tensor": (1, "input_tensor"), "_all_gather_base": (1, "input_tensor")}
_OF_ACCELERATE = frozenset({"gather", "gather_for_metrics"})


def as_it_is(node: ast.expr) -> ast.expr:
    """`x` of `x.to(device)` and `x.clone()`, which have its shape."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_SHAPE:
        node = node.func.value
    return node


def gathered_by(
    project: Project, module: SourceModule, call: ast.Call, part: ast.expr, depth: int = 0
) -> tuple[SourceModule, ast.Call] | None:
    """The collective that takes an argument of a call as it is: the call itself, or one in the function that it runs."""
    if _takes(project, module, call, part):
        return module, call
    site = run_function(project, module, call) if depth < _CALLS else None
    name = held_as(site, call, part) if site is not None else ""
    if site is None or not name or evens_out(site.node):
        return None
    for inner in (n for n in walk(site.node) if isinstance(n, ast.Call)):
        for given in (*inner.args, *(k.value for k in inner.keywords)):
            held = as_it_is(given)
            if isinstance(held, ast.Name) and held.id == name:
                found = gathered_by(project, site.module, inner, given, depth + 1)
                if found is not None:
                    return found
    return None


def _takes(project: Project, module: SourceModule, call: ast.Call, part: ast.expr) -> bool:
    """True for a gather of all ranks that is given the tensor: `all_gather(out, tensor)`, `accelerator.gather(tensor)`."""
    name = last(qualified(module, call.func) or dotted(call.func))
    if name in _OF_ACCELERATE and isinstance(call.func, ast.Attribute):
        return part in call.args[:1] and is_accelerator(project, module, call.func.value)
    found = collective_at(module, call, project)
    if found is None or found.grouped or found.name not in _GATHERS:
        return False
    if found.framework != "torch" or ".nn." in found.text:  # `self.all_gather(x)`, `torch.distributed.nn.all_gather(x)`
        return found.name == "all_gather" and part in call.args[:1]
    index, keyword = _GATHERS[found.name]
    return part in call.args[index : index + 1] or any(k.arg == keyword and k.value is part for k in call.keywords)


def evens_out(function: FunctionNode) -> bool:
    """True for a function that pads, asks for the sizes of the others first, or gathers by objects."""
    calls = [last(dotted(n.func)).lower() for n in walk(function) if isinstance(n, ast.Call)]
    sizes = "size" in calls or any(isinstance(n, ast.Attribute) and n.attr == "shape" for n in walk(function))
    gathers = sum("gather" in c or "reduce" in c for c in calls)
    return any("pad" in c or "object" in c for c in calls) or (sizes and gathers > 1)
