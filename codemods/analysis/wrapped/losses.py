"""What a loss is made of: the calls behind `loss.backward()`, through names, attributes of self and functions of the project.

What is cut off from the gradient (`.detach()`, `.item()`, `torch.autograd.grad`) is not behind it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_in, bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_module
from codemods.analysis.model.signatures import bind, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.reaching import reaching
from codemods.files.source import FunctionNode, SourceModule, child_nodes, once_a_module, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 3  # functions inside functions that make the loss
MOST_CALLERS = 6
MOST = 3000  # expressions behind one loss
_CUT = frozenset({"detach", "item", "tolist", "numpy", "size", "argmax", "detach_"})
_OPTIMIZER = lazy(r"optim|\bopts?\b|scaler", re.I)
QUIET = frozenset({"no_grad", "inference_mode"})


@record
class Behind:
    """A call behind a loss. entered: the project function that it runs was followed in turn.

    through: for a call inside of such a function, the call of it where the loss is made.
    """

    module: SourceModule
    call: ast.Call
    entered: bool
    through: ast.Call | None = None


@record
class Backward:
    """A backward pass, and the expression that it goes back from. steps: the call takes the optimizer's step, too."""

    module: SourceModule
    call: ast.Call
    loss: ast.expr
    steps: bool = False


def backward_passes(module: SourceModule) -> Iterator[Backward]:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`, `loss_scaler(loss, optimizer)`."""
    for call in module.calls_named("backward"):
        if not isinstance(call.func, ast.Attribute):
            continue
        holder = call.func.value
        owner = last(dotted(holder)).lower()
        if call.args and _steps(module, holder):
            continue
        if call.args and (owner in ("self", "fabric", "engine") or "accelerator" in owner):
            yield Backward(module, call, call.args[0])
        else:
            yield Backward(module, call, holder)
    for call in module.nodes(ast.Call) if module.holds(b"scaler(") else ():
        if last(dotted(call.func)).lower().endswith("scaler") and len(call.args) + len(call.keywords) > 1 and call.args:
            if any("optim" in module.text_of(a) for a in (*call.args[1:], *(k.value for k in call.keywords))):
                yield Backward(module, call, call.args[0], steps=True)


def _steps(module: SourceModule, holder: ast.expr) -> bool:
    """True for `engine.backward(loss)` beside `engine.step()`: an engine of DeepSpeed, which averages the gradients itself."""
    return any(
        isinstance(c.func, ast.Attribute) and dotted(c.func.value) == dotted(holder) != "self" and not c.args
        for c in module.calls_named("step")
    )


def behind(project: Project, one: Backward) -> list[Behind]:
    """Every call that the loss is made of, the nearest first; none where there are too many to see all of them."""
    search = _Slice(project)
    search.follow(one.module, one.loss, 0)
    return search.found if len(search.seen) < MOST else []


def only_looks_at_gradients(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that evaluates and has no optimizer: its gradients are a picture (Grad-CAM), and train nothing."""
    ends = {n.func.attr for n in walk_scope(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    return "eval" in ends and not ends & {"step", "train"} and _OPTIMIZER.search(module.text_of(function)) is None


def is_quiet(module: SourceModule, node: ast.AST) -> bool:
    """True under `torch.no_grad()`, as a block or as a decorator of a function round it."""
    for up in module.ancestors(node):
        entered: list[ast.expr] = []
        if isinstance(up, (ast.With, ast.AsyncWith)):
            entered = [i.context_expr for i in up.items]
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            entered = up.decorator_list
        for context in entered:
            name = last(dotted(context.func if isinstance(context, ast.Call) else context))
            if name in QUIET or (name == "set_grad_enabled" and isinstance(context, ast.Call) and _is_false(context)):
                return True
    return False


def _is_false(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value is False


class _Slice:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.found: list[Behind] = []
        self.seen: set[int] = set()
        self.through: ast.Call | None = None

    def follow(self, module: SourceModule, node: ast.AST, depth: int) -> None:
        """Everything below `node` that its gradient goes through."""
        stack: list[ast.AST] = [node]
        while stack and len(self.seen) < MOST:
            top = stack.pop()
            if id(top) in self.seen:
                continue
            self.seen.add(id(top))
            if isinstance(top, ast.Call):
                if _cuts(module, top) or is_quiet(module, top):
                    continue
                self.found.append(Behind(module, top, self._enter(module, top, depth), self.through))
            elif isinstance(top, ast.Lambda) or (isinstance(top, ast.Attribute) and top.attr in ("data", "shape", "grad")):
                continue
            if isinstance(top, ast.Name) and isinstance(top.ctx, ast.Load):
                stack += self._given(module, top)
                self._from_callers(module, top, depth)
            elif isinstance(top, ast.Attribute):
                stack += [b.value for b in attribute_bindings(module, top) if b.value is not None]
            stack += child_nodes(top)

    def _enter(self, module: SourceModule, call: ast.Call, depth: int) -> bool:
        if depth >= DEPTH:
            return False
        site: FunctionSite | None = called_function(self.project, module, call)
        if site is None or site.node.name == "__init__":
            return False
        values, outside = returned(site.node, site.module), self.through
        self.through = outside or call
        for value in values:
            self.follow(site.module, value, depth + 1)
        self.through = outside
        return bool(values)

    def _from_callers(self, module: SourceModule, name: ast.Name, depth: int) -> None:
        """A loss that the function is given: what its callers hand over."""
        function = module.function_of(name)
        if depth or function is None or not any(b.parameter for b in bindings_in(module, function, name.id)):
            return
        method = isinstance(module.parent(function), ast.ClassDef)
        for site in uses_of(self.project, module, function).calls[:MOST_CALLERS]:
            given = (bind(function, site.call, bound=method) or {}).get(name.id)
            if given is not None and not is_test_module(site.module):
                self.follow(site.module, given, depth + 1)

    def _given(self, module: SourceModule, name: ast.Name) -> Iterator[ast.AST]:
        """What the name may hold: assigned values, what a loop goes over, what is put into it."""
        for bound in reaching(module, name, bindings_of(module, name)):
            if bound.value is not None:
                yield bound.value
            elif isinstance(bound.node, (ast.For, ast.AsyncFor)):
                yield bound.node.iter
            elif isinstance(bound.node, ast.AugAssign):
                yield bound.node.value
            elif isinstance(bound.node, ast.expr):
                yield bound.node
        scope = module.function_of(name)
        yield from (v for where, key, v in _put_in(module) if key == name.id and where is scope)


@once_a_module
def _put_in(module: SourceModule) -> list[tuple[ast.AST | None, str, ast.expr]]:
    """(function, name, value) for `losses["x"] = value` and `losses.append(value)`."""
    return list(_find_put_in(module))


def _find_put_in(module: SourceModule) -> Iterator[tuple[ast.AST | None, str, ast.expr]]:
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                yield module.function_of(assign), target.value.id, assign.value
    for call in module.calls_named("append", "update", "extend"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            yield from ((module.function_of(call), call.func.value.id, a) for a in call.args)


def _cuts(module: SourceModule, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _CUT:
        return True
    return qualified(module, call.func) == "torch.autograd.grad" or dotted(call.func) in ("len", "int", "float")

