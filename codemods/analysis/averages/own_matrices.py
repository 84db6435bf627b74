"""Scores that a class of the project works out of what it has counted, a matrix or numbers: a mean of them is not the whole's."""

from __future__ import annotations

import ast
import re

from codemods.analysis.averages.count_quotients import brings_ranks_together, divides_counts
from codemods.analysis.averages.kept_counters import class_asked
from codemods.analysis.class_index import ClassFacts, Role
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import own_field
from codemods.files.source import FunctionNode, SourceModule, called_name, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A quotient whose divisor the counts make: that of all pixels or rows, an accuracy, is as good as a mean of the ranks.
_OF_CLASSES = lazy(
    r"(^|_)(fw|m|mean_)?(ious?|iu|dice|f1|kappa|precision|recall|f_?score|f_?measure|pq|rq|class_acc\w*|acc_class|jaccard)"
    r"(_|$|\d)|intersection_over",
    re.I,
)
_DIAGONALS = frozenset({"diag", "diagonal", "diagflat"})


def matrix_score(project: Project, module: SourceModule, call: ast.Call, key: object) -> str:
    """What `meter.get_scores()["miou"]` or `meter.mean_iou()` is, in words; "" for any other call."""
    if not isinstance(call.func, ast.Attribute) or not _OF_CLASSES.search(key if isinstance(key, str) else call.func.attr):
        return ""
    facts = class_asked(project, module, call.func.value)
    method = facts.method(call.func.attr) if facts is not None else None
    if facts is None or method is None or facts.is_a(Role.METRIC) or brings_ranks_together(facts):
        return ""
    if not _reads_diagonal(facts, method[1]) and not divides_counts(facts, method[1]):
        return ""
    return f"`{call.func.attr}` of `{facts.lineage[0].node.name}`" + (f" (`{key}`)" if isinstance(key, str) else "")


def _reads_diagonal(facts: ClassFacts, method: FunctionNode) -> bool:
    """True where the method takes the diagonal of a field that another method of the class adds its counts to."""
    taken = {c for c in walk(method) if isinstance(c, ast.Call) and called_name(c) in _DIAGONALS}
    read = {own_field(dotted(n)) for n in walk(method) if isinstance(n, ast.Attribute)} - {""}
    return bool(taken) and not read.isdisjoint(_grown(facts))


def _grown(facts: ClassFacts) -> set[str]:
    methods = (m for site in facts.lineage for m in site.methods().values())
    added = (n for m in methods for n in walk(m) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add))
    return {last(dotted(n.target)) for n in added if own_field(dotted(n.target))}
