"""The names that the statements of a function, or of a file outside of functions, may give a value: no others hold one there."""

from __future__ import annotations

import ast
import builtins

from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import parameters
from codemods.data.rank_variance import CASTS, FILLS, IN_PLACE
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project


def may_bind(project: Project, module: SourceModule, function: FunctionNode | None, name: str) -> bool:
    """False for a name that an interpretation of the scope cannot give a value, so that nobody has to wait for its end."""
    return name in _bound(project, module, function)


def last_bound(project: Project, module: SourceModule, name: str) -> int:
    """The last line of a file outside of functions that may give the name a value, 0 for none."""
    return _bound(project, module, None).get(name, 0)


def _bound(project: Project, module: SourceModule, function: FunctionNode | None) -> dict[str, int]:
    def build() -> dict[str, int]:
        found = dict.fromkeys(parameters(function), 0)
        for node in walk_scope(function or module.tree):
            if isinstance(node, ast.Name) and _may_change(project, module, node):
                found[node.id] = max(node.lineno, found.get(node.id, 0))
        return found

    return project.memo(("names bound", module.path, function), build)


def _may_change(project: Project, module: SourceModule, node: ast.Name) -> bool:
    """False for the `np` of `np.pi`, and of `np.zeros(2)` where `np` is no file of the project.

    A bare name may be an argument that a function fills or reduces. So may `x.data` and `x.detach()`, and the receiver of a
    method may keep what it is told.
    """
    member = module.parent(node)
    if (isinstance(member, ast.Call) and member.func is node) or (isinstance(node.ctx, ast.Load) and hasattr(builtins, node.id)):
        return False
    if not isinstance(member, ast.Attribute) or isinstance(node.ctx, ast.Store) or member.attr in FILLS or member.attr == "data":
        return True
    call = module.parent(member)
    if not isinstance(call, ast.Call) or call.func is not member:
        return False
    return not _is_of_package(project, module, node.id) or _may_be_reduced(project, module, call)


def _may_be_reduced(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for an argument of a call that may make it equal: of a collective, or of a function of the project."""
    up = module.parent(node)
    while isinstance(up, (ast.keyword, ast.Tuple, ast.List, ast.Starred)):
        up = module.parent(up)
    if not isinstance(up, ast.Call):
        return False
    name = dotted(up.func)
    if last(name) in IN_PLACE or "reduce" in name:
        return True
    return not (name in CASTS or _is_of_package(project, module, name.partition(".")[0]))


def _is_of_package(project: Project, module: SourceModule, name: str) -> bool:
    """True for a name that is imported, and not from a file of the project."""
    imports = module.imports.get(name, ())
    return bool(imports) and all(project.resolve(i.dotted, module.path) is None for i in imports)
