"""Does every way to a place come through a call that starts the process group, or that raises without one?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import above
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_ALWAYS = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.With)
_ENDS = frozenset({"barrier", "all_reduce", "all_gather", "broadcast", "all_gather_object", "broadcast_object_list"})
_FEW = 4  # files that define a method of one name
_DEPTH = 3  # functions that call the one that does it


def has_group_above(project: Project, module: SourceModule, call: ast.expr | ast.stmt) -> bool:
    """True where a statement above, in a block round `call`, starts the group in any case, or ends a run that has none."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if any(_needs(project, module, s, _DEPTH) for s in above(module, below)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def has_group_below(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True where there is a group behind the statement, in any case."""
    return _needs(project, module, statement, _DEPTH) or has_group_above(project, module, statement)


def _needs(project: Project, module: SourceModule, statement: ast.stmt, depth: int) -> bool:
    """True for a statement that always makes such a call, itself or in a function of the project."""
    if isinstance(statement, ast.If) and _asks_for_none(statement.test):
        return any(_needs(project, module, s, depth) for s in statement.body)  # with a group the test fails, and there is one
    if not isinstance(statement, _ALWAYS):
        return False
    if isinstance(statement, ast.With):
        return any(_needs(project, module, s, depth) for s in statement.body)
    for call in (n for n in walk(statement) if isinstance(n, ast.Call) and not _may_be_left_out(module, n)):
        if starts_group(module, call):
            return True
        name = qualified(module, call.func)
        if name.startswith("torch.distributed.") and last(name) in _ENDS:
            return True
        site = called_function(project, module, call) if depth else None
        if site is not None and _does(project, site.module, site.node, depth - 1):
            return True
        if site is None and depth and _all_methods_do(project, call, depth - 1):
            return True
    return False


def _all_methods_do(project: Project, call: ast.Call, depth: int) -> bool:
    """True for `launcher.set_up(...)` where each class of the project that has such a method starts the group in it.

    Those that only raise `NotImplementedError` are left for others to fill in.
    """
    if not isinstance(call.func, ast.Attribute):
        return False
    paths = project.files_defining(call.func.attr)
    if not paths or len(paths) > _FEW:
        return False
    modules = [m for p in sorted(paths) if (m := project.module(p)) is not None]
    methods = [(m, f) for m in modules for f in m.functions if f.name == call.func.attr and isinstance(m.parent(f), ast.ClassDef)]
    filled = [(m, f) for m, f in methods if not isinstance(f.body[-1], ast.Raise)]
    return bool(filled) and all(_does(project, m, f, depth) for m, f in filled)


def _may_be_left_out(module: SourceModule, call: ast.Call) -> bool:
    """True for one arm of `init() if many else None`, of `many and init()`, and for what a lambda calls."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.stmt):
            return False
        arm = isinstance(up, ast.IfExp) and below is not up.test
        if arm or isinstance(up, ast.Lambda) or (isinstance(up, ast.BoolOp) and below is not up.values[0]):
            return True
        below = up
    return False


def _asks_for_none(test: ast.expr) -> bool:
    """True for `not dist.is_initialized()`."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return isinstance(inner, ast.Call) and last(dotted(inner.func)) == "is_initialized" and not inner.args


def _does(project: Project, module: SourceModule, function: FunctionNode, depth: int) -> bool:
    for statement in function.body:
        if _needs(project, module, statement, depth):
            return True
        if any(isinstance(n, ast.Return) for n in walk(statement)):
            return False  # it may come back above
    return False
