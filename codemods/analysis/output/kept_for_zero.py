"""What a statement keeps, where rank 0 alone reads it: then the statement may go under a test for rank 0 with it.

`self.scorer = Scorer(self.average)` needs the average, which rank 0 has; nobody misses the scorer where only rank 0 asks it.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted
from codemods.analysis.output.effects import Kind, effects_of
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_SHOWN = (Kind.PRINT, Kind.LOG, Kind.QUIET)
_SHOWING = (ast.Expr, ast.If, ast.For)

def kept_for_zero(project: Project, module: SourceModule, statement: ast.stmt) -> ast.stmt | None:
    """The statement, or the `if` round it that does nothing else; None where others read what is kept, or wait in it."""
    if not isinstance(statement, ast.Assign) or not all(_is_read_by_zero(project, module, t) for t in statement.targets):
        return None
    if any(isinstance(n, ast.Call) and reached_by(project, module, n) is not None for n in walk(statement.value)):
        return None
    place: ast.stmt = statement
    while _serves_it_alone(project, module, up := module.parent(place), place):
        assert isinstance(up, ast.If)
        place = up
    return place if module.is_whole(place) else None


def _is_read_by_zero(project: Project, module: SourceModule, target: ast.expr) -> bool:
    """True for a name or a field of this object that is read, and by rank 0 alone."""
    if isinstance(target, ast.Name):
        home = module.function_of(target)
        reads = [n for n in module.reads_of(target.id) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        return home is not None and bool(reads) and all(
            module.function_of(n) is home and ranks_at(module, n, project=project) is Ranks.ZERO for n in reads
        )
    if not isinstance(target, ast.Attribute) or dotted(target.value) != "self":
        return False
    owner = module.class_of(target)
    if owner is None or len(class_facts(project, module, owner).lineage) > 1 or module.holds(b"getattr"):
        return False
    found = False
    for path in project.files_containing(f".{target.attr}".encode()):
        other = project.module(path)
        for node in other.reads_of(target.attr) if other is not None else ():
            if other is None or not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            if other is not module or module.class_of(node) is not owner or dotted(node.value) != "self":
                return False
            if ranks_reaching(project, module, node) is not Ranks.ZERO:
                return False
            found = True
    return found


def _serves_it_alone(project: Project, module: SourceModule, up: ast.AST | None, inner: ast.stmt) -> bool:
    """True for an `if` whose other statements only put something out, on a test that asks for nothing more."""
    if not isinstance(up, ast.If) or up.orelse or not any(s is inner for s in up.body):
        return False
    if ranks_at(module, up.body[0], project=project).some or effects_of(project, module, [up.test]).items:
        return False
    others = [s for s in up.body if s is not inner]
    done = effects_of(project, module, others).items
    shows = all(e.kind in _SHOWN and not e.own for e in done)
    return shows and all(isinstance(n, _SHOWING) for s in others for n in walk(s) if isinstance(n, ast.stmt))
