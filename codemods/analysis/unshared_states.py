"""What a torchmetrics object keeps in plain attributes, where it is not put together over the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from codemods.analysis.class_index import ClassFacts, Role, class_facts, external_role
from codemods.analysis.class_values import ClassValues, Given, class_values
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Methods and arguments by which a metric puts its ranks together itself, or is kept to the own one.
_OWN_WAY = ("sync", "_sync_dist", "_sync", "sync_context", "gather", "reduce", "sync_on_compute", "dist_sync_fn")
_FILLERS = frozenset({"append", "extend", "add", "update", "appendleft", "insert"})
_EMPTY = frozenset({"list", "dict", "set", "Counter", "defaultdict", "deque", "OrderedDict"})
_NUMBERS = frozenset({"tensor", "zeros", "array", "float", "int"})


@record
class Unshared:
    """name: the attribute. made: the statement that gives it its first value. grows, read: lines of update and compute.

    number: it is a number that is added to, and no collection.
    """

    name: str
    made: ast.stmt
    grows: int
    read: int
    number: bool


def unshared_states(project: Project, module: SourceModule, node: ast.ClassDef) -> list[Unshared]:
    """The attributes that the class's own `update` adds to and its `compute` reads, and that are no states of the metric."""
    methods = module.methods_of(node)
    update = methods.get("update")
    if update is None:
        return []
    facts = class_facts(project, module, node)
    compute = facts.method("compute")
    if compute is None or not is_plain_metric(facts) or is_put_together(facts):
        return []
    states = added_states(facts)
    values = class_values(project, facts)
    if states is None or values.loose:
        return []
    grown = added_in(update)
    reads = {n.attr: n.lineno for n in walk(compute[1]) if _is_own(n) and isinstance(n.ctx, ast.Load)}
    found = [_judged(module, values, name, grown[name], reads[name]) for name in grown if name in reads and name not in states]
    return [f for f in found if f is not None]


def is_plain_metric(facts: ClassFacts) -> bool:
    """True for what derives from `torchmetrics.Metric` by classes of the project alone."""
    metrics = [n for n in facts.external if external_role(n) is Role.METRIC]
    return bool(metrics) and all(last(n) == "Metric" for n in metrics) and not facts.opaque


def is_put_together(facts: ClassFacts) -> bool:
    """True where a method of the class sees to the other ranks itself."""
    for site in facts.lineage:
        if any(name in _OWN_WAY for name in site.methods()):
            return True
        for node in walk(site.node):
            if isinstance(node, ast.Call) and any(word in last(dotted(node.func)) for word in _OWN_WAY):
                return True
            if isinstance(node, ast.keyword) and node.arg in _OWN_WAY and not _hands_on(node):
                return True
    return False


def _hands_on(node: ast.keyword) -> bool:
    """True for an argument that the constructor was handed, to be handed on to the metric."""
    return isinstance(node.value, ast.Name) and node.value.id == node.arg


def added_states(facts: ClassFacts) -> set[str] | None:
    """The names of the metric's states; None where one is worked out."""
    names: set[str] = set()
    for site in facts.lineage:
        for call in walk(site.node):
            if isinstance(call, ast.Call) and last(dotted(call.func)) == "add_state":
                given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)
                if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
                    return None
                names.add(given.value)
    return names


def added_in(update: FunctionNode) -> dict[str, int]:
    """Attribute -> the line where `update` adds to what is in it."""
    found: dict[str, int] = {}
    for node in walk(update):
        for name in _adds_to(node):
            found.setdefault(name, getattr(node, "lineno", 0))
    return found


def _adds_to(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.BitOr)):
        yield from _attribute(node.target)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLERS:
        yield from _attribute(node.func.value)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target = dotted(node.targets[0])
        if isinstance(node.value.op, ast.Add) and target and target in (dotted(node.value.left), dotted(node.value.right)):
            yield from _attribute(node.targets[0])


def _attribute(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript):
        node = node.value
    if _is_own(node):
        yield node.attr


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _judged(module: SourceModule, values: ClassValues, name: str, grows: int, read: int) -> Unshared | None:
    """None for an attribute that is also given something whose inside is not seen: another metric, a helper."""
    given = values.given.get(name, [])
    own = [g for g in given if g.site.module is module]
    plain = [g for g in given if _is_plain(g, name)]
    first = min(own, key=lambda g: g.value.lineno, default=None)
    if first is None or len(plain) != len(given):
        return None
    number = any(isinstance(g.value, ast.Constant) or _made_by(g.value) in _NUMBERS for g in given)
    return Unshared(name, module.statement_of(first.value), grows, read, number)


def _is_plain(given: Given, name: str) -> bool:
    """True for an empty collection, a number, a tensor of numbers, and the sum of the attribute and something."""
    value = given.value
    if given.part is not None:
        return False
    if isinstance(value, ast.Constant):
        return value.value is None or (isinstance(value.value, (int, float)) and not isinstance(value.value, bool))
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return True
    if isinstance(value, ast.BinOp):
        return any(isinstance(n, ast.Attribute) and n.attr == name for n in (value.left, value.right))
    return _made_by(value) in _EMPTY | _NUMBERS


def _made_by(value: ast.expr) -> str:
    return last(dotted(value.func)) if isinstance(value, ast.Call) else ""
