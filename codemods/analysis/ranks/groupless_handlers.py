"""The `except` of a `try` that begins with a question to the process group: a run without one goes on there.

`try: several = dist.get_world_size() > 1 … report(gathered)`, `except: report(own)`: torch raises where there is no group.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule, walk

_ASKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.get_rank"})
_CAUGHT = frozenset({"", "Exception", "BaseException", "ValueError", "RuntimeError"})  # what torch raises, by its version


def is_without_a_group(module: SourceModule, handler: ast.ExceptHandler) -> bool:
    """True where the `try` asks the group first, and the handler does the same as its body then does."""
    tried = module.parent(handler)
    if not isinstance(tried, ast.Try) or (dotted(handler.type) if handler.type is not None else "") not in _CAUGHT:
        return False
    if not any(qualified(module, c.func) in _ASKS for c in _begins_with(tried.body[0])):
        return False
    return bool(_called(handler.body) & _called(tried.body)) and not isinstance(handler.body[-1], ast.Raise)


def _begins_with(statement: ast.stmt) -> list[ast.Call]:
    """The calls that are made first: those of an `if` are the ones in its test."""
    first: ast.AST = statement.test if isinstance(statement, ast.If) else statement
    if isinstance(first, ast.stmt) and not isinstance(first, (ast.Assign, ast.AnnAssign, ast.Expr)):
        return []
    if isinstance(first, ast.BoolOp):
        first = first.values[0]
    return [n for n in walk(first) if isinstance(n, ast.Call)]


def _called(block: list[ast.stmt]) -> set[str]:
    """The functions of the object or the file that a block calls: not `print` and other names of one word of Python."""
    calls = (n for s in block for n in walk(s) if isinstance(n, ast.Call))
    return {dotted(c.func) for c in calls} - {"", "print", "len", "str", "int"}
