"""Where `requires_grad` is switched behind the DDP wrap, and whether it was off in front of it.

DDP takes the parameters that require a gradient when it is made, and averages the gradients of these and of no others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.model.wrapped_model import model_of
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.arms import is_beside_module
from codemods.analysis.wrapped.in_front import is_called_in_front
from codemods.analysis.wrapped.wraps import Held, Side, held, inner_of
from codemods.files.source import FunctionNode, SourceModule, line_of, once_a_module, stands_above, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_LISTS = frozenset({"parameters", "named_parameters"})
DEPTH = 3


@record
class Switch:
    """`requires_grad` of the parameters below `target` (a dotted name) is set. on: to what; None where a parameter decides, whose
    expression is `value`."""

    node: ast.AST
    target: str
    on: bool | None
    value: ast.expr | None = None


@record
class Switched:
    """A switch behind the wrap. node: the statement or the call that leads there; path: below the module inside, or ""."""

    module: SourceModule
    node: ast.AST
    path: str
    on: bool
    inside: Held


def switches(module: SourceModule, function: FunctionNode | None) -> Sequence[Switch]:
    """Every switch that stands in the function itself."""
    return _by_function(module).get(function, ())


@once_a_module
def _by_function(module: SourceModule) -> dict[FunctionNode | None, list[Switch]]:
    out: dict[FunctionNode | None, list[Switch]] = {}
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
            continue
        if whose := _whose(module, assign, target.value):
            out.setdefault(module.function_of(assign), []).append(_switch(module, assign, whose, assign.value))
    for call in module.calls_named("requires_grad_"):
        if isinstance(call.func, ast.Attribute) and (whose := _whose(module, call, call.func.value)):
            given = call.args[0] if call.args else next((k.value for k in call.keywords), None)
            found = _switch(module, call, whose, given if given is not None else ast.Constant(True))
            out.setdefault(module.function_of(call), []).append(found)
    return out


def _switch(module: SourceModule, node: ast.AST, target: str, value: ast.expr) -> Switch:
    constant = value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None
    picked = constant is False and "*" not in target and _is_picked_by_name(module, node)
    return Switch(node, f"{target}.*" if picked else target, constant, value)


def _is_picked_by_name(module: SourceModule, node: ast.AST) -> bool:
    """True under `if "head" not in name:` in a loop over `named_parameters()`."""
    tests: list[ast.expr] = []
    for up in module.ancestors(node):
        if isinstance(up, ast.If):
            tests.append(up.test)
        if isinstance(up, ast.For):
            name = up.target.elts[0] if isinstance(up.target, ast.Tuple) else None
            return isinstance(name, ast.Name) and any(isinstance(n, ast.Name) and n.id == name.id for t in tests for n in walk(t))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return False


def _whose(module: SourceModule, node: ast.AST, holder: ast.expr) -> str:
    """The module whose parameters are gone through, or the one that is named; "" for a part that a test picks."""
    if not isinstance(holder, ast.Name):
        return _part(holder)
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and any(isinstance(n, ast.Name) and n.id == holder.id for n in walk(up.test)):
            return ""
        if isinstance(up, ast.For) and any(isinstance(n, ast.Name) and n.id == holder.id for n in walk(up.target)):
            source = up.iter
            if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr in _LISTS:
                return _part(source.func.value)
            return ""
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return holder.id


def _part(node: ast.expr) -> str:
    """The dotted name, with `*` for a part that a variable names: `getattr(self, name)`."""
    if isinstance(node, ast.Call) and dotted(node.func) == "getattr" and len(node.args) > 1 and dotted(node.args[0]):
        named = node.args[1]
        part = named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else "*"
        return f"{dotted(node.args[0])}.{part}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        holder = _part(node.value)  # `nets["encoder"]` of a ModuleDict
        return f"{holder}.{node.slice.value}" if holder and "." not in node.slice.value else ""
    return dotted(node)


def of_call(project: Project, site: FunctionSite, call: ast.Call | None, depth: int = 0) -> Iterator[Switch]:
    """What a call of the function switches, in the words of the caller; `self` stays `self`."""
    method = isinstance(site.module.parent(site.node), ast.ClassDef)
    bound = (bind(site.node, call, bound=method) or {}) if call is not None else {}
    own = {a.arg for a in parameters(site.node, bound=method)}
    for found in switches(site.module, site.node):
        root, _, rest = found.target.partition(".")
        value = found.on if found.on is not None else _truth(found.value, bound, defaults(site.node))
        if root == "self":
            yield Switch(found.node, found.target, value)
        elif root in own and (given := dotted(bound.get(root))):
            yield Switch(found.node, f"{given}.{rest}" if rest else given, value)
    if depth < DEPTH and method:
        for inner in (n for n in walk(site.node) if isinstance(n, ast.Call)):
            if dotted(inner.func).startswith("self.") or any(dotted(a).startswith("self") for a in inner.args):
                below = called_function(project, site.module, inner)
                for one in of_call(project, below, inner, depth + 1) if below is not None else ():
                    if one.target.partition(".")[0] == "self":
                        yield one


def _truth(value: ast.expr | None, given: dict[str, ast.expr], known: dict[str, ast.expr]) -> bool | None:
    """`not frozen` with what the call gives for `frozen`, else with its default."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        inner = _truth(value.operand, given, known)
        return None if inner is None else not inner
    if isinstance(value, ast.Name):
        value = given.get(value.id, known.get(value.id))
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None


def switched_behind(project: Project, module: SourceModule) -> Iterator[Switched]:
    """Every switch of this file that a wrapped module meets behind its wrap: written here, or in what is called here.

    A function that is called above the wrap alone (`self.load()` in the constructor that wraps further down) is in front of it.
    """
    for found in _switched(project, module):
        if not is_called_in_front(project, module, found.node, found.inside.module, found.inside.wrap):
            yield found


def _switched(project: Project, module: SourceModule) -> Iterator[Switched]:
    functions: list[FunctionNode | None] = [None, *module.functions]
    for function in functions:
        for found in switches(module, function):
            if found.on is not None and (where := _placed(project, module, found.node, found.target)) is not None:
                yield Switched(module, found.node, where[1], found.on, where[0])
    for call in module.nodes(ast.Call):
        yield from _through(project, module, call)


def _through(project: Project, module: SourceModule, call: ast.Call) -> Iterator[Switched]:
    arguments = [*call.args, *(k.value for k in call.keywords)]
    site = called_function(project, module, call) if any(dotted(a) for a in arguments) else None
    for found in of_call(project, site, call) if site is not None else ():
        if found.on is not None and not found.target.startswith("self"):
            if (where := _placed(project, module, call, found.target)) is not None:
                yield Switched(module, call, where[1], found.on, where[0])
    if isinstance(call.func, ast.Attribute) and "module" in dotted(call.func).split("."):
        where = _placed(project, module, call, dotted(call.func.value))
        cls = class_inside(project, where[0]) if where is not None and not where[1] else None
        method = class_facts(project, cls.module, cls.node).method(call.func.attr) if cls is not None else None
        if where is not None and method is not None:
            for found in of_call(project, FunctionSite(method[0].module, method[1]), call):
                if found.on is not None and found.target.startswith("self"):
                    yield Switched(module, call, found.target[5:], found.on, where[0])


def _placed(project: Project, module: SourceModule, at: ast.AST, target: str) -> tuple[Held, str] | None:
    """The wrapper that a dotted name belongs to, and the path below the module inside."""
    node, rest = None, list[str]()
    while target and node is None:  # `getattr(model.module, name)` is written apart
        node = next((n for n in walk(at) if dotted(n) == target), None) or _in_loop(module, at, target)
        if node is None:
            target, _, part = target.rpartition(".")
            rest.append(part)
    while isinstance(node, (ast.Name, ast.Attribute)):
        found = held(project, module, node)
        if found is not None:
            is_bare = found.side is Side.WRAPPER and is_beside_module(module, at, dotted(node))
            return None if is_bare else (found, ".".join(reversed(rest)))
        if not isinstance(node, ast.Attribute):
            return None
        rest.append(node.attr)
        node = node.value
    return None


def _in_loop(module: SourceModule, at: ast.AST, target: str) -> ast.AST | None:
    loops = (up for up in module.ancestors(at) if isinstance(up, ast.For))
    return next((n for loop in loops for n in walk(loop.iter) if dotted(n) == target), None)


def class_inside(project: Project, inside: Held) -> ClassSite | None:
    """The one class of the module that was wrapped."""
    inner = inner_of(inside.wrap)
    found = model_of(project, inside.module, inner) if inner is not None else None
    return found.classes[0] if found is not None and len(found.classes) == 1 else None


def frozen_in_front(project: Project, one: Switched) -> tuple[SourceModule, int] | None:
    """Where the parameters below `path` were switched off in front of the wrap; None where that is not shown."""
    inside, path = one.inside, one.path
    module, wrap = inside.module, inside.wrap
    function, inner = module.function_of(wrap), inner_of(wrap)
    names = {dotted(inner)} if inner is not None and dotted(inner) else set()
    if (shown := _frozen_above(project, module, wrap, names, path)) is not None:
        return shown
    for call, given in _wrapped_by_helper(project, one, function, inner):
        if (shown := _frozen_above(project, one.module, call, {given}, path)) is not None:
            return shown
    cls = class_inside(project, inside)
    if cls is None:
        return None
    called = [
        c.func.attr for c in module.nodes(ast.Call)
        if isinstance(c.func, ast.Attribute) and dotted(c.func.value) in names
        and stands_above(c, wrap) and module.function_of(c) is function
    ]  # fmt: skip
    return _frozen_by_class(project, cls, path, ("__init__", *called))


def _frozen_above(
    project: Project, module: SourceModule, wrap: ast.Call, names: set[str], path: str
) -> tuple[SourceModule, int] | None:
    for found, node in _before(project, module, module.function_of(wrap), wrap):
        for name in names:
            if found.on is False and (found.target == name or found.target.startswith(f"{name}.")):
                if _overlap(found.target[len(name) + 1 :], path):
                    return module, getattr(node, "lineno", 0)
    return None


def _wrapped_by_helper(
    project: Project, one: Switched, helper: FunctionNode | None, inner: ast.expr | None
) -> Iterator[tuple[ast.Call, str]]:
    """The calls `net = wrap(net)` of the function that wraps its parameter, above the switch of `net` and in its function."""
    if helper is None or not isinstance(inner, ast.Name):
        return
    for call in one.module.calls_named(helper.name):
        up = one.module.parent(call)
        target = dotted(up.targets[0]) if isinstance(up, ast.Assign) else ""
        if not target or one.module.function_of(call) is not one.module.function_of(one.node) or call.lineno >= line_of(one.node):
            continue
        if not any(dotted(n) == target for n in walk(one.module.statement_of(one.node))):
            continue
        site = called_function(project, one.module, call)
        given = dotted((bind(helper, call, bound=False) or {}).get(inner.id)) if site is not None and site.node is helper else ""
        if given:
            yield call, given


def _before(
    project: Project, module: SourceModule, function: FunctionNode | None, wrap: ast.Call
) -> Iterator[tuple[Switch, ast.AST]]:
    for found in switches(module, function):
        if stands_above(found.node, wrap):
            yield found, found.node
    for call in module.nodes(ast.Call):
        if stands_above(call, wrap) and module.function_of(call) is function and call.args:
            site = called_function(project, module, call)
            yield from ((found, call) for found in (of_call(project, site, call) if site is not None else ()))


def _frozen_by_class(
    project: Project, cls: ClassSite, path: str, methods: tuple[str, ...]
) -> tuple[SourceModule, int] | None:
    facts = class_facts(project, cls.module, cls.node)
    for name in methods:
        if (method := facts.method(name)) is None:
            continue
        for found in of_call(project, FunctionSite(method[0].module, method[1]), None):
            if found.on is False and found.target.startswith("self") and _overlap(found.target[5:], path):
                return method[0].module, getattr(found.node, "lineno", 0)
        for call in (n for n in walk(method[1]) if isinstance(n, ast.Call) and last(dotted(n.func)) == "freeze"):
            holder = dotted(call.func).removesuffix(".freeze")  # LightningModule.freeze
            if holder.startswith("self.") and _overlap(holder[5:], path):
                return method[0].module, call.lineno
    return None


def frozen_by(project: Project, cls: ClassSite, path: str, methods: tuple[str, ...]) -> tuple[SourceModule, int] | None:
    """Where one of these methods of the class switches off what stands below `path`."""
    return _frozen_by_class(project, cls, path, methods)


def _overlap(one: str, other: str) -> bool:
    return not one or not other or "*" in one + other or f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
