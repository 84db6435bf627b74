"""Does a run without a process group end in front of a place, at a barrier or another collective that no test keeps it from?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from codemods.analysis.guards.group_may_be_missing import is_guarded
from codemods.analysis.guards.needed_below import asks_the_group
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_CALLED = ("barrier", "all_reduce", "all_gather", "broadcast", "reduce", "get_rank")
_MEETINGS = frozenset(f"torch.distributed.{name}" for name in _CALLED)
_BLOCKS = (ast.For, ast.While, ast.With)


def meets_above(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True behind a collective of torch itself: one process, for which Accelerate starts no group, ends there."""
    return any(True for _ in _meetings(project, module, node))


def meets_now_and_then(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where a loop round the node comes to such a collective again and again, below it too: `if step % 100 == 0: barrier()`.

    Whoever runs one process does not get through: what is put right above is of no use to him.
    """
    loops = [up for up in module.ancestors(node) if isinstance(up, (ast.For, ast.While))]
    for call in (c for loop in loops[-1:] for c in walk_scope(loop) if isinstance(c, ast.Call)):
        if qualified(module, call.func) in _MEETINGS and not is_guarded(project, module, call, set()):
            if _is_met_in_rounds(module, call, loops[-1]):
                return True
    return False


def _is_met_in_rounds(module: SourceModule, call: ast.Call, loop: ast.AST) -> bool:
    """True where nothing but loops and tests for the number of a round stand between the two."""
    below: ast.AST = module.statement_of(call)
    if not isinstance(below, ast.Expr):
        return False
    for up in module.ancestors(below):
        if up is loop:
            return True
        if isinstance(up, ast.If) and not (_counts_rounds(up.test) and any(s is below for s in up.body)):
            return False
        if not isinstance(up, (*_BLOCKS, ast.If)):
            return False
        below = up
    return False


def _counts_rounds(test: ast.expr) -> bool:
    """True for `step % 100 == 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    return isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)


def meets_in_each_run(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where each run that comes to the node has come to such a collective: round it no test, and no way past it in its loop
    but those which a test round the node closes.
    """
    return any(_is_on_every_way(module, call, node) for call in _meetings(project, module, node))


def _meetings(project: Project, module: SourceModule, node: ast.expr) -> Iterator[ast.Call]:
    for call in walk_scope(module.function_of(node) or module.tree):
        if not isinstance(call, ast.Call) or call.lineno >= node.lineno:
            continue
        if qualified(module, call.func) in _MEETINGS or asks_the_group(project, module, call):
            if not is_guarded(project, module, call, set()):
                yield call


def _is_on_every_way(module: SourceModule, call: ast.Call, node: ast.expr) -> bool:
    round_node = [up for up in module.ancestors(node) if isinstance(up, ast.stmt)]
    below: ast.stmt = module.statement_of(call)
    if not isinstance(below, ast.Expr):
        return False
    for up in module.ancestors(below):
        if up in round_node or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return not _is_in_another_arm(up, below, round_node)
        if not isinstance(up, _BLOCKS) or not any(s is below for s in up.body):
            return False
        if not all(_is_closed(module, leaving, round_node) for leaving in _leaving(up, call)):
            return False
        below = up
    return False


def _is_in_another_arm(up: ast.AST, below: ast.stmt, round_node: list[ast.stmt]) -> bool:
    """True for the two arms of one test."""
    if not isinstance(up, ast.If):
        return False
    inside = round_node[round_node.index(up) - 1] if round_node.index(up) else None
    return any(s is below for s in up.body) != any(s is inside for s in up.body)


def _leaving(loop: ast.stmt, call: ast.Call) -> Iterator[ast.stmt]:
    for inner in ast.walk(loop):
        if isinstance(inner, (ast.Break, ast.Continue)) and inner.lineno < call.lineno:
            yield inner


def _is_closed(module: SourceModule, leaving: ast.stmt, round_node: list[ast.stmt]) -> bool:
    """True for `if evaluate: break`, where the node stands under `if not evaluate:`."""
    up = module.parent(leaving)
    if not isinstance(up, ast.If) or not any(s is leaving for s in up.body):
        return False
    test = ast.unparse(up.test)
    for low, high in pairwise(round_node):
        if isinstance(high, ast.If):
            asked, taken = high.test, any(s is low for s in high.body)
            if isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
                asked, taken = asked.operand, not taken
            if not taken and ast.unparse(asked) == test:
                return True
    return False
