"""The branches round a place in its function, and the exits above it: which tests decide whether it is come to, and how."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.positions import above
from codemods.files.source import SourceModule
from codemods.runtime.record import record

Kinds = tuple[type[ast.AST], ...]
FUNCTIONS: Kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@record
class Branch:
    """A test beside which a place stands. holds: the place is come to where the test holds; else where it does not."""

    node: ast.If | ast.IfExp | ast.While
    holds: bool

    @property
    def test(self) -> ast.expr:
        return self.node.test


def branches_round(
    module: SourceModule, node: ast.AST, *, kinds: Kinds = (ast.If,), until: Kinds = FUNCTIONS
) -> Iterator[Branch]:
    """Innermost first, up to the function of the place. The branch in whose test it stands is none of them.

    kinds: which are meant, of `if`, `a if b else c` and `while`. until: what ends the search, as the function does.
    """
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (*FUNCTIONS, *until)):
            return
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and isinstance(up, kinds) and below is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            yield Branch(up, any(s is below for s in body))
        below = up


def ifs_round(module: SourceModule, node: ast.AST, *, until: Kinds = FUNCTIONS) -> Iterator[ast.If]:
    """The `if` statements of `branches_round`."""
    return (b.node for b in branches_round(module, node, until=until) if isinstance(b.node, ast.If))


def exits_above(module: SourceModule, node: ast.AST) -> Iterator[ast.If]:
    """The tests above a place, in the blocks round it in its function, that leave where they hold."""
    below = node
    for up in (node, *module.ancestors(node)):
        if isinstance(up, FUNCTIONS) and up is not node:
            return
        below = up
        yield from (s for s in above(module, below) if isinstance(s, ast.If) and isinstance(s.body[-1], _LEAVES))


def leading_tests(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Each test that decides over a place in its function, and its answer there: branches, and exits above it."""
    for branch in branches_round(module, node, kinds=(ast.If, ast.IfExp, ast.While)):
        yield branch.test, branch.holds
    for leaving in exits_above(module, node):
        yield leaving.test, False
