"""What a name holds beside a DDP wrapper: the wrapper itself, or the module that it was put round.

`model = DDP(net)`: `model` is the wrapper, `net` and `model.module` are the module inside. Names are followed through
assignments, attributes of `self`, parameters and the calls that give them. What is not shown is neither.
"""

from __future__ import annotations

import ast
from enum import Enum

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import bind, is_bound, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.forwarding import hands_on, own_wrapper
from codemods.analysis.wrapped.handed_in import callers_of, given_to_base
from codemods.analysis.wrapped.properties import given_by_property, is_property, named_method
from codemods.analysis.wrapped.taken_by_test import taken_by_test
from codemods.analysis.wrapped.unpacked_fields import unpacked_from
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

DEPTH = 7  # names behind names, and callers of callers
MOST_CALLERS = 6
_SAME = frozenset({"to", "cuda", "cpu", "train", "eval", "requires_grad_", "float", "half", "double", "bfloat16"})


class Side(Enum):
    """Which of the two a name holds."""

    WRAPPER = "the wrapper"
    INSIDE = "the module inside"


@record
class Held:
    """What an expression holds: the side, the call that wraps (in `module`), and how the wrapper is written beside it.

    wrapper: "" where no expression for it is known at the place that was asked about. prepared: it is what Accelerate gave.
    """

    side: Side
    module: SourceModule
    wrap: ast.Call
    wrapper: str = ""
    prepared: bool = False


def is_wrap(module: SourceModule, node: ast.AST | None) -> bool:
    """True for `DistributedDataParallel(...)`, whatever name it was imported by."""
    return isinstance(node, ast.Call) and last(qualified(module, node.func)) == "DistributedDataParallel"


def is_prepare(module: SourceModule, node: ast.AST | None) -> bool:
    """True for `accelerator.prepare(...)` in a file that speaks of Accelerate."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not module.holds(b"ccelerat"):
        return False
    return node.func.attr in ("prepare", "prepare_model") and "accelerator" in last(dotted(node.func.value)).lower()


@once_a_module
def wraps_by_apex(module: SourceModule) -> bool:
    """True where each wrapper of a file is apex's: its forward broadcasts no buffers."""
    made = [dotted(call.func).partition(".")[0] for call in wraps_in(module)]
    return bool(made) and all(
        root in module.imports and all(i.dotted.partition(".")[0] == "apex" for i in module.imports[root]) for root in made
    )


@once_a_module
def wraps_in(module: SourceModule) -> tuple[ast.Call, ...]:
    """The calls of a file that make a wrapper."""
    return tuple(c for c in module.nodes(ast.Call) if is_wrap(module, c))


def inner_of(call: ast.Call) -> ast.expr | None:
    """The expression that is wrapped, without the moves round it (`net.to(device)`)."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
    return without_moves(given) if given is not None else None


def without_moves(node: ast.expr) -> ast.expr:
    """`net` of `net.to(device).eval()`: these methods hand on the module that they are called on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def held(project: Project, module: SourceModule, node: ast.expr) -> Held | None:
    """What `node` holds at its place; None where the source does not show that it has to do with a wrapper."""
    return _Search(project).of(module, node, 0)


def inside_of(project: Project, module: SourceModule, func: ast.expr) -> tuple[Held, ast.expr] | None:
    """The module inside that the function of a call belongs to, and the expression for it.

    `ddp.module(x)`, `ddp.module.encode(x)` and `ddp.module.encoder(x)` all belong to `ddp.module`; so does `ddp.encode(x)` where
    the project's own class of the wrapper hands attributes on.
    """
    found = _part_of(project, module, func)
    method = named_method(module, func) if found is None else None
    return _part_of(project, module, method) if method is not None else found


def _part_of(project: Project, module: SourceModule, func: ast.expr) -> tuple[Held, ast.expr] | None:
    node: ast.expr | None = func
    asked = ""
    while node is not None:
        found = held(project, module, node)
        if found is not None and found.side is Side.INSIDE:
            return found, node
        if found is not None:
            through = bool(asked) and hands_on(project, found.module, found.wrap, asked)
            return (Held(Side.INSIDE, found.module, found.wrap, dotted(node)), node) if through else None
        asked = node.attr if isinstance(node, ast.Attribute) else ""
        node = node.value if isinstance(node, ast.Attribute) else None
    return None


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: set[int] = set()

    def of(self, module: SourceModule, node: ast.expr, depth: int) -> Held | None:
        node = without_moves(node)
        if depth > DEPTH or id(node) in self.seen:
            return None
        self.seen.add(id(node))
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.Name):
            return self._name(module, node, depth)
        if isinstance(node, ast.Attribute):
            if node.attr == "module":
                return _inside(self.of(module, node.value, depth), dotted(node.value))
            return self._attribute(module, node, depth)
        if isinstance(node, ast.IfExp):
            body = _of_arm(self.of(module, node.body, depth), node.orelse)
            return body or _of_arm(self.of(module, node.orelse, depth), node.body)
        return None

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> Held | None:
        if is_wrap(module, call) or own_wrapper(self.project, module, call) is not None:
            return Held(Side.WRAPPER, module, call)
        name = last(dotted(call.func))
        if name in ("unwrap_model", "extract_model_from_parallel", "unwrap") and call.args:
            return _inside(self.of(module, call.args[0], depth), dotted(call.args[0]))
        if name == "getattr" and len(call.args) == 3 and isinstance(call.args[1], ast.Constant):
            if call.args[1].value == "module" and dotted(call.args[0]) == dotted(call.args[2]):
                return _inside(self.of(module, call.args[0], depth), dotted(call.args[0]))
        site = called_function(self.project, module, call) if call.args and name != "prepare" else None
        if site is not None and is_property(site.node):
            return None  # `self.net(x)`: what the property gives is called
        if site is not None and site.module.holds(b"DistributedDataParallel") and site.node.name != "__init__":
            made = (self.of(site.module, value, depth + 1) for value in returned(site.node, site.module))
            wrapped = next((one for one in made if one is not None), None)
            return Held(wrapped.side, wrapped.module, wrapped.wrap) if wrapped is not None else None
        return None

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> Held | None:
        function = module.function_of(name)
        scope: FunctionNode | None = function
        while True:
            if bound := bindings_in(module, scope, name.id):
                break
            if scope is None:
                return None
            scope = module.function_of(scope)
        before = [b for b in bound if scope is not function or _binds_above(b.node, name) or _same_loop(module, b.node, name)]
        before.sort(key=lambda b: (not _binds_above(b.node, name), _line(b.node), getattr(b.node, "col_offset", 0)))
        return self._wrapped_below(module, scope, name) or self._last(module, name, before, scope, depth)

    def _last(
        self, module: SourceModule, name: ast.Name, before: list[Binding], scope: FunctionNode | None, depth: int
    ) -> Held | None:
        """By the bindings above, the nearest first; one under a test leaves those above it standing."""
        above = [b for b in before if _binds_above(b.node, name)] or before
        for bound in reversed(above):
            if bound.parameter:
                return self._parameter(module, scope, name.id, depth) if scope is not None else None
            value = bound.value
            if bound.part and is_prepare(module, value) and isinstance(value, ast.Call):
                return Held(Side.WRAPPER, module, value, prepared=True)
            if value is None or bound.part:
                return None
            if is_prepare(module, value) and isinstance(value, ast.Call):
                return Held(Side.WRAPPER, module, value, prepared=True)
            found = self.of(module, value, depth + 1)
            if found is not None:
                return found
            if not _is_conditional(module, bound.node, scope) and not _mentions(value, name.id):
                return None
        return None

    def _wrapped_below(self, module: SourceModule, scope: FunctionNode | None, name: ast.Name) -> Held | None:
        """INSIDE for `net` behind `model = DDP(net)` in the same function, while nothing else is bound to `net`."""
        bound = bindings_in(module, scope, name.id)
        same = {name.id} | ({bound[0].value.id} if len(bound) == 1 and isinstance(bound[0].value, ast.Name) else set())
        for call in wraps_in(module):
            inner = inner_of(call)
            if not isinstance(inner, ast.Name) or inner.id not in same or module.function_of(call) is not scope:
                continue
            target = _target(module, call)
            own = module.function_of(name) is scope
            if not target or target == name.id or (own and not _binds_above(call, name)):
                continue
            if any(_line(b.node) > call.lineno for b in bound) or (own and are_other_arms(module, call, name)):
                continue
            plain = module.statement_of(call) in (scope.body if scope is not None else module.tree.body)
            return Held(Side.INSIDE, module, call, target if own and plain and "." not in target else "")
        return None

    def _parameter(self, module: SourceModule, function: FunctionNode, name: str, depth: int) -> Held | None:
        """What a caller gives: one that gives a wrapper, or what is inside of one, is enough."""
        for site in callers_of(self.project, module, function)[:MOST_CALLERS]:
            given = bind(function, site.call, bound=is_bound(module, function))
            value = given.get(name) if given is not None else None
            if value is not None and (found := self.of(site.module, value, depth + 1)) is not None:
                return Held(found.side, found.module, found.wrap, "", found.prepared)
        return None

    def _attribute(self, module: SourceModule, node: ast.Attribute, depth: int) -> Held | None:
        return self._field(module, node, depth) or _by_test(self.project, module, node)

    def _field(self, module: SourceModule, node: ast.Attribute, depth: int) -> Held | None:
        if (call := unpacked_from(module, node)) is not None and is_prepare(module, call):
            return Held(Side.WRAPPER, module, call, prepared=True)
        bound = attribute_bindings(module, node)
        if not bound and (given := given_by_property(module, node)) is not None:
            found = self.of(module, given, depth + 1)
            return Held(found.side, found.module, found.wrap, "", found.prepared) if found is not None else None
        if not bound:
            handed = (self.of(where, value, depth + 1) for where, value in given_to_base(self.project, module, node))
            found = next((f for f in handed if f is not None), None)
            return Held(found.side, found.module, found.wrap, "", found.prepared) if found is not None else None
        name = dotted(node)
        owner = module.class_of(node)
        for call in wraps_in(module):
            inner = inner_of(call)
            if inner is None or dotted(inner) != name or module.class_of(call) is not owner or not name.startswith("self."):
                continue
            target = _target(module, call)
            here = module.function_of(node) is module.function_of(call)
            if here and are_other_arms(module, call, node):
                continue
            if target and target != name and not (here and call.lineno >= node.lineno) and not _is_above(module, node, call):
                return Held(Side.INSIDE, module, call, target if target.startswith("self.") else "")
        for one in reversed(bound):
            if one.value is not None and not one.part and one.node is not module.statement_of(node):
                if found := self.of(module, one.value, depth + 1):
                    return Held(found.side, found.module, found.wrap, "", found.prepared)
        return None


def _of_arm(found: Held | None, other: ast.expr) -> Held | None:
    """What one arm holds. Where the other holds something else, no expression beside it is the wrapper of both."""
    return found if found is None or dotted(other) == found.wrapper else replace(found, wrapper="")


def _by_test(project: Project, module: SourceModule, node: ast.Attribute) -> Held | None:
    """By a test for several processes that tells the wrapper from the module inside: each wrap of that name is meant."""
    told = taken_by_test(project, module, node)
    if told is None:
        return None
    taken, inside = told
    for path in sorted(project.files_containing(b"DistributedDataParallel(")):
        home = project.module(path) if path.endswith(".py") else None
        for call in wraps_in(home) if home is not None else ():
            inner = inner_of(call)
            if home is not None and inner is not None and taken.name in (last(dotted(inner)), last(_target(home, call))):
                beside = f"self.{taken.wrapper}" if taken.wrapper and inside else ""
                return Held(Side.INSIDE if inside else Side.WRAPPER, home, call, beside)
    return None


def _inside(found: Held | None, wrapper: str) -> Held | None:
    if found is None or found.side is not Side.WRAPPER:
        return None
    return Held(Side.INSIDE, found.module, found.wrap, wrapper, found.prepared)


def _target(module: SourceModule, call: ast.Call) -> str:
    """The name or attribute that the wrapper goes to, moves of it included."""
    node: ast.AST = call
    while isinstance(up := module.parent(node), (ast.Attribute, ast.Call, ast.IfExp)):
        node = up
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        return dotted(up.targets[0])
    return dotted(up.target) if isinstance(up, ast.AnnAssign) else ""


def _is_conditional(module: SourceModule, node: ast.AST, scope: FunctionNode | None) -> bool:
    body = scope.body if scope is not None else module.tree.body
    return module.statement_of(node) not in body


def _is_above(module: SourceModule, node: ast.AST, call: ast.Call) -> bool:
    """True for a place in the constructor that wraps further down, in a method that it calls."""
    function = module.function_of(node)
    return function is not None and function.name == "__init__" and function is not module.function_of(call)


def _same_loop(module: SourceModule, bound: ast.AST, name: ast.Name) -> bool:
    loops = {id(up) for up in module.ancestors(name) if isinstance(up, (ast.For, ast.While))}
    return any(id(up) in loops for up in module.ancestors(bound))


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(value))


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _binds_above(node: ast.AST, name: ast.Name) -> bool:
    """True where what binds a name has done so when `name` is read: an assignment behind its end, a loop in its block."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.lineno < name.lineno
    end = getattr(node, "end_lineno", None) or _line(node), getattr(node, "end_col_offset", 0)
    return end <= (name.lineno, name.col_offset)
