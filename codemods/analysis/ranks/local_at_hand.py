"""The local rank that a place has at hand, by its name: bound above it, or asked by the test round it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from codemods.analysis.guards.global_rank_at import is_global
from codemods.analysis.names import dotted
from codemods.analysis.output.global_ranks import is_text
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.run_before import bound_above
from codemods.analysis.ranks.misnamed_ranks import LOCAL
from codemods.analysis.ranks.proven_rank import is_proven_global
from codemods.files.source import SourceModule, line_of, walk
from codemods.store.project import Project


def at_hand(project: Project, module: SourceModule, node: ast.expr) -> str | None:
    """What the local rank is called above the place."""
    for name, value in bound_above(module, module.function_of(node), module.statement_of(node)):
        if name in LOCAL and not is_text(module, value) and not is_global(module, value):
            return name
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod) and "device_count" in module.text_of(value.right):
            return name  # device = rank % torch.cuda.device_count()
    return _asked_for(project, module, node) or _asked_round(project, module, node) or _bound_beside(module, node)


def _asked_for(project: Project, module: SourceModule, node: ast.expr) -> str | None:
    """`args.local_rank` of `if args.local_rank != -1: dist.init_process_group(…)`: where there is a group, it is one's own."""
    function = module.function_of(node)
    starts = (c for c in module.calls_named("init_process_group") if module.function_of(c) is function and function is not None)
    for start in (c for c in starts if line_of(c) < line_of(node)):
        for up in (u for u in module.ancestors(start) if isinstance(u, ast.If)):
            asked = _distributed_by(project, module, up)
            if asked is not None and any(start in walk(s) for s in up.body):
                return dotted(asked)
    return None


def _asked_round(project: Project, module: SourceModule, node: ast.expr) -> str | None:
    """`args.local_rank` of `if args.local_rank != -1:` round the place: a launcher has given it there."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        asked = _distributed_by(project, module, up) if isinstance(up, ast.If) and any(below is s for s in up.body) else None
        if asked is not None:
            return dotted(asked)
        below = up
    return None


def _distributed_by(project: Project, module: SourceModule, node: ast.If) -> ast.Attribute | None:
    """The local rank that a test compares with -1 or 0, unless it is the global one."""
    asked = _local_asked(node.test)
    if asked is None or not isinstance(node.test, ast.Compare):
        return None
    end = node.test.comparators[0]
    if not isinstance(end, ast.UnaryOp) and not (isinstance(end, ast.Constant) and end.value == 0):
        return None
    bound = [n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store) and n.attr == asked.attr]
    if any(is_global(module, v) for n in bound for v in values_of(module, n)) or is_proven_global(project, module, asked):
        return None
    return asked


def _local_asked(test: ast.expr) -> ast.Attribute | None:
    """The local rank of `args.local_rank != -1` and `args.local_rank >= 0`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.NotEq, ast.GtE, ast.Gt)):
        return None
    left = test.left
    return left if isinstance(left, ast.Attribute) and left.attr in LOCAL and isinstance(left.value, ast.Name) else None


def _bound_beside(module: SourceModule, node: ast.expr) -> str | None:
    """What is bound to the local rank in each block that binds the global one: in both arms of `if dist.is_initialized():`."""
    name = node.id if isinstance(node, ast.Name) else ""
    stores = [n for n in module.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store)]
    if not stores or any(module.function_of(n) is not None for n in stores):
        return None
    beside = (frozenset(_local_names(module, module.block_of(module.statement_of(n)))) for n in stores)
    local = min(frozenset.intersection(*beside), default=None)
    inside = module.function_of(node)
    own = {n.arg if isinstance(n, ast.arg) else n.id for n in walk(inside) if _is_bound(n)} if inside is not None else ()
    return local if local not in own else None


def _local_names(module: SourceModule, block: list[ast.stmt]) -> Iterator[str]:
    for line in block:
        target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        if isinstance(target, ast.Name) and target.id in LOCAL and isinstance(line, ast.Assign):
            if not is_text(module, line.value) and not is_global(module, line.value):
                yield target.id


def _is_bound(node: ast.AST) -> TypeGuard[ast.arg | ast.Name]:
    return isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
