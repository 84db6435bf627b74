"""All that an evaluation came to, shown as one: a dict of results by its name, an object that puts its counts into words."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.number_words import RESULTS, is_key, is_number
from codemods.analysis.variance.values import REST, Cause, Kind, Value
from codemods.files.source import walk
from codemods.store.project import Project


def holds_results(node: ast.expr) -> bool:
    """True for the name of a dict that holds what an evaluation came to: `scores`, `val_results`."""
    return isinstance(node, (ast.Name, ast.Attribute)) and RESULTS.search(last(dotted(node))) is not None


def holds_reduced(value: Value) -> bool:
    """True for a dict of what all ranks have, into which a step or a table of the rank's own was put besides."""
    entries = dict(value.entries)
    rest = entries.pop(REST, None)
    if rest is None or rest.cause is not Cause.SAME:
        return False
    return not any(is_key(key) for key, entry in entries.items() if entry.cause.differs or entry.params)


def puts_itself(project: Project, value: Value) -> bool:
    """True for an object of the project that puts what it has counted into words itself (`__str__`)."""
    site = value.thing.site if value.thing is not None and value.thing.kind is Kind.INSTANCE else None
    if site is None:
        return False
    method = class_facts(project, site.module, site.node).method("__str__")
    words = (n for n in walk(method[1]) if isinstance(n, (ast.Name, ast.Attribute, ast.Constant))) if method is not None else ()
    return any(is_key(n.value) if isinstance(n, ast.Constant) else is_number(n) for n in words)
