"""Events that a signal handler sets, and that are asked in this file or in another one (`if STOP.is_set(): return`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_at_top
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.signals import handlers
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEPTH = 3  # files that only hand the event on


def asked_events(project: Project, module: SourceModule) -> frozenset[str]:
    """The questions of the file (`STOP.is_set()`, `self._stop.is_set()`) about an event that a signal handler sets."""
    if not module.holds(b".is_set()"):
        return frozenset()
    found: set[str] = set()
    for call in module.calls_named("is_set"):
        if isinstance(call.func, ast.Attribute) and (name := dotted(call.func.value)):
            own = name.startswith("self.")
            if _is_set_in_class(module, call, name) if own else _is_set_at_home(project, module, name, 0):
                found.add(f"{name}.is_set()")
    return frozenset(found)


def _is_set_at_home(project: Project, module: SourceModule, name: str, depth: int) -> bool:
    """True where the file that makes the event has a handler that sets it."""
    root, _, rest = name.partition(".")
    if not rest and (values := [b.value for b in bindings_at_top(module, root) if b.value is not None]):
        return all(_makes_event(module, v) for v in values) and any(_sets(h, root) for h in _handler_bodies(module))
    for found in module.imports.get(root, ()) if depth < _DEPTH else ():
        resolved = project.resolve(f"{found.dotted}.{rest}" if rest else found.dotted, module.path)
        inner = project.module(resolved.path) if resolved is not None and len(resolved.rest) == 1 else None
        if inner is not None and resolved is not None and _is_set_at_home(project, inner, resolved.rest[0], depth + 1):
            return True
    return False


def _is_set_in_class(module: SourceModule, call: ast.Call, name: str) -> bool:
    """True for a field whose class makes the event and has the handler; no other class of the file has a field of that name."""
    given = [(a, v) for a in module.nodes(ast.Assign) for t in a.targets if dotted(t) == name for v in (a.value,)]
    owner = module.class_of(call)
    if owner is None or not given or not all(_makes_event(module, v) and module.class_of(a) is owner for a, v in given):
        return False
    return any(_sets(h, name) for h in _handler_bodies(module) if module.class_of(h) is owner)


def _makes_event(module: SourceModule, value: ast.expr) -> bool:
    """An event of one process; that of `multiprocessing` may be one that all of them have."""
    return isinstance(value, ast.Call) and qualified(module, value.func) == "threading.Event"


def _handler_bodies(module: SourceModule) -> Iterator[FunctionNode | ast.Lambda]:
    names = handlers(module)
    yield from (f for f in module.functions if f.name in names)
    yield from (c.args[1] for c in module.calls_named("signal") if len(c.args) == 2 and isinstance(c.args[1], ast.Lambda))


def _sets(handler: ast.AST, name: str) -> bool:
    """True where the handler itself calls `name.set()`."""
    calls = (n for n in walk(handler) if isinstance(n, ast.Call) and last(dotted(n.func)) == "set")
    return any(dotted(c.func) == f"{name}.set" and not c.args for c in calls)
