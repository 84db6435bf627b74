"""Wrappers that the line behind drops: `self.model = DDP(self.model)`, then `self.model = self.model.module`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, subclasses
from codemods.analysis.names import dotted
from codemods.analysis.positions import behind as statements_behind
from codemods.analysis.ranks.left_in_a_mode import all_come
from codemods.analysis.wrapped.losses import Backward, backward_passes, behind, is_quiet
from codemods.analysis.wrapped.thrown_away import is_wrapped_again
from codemods.analysis.wrapped.wraps import without_moves, wraps_in
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

Dropped = tuple[ast.Assign, ast.Call, Backward]


def dropped_behind(project: Project, module: SourceModule) -> Iterator[Dropped]:
    """(`self.x = self.x.module`, the wrap, a backward pass of the class or of one below it whose loss `self.x` makes)."""
    for wrap in wraps_in(module):
        statement, owner = module.statement_of(wrap), module.class_of(wrap)
        if not isinstance(statement, ast.Assign) or owner is None or without_moves(statement.value) is not wrap:
            continue
        name = dotted(statement.targets[0]) if len(statement.targets) == 1 else ""
        taken = _taken_next(module, statement, name) if name.startswith("self.") else None
        if taken is None or is_wrapped_again(project, module, taken.value, wrap):
            continue
        site = ClassSite(module, owner)
        found = (one for each in (site, *subclasses(project, site)) for one in _trained_by(project, each, name))
        if (one := next(found, None)) is not None:
            yield taken, wrap, one


def _taken_next(module: SourceModule, wrapped: ast.Assign, name: str) -> ast.Assign | None:
    """`self.x = self.x.module` in the same block, with nothing in between that has to do with the object."""
    for statement in statements_behind(module, wrapped):
        if module.parent(statement) is not module.parent(wrapped):
            return None
        if isinstance(statement, ast.Assign) and dotted(statement.value) == f"{name}.module":
            return statement if [dotted(t) for t in statement.targets] == [name] else None
        if any(isinstance(n, ast.Name) and n.id == "self" for n in walk(statement)):
            return None
    return None


def _trained_by(project: Project, site: ClassSite, name: str) -> Iterator[Backward]:
    for one in backward_passes(site.module):
        if site.module.class_of(one.call) is not site.node or is_quiet(site.module, one.call):
            continue
        made = (dotted(each.call.func) for each in behind(project, one) if each.module.class_of(each.call) is not None)
        if any(func == name or func.startswith(f"{name}.") for func in made) and all_come(project, site.module, one.call):
            yield one
