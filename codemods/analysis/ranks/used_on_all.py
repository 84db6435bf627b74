"""Where every rank uses a name that rank 0 alone has: the others end there, and come to nothing behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.ranks.made_on_zero import Made, made_on_zero
from codemods.analysis.ranks.made_uses import asked_beside_rank, is_asked_for, is_in_function, is_used_by_all, uses_of_made
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.set_elsewhere import may_be_set_elsewhere
from codemods.analysis.ranks.stand_ins import stands_in_for_nothing
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project


def used_on_all(project: Project, module: SourceModule, made: Made) -> ast.expr | None:
    """The first use that every rank comes to."""
    return next(all_used_on_all(project, module, made), None)


def all_used_on_all(project: Project, module: SourceModule, made: Made) -> Iterator[ast.expr]:
    """The uses that every rank comes to."""
    if is_set_elsewhere(project, module, made):
        return
    for node in uses_of_made(module, made):
        statement, outside = module.statement_of(node), is_in_function(module, made, node)
        if ranks_at(module, node, project=project).some and left(module, node, "not all ranks come to this use of {}", made.name):
            continue
        if not _is_reached(project, module, made, node) and left(module, node, "rank 0's {} is not what is used here", made.name):
            continue
        if outside and not is_used_by_all(project, module, made, node):
            left(module, node, "not every rank is seen to come to this use of {}", made.name)
            continue
        if under_such_a_name(project, module, statement) and left(module, node, "a name over it may stand for the rank"):
            continue
        asked = is_asked_for(project, module, node, made.name, beside=asked_beside_rank(module, made))
        if asked and left(module, node, "a test asks for {} first", made.name):
            continue
        if not made.name.startswith("self.") and not outside and statement.lineno < made.line:
            continue
        if made.until and line_of(node) > made.until:
            continue
        if stands_in_for_nothing(project, module, node):
            left(module, node, "no call leaves out what {} stands in for", made.name)
            continue
        yield node


def is_set_elsewhere(project: Project, module: SourceModule, made: Made) -> bool:
    """True for an attribute that a base class or another file may set."""
    if not isinstance(made.home, ast.ClassDef) or not made.name.startswith("self."):
        return False
    return may_be_set_elsewhere(project, module, made.home, made.name.removeprefix("self."))


def is_missing_elsewhere(project: Project, module: SourceModule, node: ast.AST, name: str) -> bool:
    """True for a name of the function round a node that only rank 0 has, where the others end at a use of it."""
    function = module.function_of(node)
    return any(isinstance(u, ast.Name) and u.id == name and module.function_of(u) is function for u in _ends(project, module))


def _ends(project: Project, module: SourceModule) -> tuple[ast.expr, ...]:
    def build() -> tuple[ast.expr, ...]:
        found = (used_on_all(project, module, m) for m in made_on_zero(project, module) if m.name.isidentifier())
        return tuple(dict.fromkeys(use for use in found if use is not None))

    return project.memo(("ends of the other ranks", module.path), build)


def _is_reached(project: Project, module: SourceModule, made: Made, node: ast.AST) -> bool:
    """True where every rank comes to the use; of a name of the function, where not rank 0 alone calls the function."""
    ranks = ranks_reaching(project, module, node)
    own = not made.name.startswith("self.") and not is_in_function(module, made, node)
    return not ranks.some or (own and ranks is Ranks.UNKNOWN)
