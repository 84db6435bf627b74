"""A method of a torchmetrics object that reads its states outside of `compute`, where they are those of the own rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last
from codemods.analysis.unshared_states import added_in, added_states, is_put_together
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_WRAPPED = frozenset({"compute", "forward", "__call__", "update"})  # torchmetrics puts the ranks together in these, or may
_LOGS = frozenset({"log", "log_dict"})
_DEPTH = 3  # own methods deep


@record
class OwnState:
    """name: the state. line: where the method, in the file `path`, reads it."""

    name: str
    path: str
    line: int


def own_state(project: Project, facts: ClassFacts, call: ast.Call) -> OwnState | None:
    """The state that `self.metric.score()` reads, where nothing puts the ranks' states together for it.

    Torchmetrics does that in `compute`, and sets the state back behind it.
    """
    name = dotted(call.func).split(".")
    if len(name) != 3 or name[0] != "self" or name[2] in _WRAPPED:
        return None
    made = _made_of(project, facts, name[1])
    if made is None or is_put_together(made) or _is_reached_otherwise(facts, name[1], made):
        return None
    return _read_in(made, name[2], _states_of(made), _DEPTH)


def _made_of(project: Project, facts: ClassFacts, attribute: str) -> ClassFacts | None:
    """The one metric class of the project that each value of `self.attribute` is made of."""
    sites: list[ClassSite] = []
    for given in class_values(project, facts).given.get(attribute, []):
        written = dotted(given.value.func) if isinstance(given.value, ast.Call) and given.part is None else ""
        site = find_class(project, given.site.module, written) if written else None
        if site is None:
            return None
        sites.append(site)
    if not sites or any(s.node is not sites[0].node for s in sites):
        return None
    made = class_facts(project, sites[0].module, sites[0].node)
    return made if made.is_a(Role.METRIC) else None


def _states_of(made: ClassFacts) -> set[str]:
    """What it declares as states, and what its own `update` adds to, which may be a state of torchmetrics' class above it."""
    update = made.method("update")
    return (added_states(made) or set()) | (set(added_in(update[1])) if update is not None else set())


def _read_in(made: ClassFacts, method: str, states: set[str], depth: int) -> OwnState | None:
    """The first state that the method reads, or a method of the class that it calls."""
    found = made.method(method)
    if found is None or found[1].decorator_list or depth < 0:
        return None
    if any(last(dotted(c.func)) in _WRAPPED for c in _calls(found[1])):
        return None
    site, function = found
    for node in walk(function):
        if not isinstance(node, ast.Attribute) or dotted(node) != f"self.{node.attr}" or not isinstance(node.ctx, ast.Load):
            continue
        if node.attr in states:
            return OwnState(node.attr, site.module.path, node.lineno)
    inner = (_read_in(made, last(dotted(c.func)), states, depth - 1) for c in _calls(function) if _is_own(c))
    return next((state for state in inner if state is not None), None)


def _calls(function: FunctionNode) -> Iterator[ast.Call]:
    return (n for n in walk(function) if isinstance(n, ast.Call))


def _is_own(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and dotted(call.func) == f"self.{call.func.attr}"


def _is_reached_otherwise(facts: ClassFacts, attribute: str, made: ClassFacts) -> bool:
    """True where the class does more with the metric than call it: it may gather a state, set it, or hand the metric on."""
    return any(
        not _is_plain_use(site.module, node, made)
        for site in facts.lineage
        for node in walk(site.node)
        if isinstance(node, ast.Attribute) and dotted(node) == f"self.{attribute}"
    ) or any(n.endswith("_step") and _gathers(method) for site in facts.lineage for n, method in site.methods().items())


def _is_plain_use(module: SourceModule, node: ast.Attribute, made: ClassFacts) -> bool:
    """`self.metric(p, y)`, `self.metric.update(p, y)` where nothing is gathered, another method, a log of it, its first value."""
    up = module.parent(node)
    if isinstance(node.ctx, ast.Store):
        return True
    if isinstance(up, ast.Call):
        return _is_of_own_rank(module, up) if up.func is node else last(dotted(up.func)) in _LOGS
    if not isinstance(up, ast.Attribute) or not isinstance(up.ctx, ast.Load):
        return False
    call = module.parent(up)
    if isinstance(call, ast.Call) and call.func is up:
        return up.attr not in ("sync", "sync_context") and _is_of_own_rank(module, call)
    return up.attr in ("device", "dtype") or made.method(up.attr) is not None


def _is_of_own_rank(module: SourceModule, call: ast.Call) -> bool:
    """True for a call that is handed nothing, or stands in a function that gathers nothing."""
    function = module.function_of(call)
    return not (call.args or call.keywords) or (function is not None and not _gathers(function))


def _gathers(function: FunctionNode) -> bool:
    return any("gather" in last(dotted(c.func)) or "reduce" in last(dotted(c.func)) for c in _calls(function))
