"""Values that only rank 0 has, handed on: a path that is None elsewhere, and the handle that a class opens with it."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import is_parameter
from codemods.analysis.output.rank_values import is_of_rank_zero
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_DEPTH = 4


def asks_for_main_only(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for a test of something that only rank 0 has: `if self.handle is None`, where the others were given no path."""
    return any(
        _is_main_only(project, module, node, _DEPTH) for node in walk(test) if isinstance(node, (ast.Name, ast.Attribute))
    )


def _is_main_only(project: Project, module: SourceModule, value: ast.expr, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(value, ast.IfExp):
        return _is_chosen(project, module, value, depth)
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return False
    if is_of_rank_zero(project, module, value):
        return True
    if isinstance(value, ast.Name) and is_parameter(module, value.id, value):
        return _is_given(project, module, value, depth)
    bound = name_or_field_bindings(module, value)
    values = [b.value for b in bound if not _is_nothing(b.value)]
    return bool(values) and all(v is not None and _is_main_only(project, module, v, depth - 1) for v in values)


def _is_chosen(project: Project, module: SourceModule, value: ast.IfExp, depth: int) -> bool:
    """`path if rank == 0 else None`, and `open(path) if path is not None else None` for such a path."""
    arms = (value.orelse, value.body)
    if not any(_is_nothing(arm) for arm in arms):
        return False
    if (split := split_of(module, value.test, project)) is not None:
        return (split.true if _is_nothing(value.orelse) else split.false) in _OF_ZERO
    names = [n for n in walk(value.test) if isinstance(n, (ast.Name, ast.Attribute))]
    return any(_is_main_only(project, module, n, depth - 1) for n in names)


def _is_given(project: Project, module: SourceModule, name: ast.Name, depth: int) -> bool:
    """True for a parameter that every caller gives such a value, or that rank 0 alone gives one: the others leave it None."""
    function = module.function_of(name)
    sites = callers_of(project, module, function) if function is not None else ()
    given = [(s, arguments_of(function, s.call).get(name.id)) for s in sites] if function is not None else []
    full = [(s, v) for s, v in given if v is not None and not _is_nothing(v)]
    if not full or (len(full) < len(given) and function is not None and not _is_nothing(defaults(function).get(name.id))):
        return False
    return all(
        ranks_at(s.module, s.call, project=project) in _OF_ZERO or _is_main_only(project, s.module, v, depth - 1) for s, v in full
    )


def _is_nothing(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False, "")
