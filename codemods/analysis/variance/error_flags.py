"""Does a handler set the very flag behind which something stands? `failed = True` in it, `if failed: again()` below."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk


def raises_flag_of(module: SourceModule, handler: ast.ExceptHandler, line: int) -> bool:
    """True where the statement of a line stands under a test that is true by what the handler sets alone."""
    given = {
        dotted(target): node.value.value
        for statement in handler.body
        for node in walk(statement)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)
        for target in node.targets
        if dotted(target)
    }
    tests = (n for n in module.nodes(ast.If) if n.lineno > handler.lineno) if given else ()
    return any(_is_within(test.body, line) and _is_true_by(test.test, given) for test in tests)


def _is_within(block: list[ast.stmt], line: int) -> bool:
    return block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno)


def _is_true_by(test: ast.expr, given: dict[str, bool]) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return given.get(dotted(test.operand)) is False
    return given.get(dotted(test)) is True if dotted(test) else False
