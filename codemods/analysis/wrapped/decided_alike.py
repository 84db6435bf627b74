"""Questions to the wrapper that are decided as the wrap is, and classes whose decorator may put another object in its place."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import Wrapped
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# Decorators that hand the class back as it is.
_SAME = lazy(r"regist|dataclass|typecheck|beartype|^final$|total_ordering|docstring|deprecat|^define$|runtime_checkable")
_CHANGES = lazy(r"setattr\(|__getattr|__init__ = |\.\w+ = |unwrap|wraps\(")


def is_under_the_flag(module: SourceModule, node: ast.AST, found: Wrapped) -> bool:
    """True for `if args.gpus > 1: model.module`, where the wrap stands under a flag that is `args.gpus > 1`."""
    wrapping = found.module.parent(found.module.statement_of(found.wrap))
    if module is not found.module or not isinstance(wrapping, ast.If) or not (flag := dotted(wrapping.test)):
        return False
    given = [a.value for a in module.nodes(ast.Assign) if any(dotted(t) == flag for t in a.targets)]
    if len(given) != 1 or isinstance(given[0], ast.Constant):
        return False
    decides, below = module.text_of(given[0]), node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and any(s is below for s in up.body) and module.text_of(up.test) == decides:
            return True
        below = up
    return False


def may_be_replaced(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for `self.model.x` outside of the constructor of a class under a decorator that nothing shows to leave it alone."""
    function, owner = module.function_of(node), module.class_of(node)
    if owner is None or not owner.decorator_list or function is None or function.name == "__init__":
        return False
    if not isinstance(node, ast.Attribute) or not dotted(node.value).startswith("self."):
        return False
    return any(_may_change(project, module, d) for d in owner.decorator_list)


def _may_change(project: Project, module: SourceModule, decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if _SAME.search(last(dotted(named))):
        return False
    call = decorator if isinstance(decorator, ast.Call) else ast.copy_location(ast.Call(decorator, [], []), decorator)
    site = called_function(project, module, call)
    return site is None or _CHANGES.search(site.module.text_of(site.node)) is not None
