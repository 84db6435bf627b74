"""Can the body of a rank guard be split: collectives out for every rank, the rest left inside?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.rank_tests import asks_for_group
from codemods.analysis.whole_body import is_idle
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Parts:
    """The statements of a guarded block: collectives at its head, the rest, collectives at its end."""

    head: tuple[ast.stmt, ...]
    rest: tuple[ast.stmt, ...]
    tail: tuple[ast.stmt, ...]


def parts_of(block: list[ast.stmt], nodes: Iterable[ast.AST]) -> Parts | None:
    """The block cut round its own statements that are just one of `nodes`; None where one of them is anywhere else."""
    wanted = {id(n) for n in nodes}
    alone = [id(call_of(s)) in wanted for s in block]
    head = next((i for i, a in enumerate(alone) if not a), len(block))
    tail = len(block) - next((i for i, a in enumerate(reversed(alone)) if not a), len(block) - head)
    tail = max(tail, head)
    held = {id(call_of(s)) for s in [*block[:head], *block[tail:]]}
    return Parts(tuple(block[:head]), tuple(block[head:tail]), tuple(block[tail:])) if wanted == held else None


def call_of(statement: ast.stmt) -> ast.expr | None:
    """The expression that a statement is made of: `f()`, or the value of `x = f()` for one name; also behind a test for the
    process group, which comes out the same on every rank and goes where the call goes."""
    plain = isinstance(statement, ast.If) and len(statement.body) == 1 and is_idle(statement.orelse)
    if isinstance(statement, ast.If) and plain and asks_for_group(statement.test):
        only = statement.body[0]
        return only.value if isinstance(only, ast.Expr) else None
    if isinstance(statement, ast.Expr):
        return statement.value
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.value
    return None


def assigned_names(statements: Sequence[ast.stmt]) -> set[str]:
    return {
        n.id for s in statements for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))
    } | _defined_names(statements)


def _defined_names(statements: Sequence[ast.stmt]) -> set[str]:
    nodes = [n for s in statements for n in walk(s)]
    imported = {(n.asname or n.name).partition(".")[0] for n in nodes if isinstance(n, ast.alias)}
    return imported | {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def changed_attributes(statements: Iterable[ast.stmt]) -> set[str]:
    return {
        dotted(n) for s in statements for n in walk(s)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, (ast.Store, ast.Del))
    }  # fmt: skip


def used_names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def used_attributes(node: ast.AST) -> set[str]:
    return {dotted(n) for n in walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}


def leaves(statements: Iterable[ast.stmt]) -> bool:
    """True if a statement can leave the block: moving what stands behind it would part the ranks again."""
    return any(
        isinstance(n, (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Raise))
        for s in statements for n in walk(s)
    )  # fmt: skip


def missing_on_other_ranks(
    project: Project, module: SourceModule, node: ast.AST, guard: ast.stmt, function: FunctionNode | None
) -> str:
    """A name in `node` that ranks outside the guard may not have at the guard, "" where all have every one of them."""
    names = used_names(node)
    for name in sorted(names):
        bound = bindings_in(module, function, name)
        if not bound:
            continue  # of a scope outside, an import, a builtin
        before = [b for b in bound if b.parameter or line_of(b.node) < line_of(guard)]
        everywhere = [b for b in before if b.parameter or ranks_at(module, b.node, project=project) is Ranks.ALL]
        if not everywhere or len(before) != len(everywhere):
            return name
    return ""


def used_behind(names: set[str], guard: ast.stmt, function: FunctionNode | None, module: SourceModule) -> str:
    """One of `names` that is read behind the guard, "" where none is."""
    scope: ast.AST = function or module.tree
    end = guard.end_lineno or guard.lineno
    found = {n.id for n in walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.lineno > end}
    return min(names & found, default="")


def used_outside(module: SourceModule, name: str, guard: ast.stmt, function: FunctionNode | None) -> bool:
    """True if a name is read or bound in the function outside the guard."""
    scope: ast.AST = function or module.tree
    inside = {id(n) for n in walk(guard)}
    return any(isinstance(n, ast.Name) and n.id == name and id(n) not in inside for n in walk(scope))
