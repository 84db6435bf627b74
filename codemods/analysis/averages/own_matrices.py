"""Scores that a metric class of the project works out of the matrix it has counted: a mean of them is not that of the whole."""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import own_field
from codemods.analysis.variance.values import Kind, Thing
from codemods.files.source import FunctionNode, SourceModule, called_name, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A quotient whose divisor the counts make: that of all pixels or rows, an accuracy, is as good as a mean of the ranks.
_OF_CLASSES = lazy(
    r"(^|_)(fw|m|mean_)?(ious?|iu|dice|f1|kappa|precision|recall|class_acc\w*|acc_class|jaccard)(_|$|\d)|intersection_over", re.I
)
_DIAGONALS = frozenset({"diag", "diagonal", "diagflat"})


def matrix_score(project: Project, module: SourceModule, call: ast.Call, key: object) -> str:
    """What `meter.get_scores()["miou"]` or `meter.mean_iou()` is, in words; "" for any other call."""
    if not isinstance(call.func, ast.Attribute) or not _OF_CLASSES.search(key if isinstance(key, str) else call.func.attr):
        return ""
    thing = _held(project, module, call.func.value)
    if thing is None or thing.kind is not Kind.INSTANCE or thing.site is None:
        return ""
    facts = class_facts(project, thing.site.module, thing.site.node)
    method = facts.method(call.func.attr)
    if method is None or not _reads_diagonal(facts, method[1]):
        return ""
    return f"`{call.func.attr}` of `{thing.site.node.name}`" + (f" (`{key}`)" if isinstance(key, str) else "")


def _held(project: Project, module: SourceModule, holder: ast.expr) -> Thing | None:
    """The object whose method is called: one that is made in sight, or that the callers hand over."""
    analysis = variance(project)
    thing = analysis.value(module, holder).thing
    function = module.function_of(holder)
    if thing is None and isinstance(holder, ast.Name) and function is not None:
        thing = analysis.thing_of(module, function, holder.id)
    return thing


def _reads_diagonal(facts: ClassFacts, method: FunctionNode) -> bool:
    """True where the method takes the diagonal of a field that another method of the class adds its counts to."""
    taken = {c for c in walk(method) if isinstance(c, ast.Call) and called_name(c) in _DIAGONALS}
    read = {own_field(dotted(n)) for n in walk(method) if isinstance(n, ast.Attribute)} - {""}
    return bool(taken) and not read.isdisjoint(_grown(facts))


def _grown(facts: ClassFacts) -> set[str]:
    methods = (m for site in facts.lineage for m in site.methods().values())
    added = (n for m in methods for n in walk(m) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add))
    return {last(dotted(n.target)) for n in added if own_field(dotted(n.target))}
