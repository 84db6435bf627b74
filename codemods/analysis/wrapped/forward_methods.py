"""Which methods of a class does a forward come to: its own, that of an heir, that of a module which holds it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SHARES = lazy(r"reduce|gather|broadcast|sync|distrib|_fn$")
_DEPTH = 3


def methods_of_forward(project: Project, module: SourceModule, owner: ast.ClassDef) -> list[FunctionNode]:
    """`forward` and the methods of this class that it comes to; that of a base class, where the class has none."""
    facts = class_facts(project, module, owner)
    own = _methods(owner)
    start = facts.method("forward")
    if start is None:
        return _of_heirs(module, owner, own)
    return _reached(start[1], own)


def methods_of_holders(project: Project, module: SourceModule, owner: ast.ClassDef) -> list[FunctionNode]:
    """The methods that the forward of another class of the file asks of an object of this one: `self.codes.begin(x)`.

    Those alone that are handed what no call above may have made that of all ranks, and that share nothing themselves.
    """
    own = _methods(owner)
    found: list[FunctionNode] = []
    for holder in module.nodes(ast.ClassDef):
        held = {f"self.{name}" for name in _fields_of(holder, owner.name)} if holder is not owner else set()
        if not held or not class_facts(project, module, holder).is_a(Role.NN_MODULE):
            continue
        for function in methods_of_forward(project, module, holder):
            for call in _before_it_shares(function):
                method = own.get(_end(call))
                if method is None or method.name == "forward" or not call.args or dotted(call.func) not in _of(held, method):
                    continue
                if method not in found and shares_nothing(project, module, method):
                    found.append(method)
    return found


def shares_nothing(project: Project, module: SourceModule, function: FunctionNode, depth: int = 0) -> bool:
    """True where neither the function nor what it calls of the project names anything that brings ranks together."""
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        if _SHARES.search(_end(call)):
            return False
        site = called_function(project, module, call)
        if site is not None and (depth >= _DEPTH or not shares_nothing(project, site.module, site.node, depth + 1)):
            return False
    return True


def _before_it_shares(function: FunctionNode) -> Iterator[ast.Call]:
    """The calls of a function, down to the first that may bring ranks together."""
    for call in sorted((n for n in walk_scope(function) if isinstance(n, ast.Call)), key=lambda c: (c.lineno, c.col_offset)):
        if _SHARES.search(_end(call)):
            return
        yield call


def _fields_of(holder: ast.ClassDef, name: str) -> set[str]:
    """The fields that the constructor gives an object of the class, and nothing else gives another one."""
    given = [n for n in walk(holder) if isinstance(n, ast.Assign)]
    made = {dotted(t) for n in given if isinstance(n.value, ast.Call) and dotted(n.value.func) == name for t in n.targets}
    other = {dotted(t) for n in given if not (isinstance(n.value, ast.Call) and dotted(n.value.func) == name) for t in n.targets}
    return {field.removeprefix("self.") for field in made - other if field.startswith("self.") and field.count(".") == 1}


def _of(held: set[str], method: FunctionNode) -> set[str]:
    return {f"{field}.{method.name}" for field in held}


def _methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {s.name: s for s in owner.body if isinstance(s, ast.FunctionDef)}


def _of_heirs(module: SourceModule, owner: ast.ClassDef, own: dict[str, ast.FunctionDef]) -> list[FunctionNode]:
    """The methods of a base class that the `forward` of an heir in the same file comes to."""
    for other in module.nodes(ast.ClassDef):
        if any(dotted(base) == owner.name for base in other.bases):
            forward = next((s for s in other.body if isinstance(s, ast.FunctionDef) and s.name == "forward"), None)
            if forward is not None:
                return [f for f in _reached(forward, own) if f is not forward]
    return []


def _reached(start: FunctionNode, own: dict[str, ast.FunctionDef]) -> list[FunctionNode]:
    found: list[FunctionNode] = [start]
    for function in found:
        for node in walk_scope(function):
            if isinstance(node, ast.Call) and dotted(node.func).startswith("self.") and dotted(node.func).count(".") == 1:
                called = own.get(_end(node))
                if called is not None and called not in found and node.args and len(found) < 12:
                    found.append(called)
    return found


def _end(call: ast.Call) -> str:
    return last(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
