"""What stands behind the last step of a training: a test of the best weights, say."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import is_in_a_loop
from codemods.analysis.ranks.uses import calls_of
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def is_behind_training(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where no backward pass follows: the function has made its last one above, or each of its callers has."""
    function = module.function_of(node)
    if _is_last(project, module, function, node):
        return function is None or not _comes_round(module, function, node)
    if function is None or _backwards(project, module, function):
        return False
    sites = calls_of(project, module, function)
    return bool(sites) and all(_is_last(project, s.module, s.module.function_of(s.call), s.call) for s in sites or ())


def _comes_round(module: SourceModule, function: FunctionNode, node: ast.AST) -> bool:
    """True where a method of the class goes through the training again and again, with a model that the constructor has made."""
    owner = module.class_of(function)
    held = dotted(node.func) if isinstance(node, ast.Call) else ""
    if owner is None or not held.startswith("self."):
        return False
    field = ".".join(held.split(".")[:2])
    own = [c for c in module.calls_named(function.name) if dotted(c.func) == f"self.{function.name}"]
    if not any(module.class_of(c) is owner and is_in_a_loop(module, c) for c in own):
        return False
    others = [f for name, f in module.methods_of(owner).items() if name != "__init__"]
    nodes = (n for f in others for n in walk(f) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return not any(dotted(n) == field for n in nodes)


def _is_last(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    lines = _backwards(project, module, function or module.tree)
    if not lines or max(lines) > getattr(node, "lineno", 0):
        return False
    loops = (up for up in module.ancestors(node) if isinstance(up, _LOOPS))
    return not any(_backwards(project, module, loop) for loop in loops)


def _backwards(project: Project, module: SourceModule, body: ast.AST) -> list[int]:
    """The lines of the backward passes, and of the calls of functions that make one."""
    calls = [n for n in walk(body) if isinstance(n, ast.Call)]
    return [c.lineno for c in calls if _is_backward(c) or _leads_to_one(project, module, c)]


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in BACKWARDS


def _leads_to_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if last(dotted(call.func)) not in _training_functions(project):
        return False
    site = called_function(project, module, call)
    return site is not None and any(isinstance(n, ast.Call) and _is_backward(n) for n in walk(site.node))


def _training_functions(project: Project) -> frozenset[str]:
    """The names of the functions with a backward pass."""

    def build() -> frozenset[str]:
        modules = (project.module(p) for p in project.files_containing(b"backward("))
        passes = ((m, c) for m in modules if m is not None for c in m.calls_named(*BACKWARDS))
        homes = (m.function_of(c) for m, c in passes)
        return frozenset(f.name for f in homes if f is not None)

    return project.keep("functions with a backward pass", build)
