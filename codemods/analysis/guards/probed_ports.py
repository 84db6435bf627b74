"""Ports that a process looks for by itself: it asks one after the other whether it is taken, until it finds one that is not.

What one rank finds hangs on what the others hold by then: once rank 0 listens on the first free port, a rank that asks later goes
on to the next one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule, called_name, walk, walk_scope
from codemods.store.project import Project

_PROBES = frozenset({"connect_ex", "bind"})
_SOCKETS = (b"import socket", b"from socket")
_LOOPS = (ast.While, ast.For)


def probes_of(project: Project, module: SourceModule, name: ast.Name) -> Iterator[ast.Call]:
    """The calls that decide how far a name is counted up: `while s.connect_ex((host, port)) == 0: port += 1`."""
    for bound in bindings_of(module, name):
        loop = bound.node if isinstance(bound.node, _LOOPS) else None
        if loop is None and (isinstance(bound.node, ast.AugAssign) or _reads(bound.value, name.id)):
            loop = next((up for up in module.ancestors(bound.node) if isinstance(up, _LOOPS)), None)
        if loop is not None and module.function_of(loop) is module.function_of(bound.node):
            yield from _first_probe(project, module, loop, name.id)


def probes_for_a_port(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `find_free_port(29500)` of the project that returns the first one that is not taken."""
    site = called_function(project, module, call)
    if site is None:
        return False
    given = (n.value for n in walk_scope(site.node) if isinstance(n, ast.Return) and isinstance(n.value, ast.Name))
    return any(True for name in given for _ in probes_of(project, site.module, name))


def _reads(value: ast.expr | None, name: str) -> bool:
    return value is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(value))


def _first_probe(project: Project, module: SourceModule, loop: ast.While | ast.For, port: str) -> Iterator[ast.Call]:
    """The probe of the loop, where it is asked of this port, or of a place that is put together from it in the loop."""
    names = {port}
    for assign in (n for n in walk(loop) if isinstance(n, ast.Assign)):
        if _reads(assign.value, port):
            names |= {t.id for t in assign.targets if isinstance(t, ast.Name)}
    for call in (n for n in walk(loop) if isinstance(n, ast.Call)):
        if any(_reads(a, n) for a in call.args for n in names) and _asks_a_socket(project, module, call):
            yield call
            return


def _asks_a_socket(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if called_name(call) in _PROBES:
        return any(word in module.data for word in _SOCKETS)
    if "port" not in last(qualified(module, call.func)).lower():
        return False
    site = called_function(project, module, call)
    if site is None or not any(word in site.module.data for word in _SOCKETS):
        return False
    return any(isinstance(n, ast.Call) and called_name(n) in _PROBES for n in walk_scope(site.node))
