"""What rank 0 alone has, as a test: what a function under Lightning's `rank_zero_only` gives back, and what is None elsewhere.

So `if value is not None:` and `if value:` let rank 0 alone in. A project's own decorator may hand the value to all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import family, last, qualified
from codemods.analysis.ranks.none_elsewhere import Asked, none_elsewhere
from codemods.analysis.ranks.plain_ranks import plain_ranks
from codemods.analysis.ranks.rank_sets import Ranks, Split
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ZERO = frozenset({"rank_zero_only", "on_main_process"})
_FRAMEWORKS = frozenset({"lightning", "accelerate"})


def split_of_value(module: SourceModule, value: ast.AST, project: Project | None) -> Split | None:
    """What it says of ranks that `value` is there, or true; None where it is no value of such a function."""
    if isinstance(value, ast.Call):
        return _given_by(module, value, project)
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    bound = name_or_field_bindings(module, value)
    given = [b for b in bound if not _is_nothing(b.value)]
    if not given or len(bound) > 4 or any(b.part or not isinstance(b.value, ast.Call) for b in given):
        return None
    found = {_given_by(module, b.value, project) for b in given if isinstance(b.value, ast.Call)}
    return found.pop() if len(found) == 1 else None


def split_of_partial(
    module: SourceModule, value: ast.AST, project: Project | None, says: Callable[[SourceModule, ast.expr], Split | None]
) -> Split | None:
    """The same of a value that is None on the others as it is made: under a test of the rank, or by what a function returns.

    says: what a test says of ranks that asks for no such value.
    """
    if project is None or not isinstance(value, (ast.Name, ast.Attribute, ast.Call)):
        return None

    def asks(_: Project, where: SourceModule, test: ast.expr) -> Split | None:
        return says(where, test)

    def come(_: Project, where: SourceModule, node: ast.AST) -> Ranks:
        return plain_ranks(where, node, lambda test: says(where, test))

    found = none_elsewhere(project, module, value, Asked("tests", come, asks))
    return Split(found.ranks, Ranks.UNKNOWN, alone=False) if found is not None else None


def _given_by(module: SourceModule, call: ast.Call, project: Project | None) -> Split | None:
    site = called_function(project, module, call)
    if site is None or not site.node.decorator_list:
        return None
    named = [d.func if isinstance(d, ast.Call) else d for d in site.node.decorator_list]
    names = [qualified(site.module, d) for d in named if family(qualified(site.module, d)) in _FRAMEWORKS]
    if not any(last(name) in _ZERO for name in names):
        return None
    return Split(Ranks.ZERO, Ranks.UNKNOWN, alone=False)  # rank 0 itself may get nothing


def _is_nothing(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and not value.value
