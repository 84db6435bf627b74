"""The local rank of the options that hold the global one, where a device is chosen by it: `set_device(args.local_rank)`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings, only_value
from codemods.analysis.guards.global_rank_at import is_global
from codemods.analysis.names import dotted
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.misnamed_ranks import LOCAL, chooses_a_device
from codemods.analysis.ranks.proven_rank import is_proven_global
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def local_of_options(project: Project, module: SourceModule, rank: ast.expr) -> str | None:
    """`self.args.local_rank` for `self.args.rank`, in a file that chooses its device by the same object's local rank."""
    if not isinstance(rank, ast.Attribute) or not dotted(rank.value) or dotted(rank.value) == "self":
        return None
    given = _given(module, rank.value)
    for node in module.nodes(ast.Attribute):
        if node.attr not in LOCAL or not isinstance(node.ctx, ast.Load) or not chooses_a_device(module, node):
            continue
        same = _is_same(module, rank.value, node.value) or given == (dotted(node.value), module.function_of(node))
        if same and not _is_global(project, module, node):
            return f"{dotted(rank.value)}.{node.attr}"
    return None


def _given(module: SourceModule, holder: ast.expr) -> tuple[str, FunctionNode | None] | None:
    """(`args`, the constructor) where the field is given that alone: `self.args = args`."""
    bound = attribute_bindings(module, holder) if isinstance(holder, ast.Attribute) else []
    value = only_value(bound)
    return (value.id, module.function_of(value)) if isinstance(value, ast.Name) else None


def _is_same(module: SourceModule, one: ast.expr, other: ast.expr) -> bool:
    """True for one name of the same function, or one field of the same class."""
    if dotted(one) != dotted(other):
        return False
    if dotted(one).startswith("self."):
        return module.class_of(one) is module.class_of(other)
    return module.function_of(one) is module.function_of(other)


def _is_global(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    stores = [n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store) and n.attr == node.attr]
    return any(is_global(module, v) for n in stores for v in values_of(module, n)) or is_proven_global(project, module, node)
