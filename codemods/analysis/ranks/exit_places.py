"""How a way out of a function or a loop stands to a place below it: in the same loop, in another branch."""

from __future__ import annotations

import ast

from codemods.files.source import SourceModule


def same_loop(module: SourceModule, leaving: ast.AST, node: ast.AST) -> bool:
    """True where the loop that `leaving` (a continue, a break) leaves has `node` in it too."""
    loop = next((up for up in module.ancestors(leaving) if isinstance(up, (ast.For, ast.While, ast.AsyncFor))), None)
    return loop is not None and any(up is loop for up in module.ancestors(node))


def other_branch(module: SourceModule, leaving: ast.AST, node: ast.AST) -> bool:
    """True where some `if` (or `match`) holds `leaving` in one branch and `node` in another."""
    chain = {id(n): n for n in [node, *module.ancestors(node)]}
    below = leaving
    for up in module.ancestors(leaving):
        if id(up) in chain:
            if isinstance(up, ast.If):
                return any(s is below for s in up.orelse) != any(id(s) in chain for s in up.orelse)
            return isinstance(up, ast.Match) and isinstance(below, ast.match_case) and id(below) not in chain
        below = up
    return False
