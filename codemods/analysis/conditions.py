"""What a test is put together from, and the one by which a file tells that it is run as a program."""

from __future__ import annotations

import ast


def conjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts of `a and b`, which all hold where it does; any other test itself."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def is_main_block(node: ast.AST) -> bool:
    """True for `if __name__ == "__main__":`, which fresh processes and importers leave out."""
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
