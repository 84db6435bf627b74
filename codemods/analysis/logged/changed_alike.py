"""Numbers that a LightningModule changes between its epochs, each rank in the same way: a margin that goes by a metric."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite
from codemods.analysis.class_values import SETUP_METHODS
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.metric_attributes import metric_attribute
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk

_BETWEEN = ("epoch_end", "epoch_start")


def is_changed_alike(scope: Scope, facts: ClassFacts, name: str, depth: int) -> bool:
    """True where `self.name` is changed in hooks between the epochs alone, by what is the same on every rank.

    A test over the change asks for what is the same, or for what a metric object gives, which is that of all ranks.
    """
    changes = list(_changes(facts, name))
    return bool(changes) and all(_is_alike(scope, facts, *change, depth) for change in changes)


def _changes(facts: ClassFacts, name: str) -> Iterator[tuple[ClassSite, FunctionNode, ast.Assign | ast.AugAssign]]:
    for site in facts.lineage:
        for function in site.node.body:
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.name in SETUP_METHODS:
                continue
            for node in walk(function):
                if isinstance(node, (ast.Assign, ast.AugAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    if any(dotted(t) == f"self.{name}" for t in targets):
                        yield site, function, node


def _is_alike(
    scope: Scope, facts: ClassFacts, site: ClassSite, function: FunctionNode, change: ast.Assign | ast.AugAssign, depth: int
) -> bool:
    if function.name not in LIGHTNING_HOOKS or not function.name.endswith(_BETWEEN):
        return False
    inner = scope.inside(site.module, function, facts)
    if any(isinstance(n, ast.Return) and n.lineno < change.lineno for n in walk(function)):
        return False  # who comes here at all is decided above
    below: ast.AST = change
    for up in site.module.ancestors(change):
        if up is function:
            break
        if not isinstance(up, ast.If) or (below is not up.test and not _is_asked_alike(inner, facts, up.test, depth)):
            return False
        below = up
    return _is_equal(inner, change.value, depth)


def _is_equal(scope: Scope, node: ast.expr, depth: int) -> bool:
    value = classify(scope, node, (), depth + 1)
    return value.kind is Kind.EQUAL and value.traced


def _is_asked_alike(scope: Scope, facts: ClassFacts, test: ast.expr, depth: int) -> bool:
    if isinstance(test, ast.BoolOp):
        return all(_is_asked_alike(scope, facts, part, depth) for part in test.values)
    if isinstance(test, ast.UnaryOp):
        return _is_asked_alike(scope, facts, test.operand, depth)
    if isinstance(test, ast.Compare):
        return all(_is_asked_alike(scope, facts, part, depth) for part in (test.left, *test.comparators))
    return _is_of_a_metric(scope, facts, test) or _is_equal(scope, test, depth)


def _is_of_a_metric(scope: Scope, facts: ClassFacts, node: ast.expr) -> bool:
    """True for `self.accuracy.compute().item()`, where that is a metric object."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "compute" and not node.args and isinstance(node.func.value, (ast.Attribute, ast.Subscript)):
            return metric_attribute(scope.project, facts, node.func.value) is not None
        node = node.func.value
    return False
