"""Is a value read for its truth alone, or held against another? A function that is read so is handed on to nobody.

`if args.train:` asks for a setting that is called as a method is; were it the method, nobody would call it from there.
"""

from __future__ import annotations

import ast

from codemods.files.source import SourceModule


def is_only_tested(module: SourceModule, node: ast.expr) -> bool:
    """True for `if args.train:`, `while not self.save:` and `args.test == 1`: what comes of it is a truth value, or nothing."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.Compare):
            return True
        if isinstance(up, ast.UnaryOp):
            return isinstance(up.op, ast.Not)
        if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return up.test is below
        if isinstance(up, ast.comprehension):
            return any(part is below for part in up.ifs)
        if not isinstance(up, ast.BoolOp):
            return False
        below = up
    return False

