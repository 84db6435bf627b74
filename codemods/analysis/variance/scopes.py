"""The names that the statements of a function, or of a file outside of functions, may give a value: no others hold one there."""

from __future__ import annotations

import ast

from codemods.analysis.variance.paths import parameters
from codemods.data.rank_variance import FILLS
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, once_a_module, walk_scope


def may_bind(project: Project, module: SourceModule, function: FunctionNode | None, name: str) -> bool:
    """False for a name that an interpretation of the scope cannot give a value, so that nobody has to wait for its end."""
    known = _by_scope(module)
    if function not in known:
        scope = function or module.tree
        bound = {n.id for n in walk_scope(scope) if isinstance(n, ast.Name) and _may_change(project, module, n)}
        known[function] = frozenset(bound.union(parameters(function)))
    return name in known[function]


@once_a_module
def _by_scope(module: SourceModule) -> dict[FunctionNode | None, frozenset[str]]:
    del module
    return {}


def _may_change(project: Project, module: SourceModule, node: ast.Name) -> bool:
    """False for the `np` of `np.pi`, and of `np.zeros(2)` where `np` is no file of the project.

    A bare name may be an argument that a function fills or reduces. So may `x.data` and `x.detach()`, and the receiver of a
    method may keep what it is told.
    """
    member = module.parent(node)
    if not isinstance(member, ast.Attribute) or isinstance(node.ctx, ast.Store) or member.attr in FILLS or member.attr == "data":
        return True
    call = module.parent(member)
    if not isinstance(call, ast.Call) or call.func is not member:
        return False
    if isinstance(module.parent(call), (ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Starred, ast.Subscript, ast.Attribute)):
        return True
    imports = module.imports.get(node.id, ())
    return not imports or any(project.resolve(i.dotted, module.path) is not None for i in imports)
