"""Lists of what each process measures of itself, times and memory: their mean stands for no share of the data."""

from __future__ import annotations

import ast

from codemods.analysis.class_values import class_values
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.metric_attributes import self_attribute
from codemods.files.source import walk
from codemods.runtime.record import replace


def holds_only_measurements(scope: Scope, number: ast.expr) -> bool:
    """True for `np.mean(self.times)` where clocks and memory gauges alone go into that list, and into each other one of it."""
    lists = [name for node in (number, *walk(number)) if isinstance(node, ast.expr) and (name := _filled(scope, node))]
    return bool(lists) and all(_is_measured(scope, name) for name in lists)


def _filled(scope: Scope, node: ast.expr) -> str:
    """`times` of a `self.times` that methods fill, "" for anything else."""
    name = self_attribute(node) if isinstance(node, ast.Attribute) else ""
    if not name or scope.facts is None:
        return ""
    return name if name in class_values(scope.project, scope.facts).filled else ""


def _is_measured(scope: Scope, name: str) -> bool:
    assert scope.facts is not None
    fillers = class_values(scope.project, scope.facts).fillers.get(name, ())
    kinds = [classify(at, given).kind for given in fillers if (at := _place(scope, given)) is not None]
    return len(kinds) == len(fillers) and bool(kinds) and all(kind is Kind.GAUGE for kind in kinds)


def _place(scope: Scope, given: ast.expr) -> Scope | None:
    """The method that puts it there."""
    assert scope.facts is not None
    for site in scope.facts.lineage:
        function = site.module.function_of(given)
        if function is not None:  # None for what stands in the file of another class
            return replace(scope, module=site.module, function=function, names={})
    return None
