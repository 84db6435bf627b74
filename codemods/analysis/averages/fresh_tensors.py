"""Does an expression make a tensor of its own, or hand out one that has another name, too?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import last, qualified
from codemods.analysis.variance.paths import parameters
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

# Attributes of a tensor that make something of their own of it, or only tell of it.
COPIED = frozenset(
    {"item", "tolist", "clone", "mean", "sum", "max", "min", "norm", "pow", "sqrt", "exp", "log", "abs", "shape", "size", "numel",
     "dim", "device", "dtype", "ndim", "requires_grad", "div", "mul", "add", "sub"}
)  # fmt: skip
# Those that may hand out the same memory under another name.
KEPT = frozenset(
    {"data", "detach", "float", "double", "half", "bfloat16", "long", "int", "type", "type_as", "to", "cuda", "cpu", "numpy",
     "contiguous", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "view_as", "requires_grad_", "T"}
)  # fmt: skip
_SHARING = frozenset({"from_numpy", "as_tensor", "asarray", "frombuffer"})
_FILLS = frozenset({"ones", "zeros", "empty", "full", "rand", "randn", "randint", "arange", "tensor", "ones_like", "zeros_like"})
_HANDS_OUT = frozenset({"next", "getattr", "get", "pop", "popleft", "setdefault", "parameters", "buffers"})


@record
class Made:
    """node: the statement. sources: names whose memory the tensor may share. filler: it is made of no data of the program."""

    node: ast.stmt
    sources: frozenset[str]
    filler: bool = False

    @property
    def line(self) -> int:
        return self.node.end_lineno or self.node.lineno


def made_new(project: Project, module: SourceModule, value: ast.expr, statement: ast.stmt) -> Made | None:
    """The statement and the names that may hold the same memory; None where the tensor may be held by something else."""
    sources = _sources(project, module, value)
    return None if sources is None else Made(statement, sources, _is_filler(module, value))


def _is_filler(module: SourceModule, value: ast.expr) -> bool:
    """True for `torch.ones(1).cuda()` and the like: what is handed round for its own sake, to warm up or to wait."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in KEPT:
        value = value.func.value
    if not isinstance(value, ast.Call) or last(qualified(module, value.func)) not in _FILLS:
        return False
    plain = last(qualified(module, value.func)) == "tensor"
    return not plain or not any(isinstance(n, ast.Name) for a in value.args for n in walk(a))


def _sources(project: Project, module: SourceModule, value: ast.expr) -> frozenset[str] | None:
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return frozenset()
    if isinstance(value, ast.Name):
        return frozenset({value.id})
    if isinstance(value, ast.IfExp):
        arms = [_sources(project, module, arm) for arm in (value.body, value.orelse)]
        return None if None in arms else frozenset().union(*(a for a in arms if a is not None))
    if isinstance(value, ast.Attribute):
        return _sources(project, module, value.value) if value.attr in KEPT | {"loss"} else None
    if isinstance(value, ast.Subscript):
        named = isinstance(value.slice, ast.Constant) and isinstance(value.slice.value, str)
        return _sources(project, module, value.value) if named else None
    return _of_call(project, module, value) if isinstance(value, ast.Call) else None


def _of_call(project: Project, module: SourceModule, call: ast.Call) -> frozenset[str] | None:
    name = last(qualified(module, call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    if name in _SHARING:
        return _sources(project, module, call.args[0]) if call.args else None
    if name in _HANDS_OUT:
        return None
    if isinstance(call.func, ast.Attribute) and name in KEPT:
        return _sources(project, module, call.func.value)
    site = called_function(project, module, call)
    if site is not None and _may_hand_out(site.node):
        return None
    return frozenset()


def _may_hand_out(function: FunctionNode) -> bool:
    """True where a function of the project returns what it was handed, or something that is kept elsewhere."""
    handed = parameters(function)
    for node in walk_scope(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Return):
            value = node.value
            if not isinstance(value, (ast.BinOp, ast.Call, ast.Name)) or (isinstance(value, ast.Name) and value.id in handed):
                return True
    return False
