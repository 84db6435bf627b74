"""`if distributed: dist.barrier(); exit()`: where a program leaves that has a process group, in front of its end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.guards.entry_points import EXITS
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_tests import asks_for_group
from codemods.files.source import FunctionNode, SourceModule, walk_scope


def exits_with_group(module: SourceModule, scope: FunctionNode | ast.Module) -> list[ast.stmt]:
    """The statements that end the process under a test which asks for several processes alone, and under no other."""
    return [s for s in _exits(scope) if _is_for_several(module, scope, s)]


def is_plain_exit(statement: ast.stmt) -> bool:
    """True for an exit whose argument computes nothing: something may stand in front of it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and all(isinstance(a, (ast.Name, ast.Constant, ast.Attribute)) for a in call.args)


def is_exit(statement: ast.stmt) -> bool:
    """True for `sys.exit(0)` and other calls that end the process."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and last(dotted(call.func)) in EXITS


def ends_at_once(module: SourceModule, statement: ast.stmt) -> bool:
    """True for `os._exit(0)`: no destructor is run, and NCCL has no place to warn at."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and qualified(module, call.func) == "os._exit"


def _exits(scope: FunctionNode | ast.Module) -> Iterator[ast.stmt]:
    for node in walk_scope(scope):
        if isinstance(node, ast.stmt) and is_exit(node):
            yield node


def _is_for_several(module: SourceModule, scope: FunctionNode | ast.Module, statement: ast.stmt) -> bool:
    above = [up for up in module.ancestors(statement) if isinstance(up, ast.stmt)]
    inside = above[: above.index(scope)] if scope in above else above
    tests = [up for up in inside if not is_main_block(up)]
    if len(tests) != 1 or not isinstance(tests[0], ast.If):
        return False
    return any(s is statement for s in tests[0].body) and asks_for_group(tests[0].test)

