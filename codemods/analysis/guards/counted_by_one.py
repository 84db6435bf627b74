"""A counter that rank 0 alone advances, by which a loop is left: the others stand at its first number."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.files.file_flow import ranks_in_function
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Counted:
    """count: `step += 1` on rank 0. loop: a `while` round it, or above it, whose test goes by the counter; None for none."""

    name: str
    count: ast.AugAssign
    loop: ast.While | None

    def count_on_all(self, leaves: str) -> str:
        also = f"; the `while` in line {self.loop.lineno} goes by it, and never ends on the other ranks" if self.loop else ""
        return (
            f"count on all ranks: move `{self.name} +=` (line {self.count.lineno}) and {leaves} with its test out of the rank "
            f"branch{also}"
        )


def counted_by_one(project: Project, module: SourceModule, test: ast.expr) -> Counted | None:
    """The counter in a test, where each place that advances it is for rank 0."""
    function = module.function_of(test)
    for name in sorted({n.id for n in walk(test) if isinstance(n, ast.Name)}):
        counts = [n for n in module.nodes(ast.AugAssign) if module.function_of(n) is function and dotted(n.target) == name]
        if not counts or not all(isinstance(c.op, ast.Add) and isinstance(c.value, ast.Constant) for c in counts):
            continue
        if any(ranks_in_function(project, module, c) is not Ranks.ZERO for c in counts):
            continue
        if _is_given_in_the_loop(module, counts[0], name):
            continue
        return Counted(name, counts[0], _loop_by(module, counts[0], name))
    return None


def _is_given_in_the_loop(module: SourceModule, count: ast.AugAssign, name: str) -> bool:
    """True where the loop gives the counter a number besides: it may be the same on every rank."""
    inside = {id(n) for up in module.ancestors(count) if isinstance(up, (ast.For, ast.While)) for n in walk(up)}
    others = (b.node for b in bindings_in(module, module.function_of(count), name) if not isinstance(b.node, ast.AugAssign))
    return any(id(n) in inside for n in others)


def _loop_by(module: SourceModule, count: ast.AugAssign, name: str) -> ast.While | None:
    for up in module.ancestors(count):
        if isinstance(up, ast.While) and any(isinstance(n, ast.Name) and n.id == name for n in walk(up.test)):
            return up
    return None
