"""States of a torchmetrics object that stay stacked, one tensor of each rank, where `compute` takes one.

Without `dist_reduce_fx` nothing follows the stacking; with "cat" neither, where the state is a tensor and no list (measured).
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.unshared_states import is_plain_metric, is_put_together
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_GOES_THROUGH = frozenset({"zip", "enumerate", "list", "iter", "map", "len"})
_BY_ELEMENT = frozenset({"sqrt", "exp", "log", "log2", "abs", "square", "float", "int"})
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_STEPS = 12


@record
class Stacked:
    """name: the state. call: `add_state`. grows: the line of `update`; read: the place of `compute` that takes it for one tensor.

    number: it is a number that is added to; else a tensor that others are appended to.
    """

    name: str
    call: ast.Call
    grows: int
    read: int
    number: bool


def stacked_states(project: Project, module: SourceModule, node: ast.ClassDef) -> list[Stacked]:
    """The states of a class that no function joins, and that its own `compute` reads as if they were of one process."""
    methods = module.methods_of(node)
    update, compute, init = methods.get("update"), methods.get("compute"), methods.get("__init__")
    if update is None or compute is None or init is None:
        return []
    announced = [c for c in module.calls_named("add_state") if module.function_of(c) is init and _is_unreduced(c)]
    facts = class_facts(project, module, node) if announced else None
    if facts is None or not is_plain_metric(facts) or is_put_together(facts):
        return []
    found = (_judged(module, call, update, compute) for call in announced)
    return [one for one in found if one is not None]


def _is_unreduced(call: ast.Call) -> bool:
    """True for `self.add_state("x", default=torch.…)` that gives no function, not even `None`, or "cat"."""
    if dotted(call.func) != "self.add_state" or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    if any(k.arg is None for k in call.keywords):
        return False
    function = _given(call, 2, "dist_reduce_fx")
    return function is None or (isinstance(function, ast.Constant) and function.value == "cat")


def _judged(module: SourceModule, call: ast.Call, update: FunctionNode, compute: FunctionNode) -> Stacked | None:
    name = _given(call, 0, "name")
    default = _given(call, 1, "default")
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or default is None:
        return None
    tensor = _made_tensor(module, default)
    if tensor is None or not (grows := _grows(module, update, name.value, number=_is_number(tensor))):
        return None
    reads = [n for n in walk(compute) if isinstance(n, ast.Attribute) and dotted(n) == f"self.{name.value}"]
    if any(not isinstance(r.ctx, ast.Load) or isinstance(module.parent(r), ast.Attribute) for r in reads):
        return None  # `self.x.flatten()`, `self.x.dim()`: it may know of the ranks
    wrong = _returned_by_element if _is_number(tensor) else _gone_through
    broken = [r.lineno for r in reads if wrong(module, compute, r)]
    return Stacked(name.value, call, grows, min(broken), _is_number(tensor)) if broken and len(broken) == len(reads) else None


def _given(call: ast.Call, position: int, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), call.args[position] if len(call.args) > position else None)


def _made_tensor(module: SourceModule, default: ast.expr) -> ast.Call | None:
    """`torch.tensor([])` of `torch.tensor([]).bool()`."""
    while isinstance(default, ast.Call) and isinstance(default.func, ast.Attribute) and isinstance(default.func.value, ast.Call):
        default = default.func.value
    made = isinstance(default, ast.Call) and qualified(module, default.func) in ("torch.tensor", "torch.empty", "torch.zeros")
    return default if made and isinstance(default, ast.Call) and default.args else None


def _is_number(tensor: ast.Call) -> bool:
    return last(dotted(tensor.func)) == "tensor" and isinstance(tensor.args[0], ast.Constant)


def _grows(module: SourceModule, update: FunctionNode, name: str, *, number: bool) -> int:
    """The line where `update` adds to the number, or puts the tensor and another one together; 0 where it does neither."""
    for node in walk(update):
        if number and isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            if dotted(node.target) == f"self.{name}":
                return node.lineno
        if number or not isinstance(node, ast.Assign) or [dotted(t) for t in node.targets] != [f"self.{name}"]:
            continue
        value = node.value
        joined = isinstance(value, ast.Call) and qualified(module, value.func) in _JOINS
        if joined and any(dotted(n) == f"self.{name}" for n in walk(value) if isinstance(n, ast.Attribute)):
            return node.lineno
    return 0


def _gone_through(module: SourceModule, compute: FunctionNode, read: ast.expr) -> bool:
    """True for `for x in self.xs` and `zip(self.xs, …)`: it goes through the ranks, one process through the samples."""
    up = module.parent(read)
    if isinstance(up, (ast.For, ast.comprehension)):
        return up.iter is read
    return isinstance(up, ast.Call) and up.func is not read and dotted(up.func) in _GOES_THROUGH


def _returned_by_element(module: SourceModule, compute: FunctionNode, read: ast.expr) -> bool:
    """True where `compute` gives back what it works out of the number with no function that makes one of several."""
    node: ast.AST = read
    for _ in range(_STEPS):
        up = module.parent(node)
        if isinstance(up, ast.Return):
            return True
        if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(name := up.targets[0], ast.Name):
            uses = [n for n in walk(compute) if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load)]
            if len(uses) != 1 or len(bindings_in(module, compute, name.id)) != 1:
                return False
            up = uses[0]
        elif isinstance(up, ast.Call):
            if node not in up.args or last(dotted(up.func)) not in _BY_ELEMENT:
                return False
        elif not isinstance(up, (ast.BinOp, ast.UnaryOp)):
            return False
        node = up
    return False
