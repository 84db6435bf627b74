"""A data set that is as long as the rows it was handed: `len(self.rows)`, where the constructor puts a parameter into `rows`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Value, plain
from codemods.files.source import walk_scope
from codemods.runtime.record import replace
from codemods.store.project import Project


def rows_handed(state: State, loader: ast.Call, dataset: Value) -> Value | None:
    """How long the data set of a loader is, by the parameters or fields of this function that it was handed.

    The class alone knows what all who make one hand it, but not yet where the function that makes it is still being read.
    """
    site = dataset.thing.site if dataset.thing is not None else None
    if site is None:
        return None
    name = _kept_rows(state.project, class_facts(state.project, site.module, site.node))
    made = _made(state, loader) if name else None
    value = state.given.get(id(made), {}).get(name, SAME)
    if not value.params or value.cause.differs:
        return None
    return replace(plain(value), length=True)


def _made(state: State, loader: ast.Call) -> ast.expr | None:
    """The call that makes the data set, also by a name that is given one value."""
    written = loader.args[0] if loader.args else next((k.value for k in loader.keywords if k.arg == "dataset"), None)
    if not isinstance(written, ast.Name):
        return written
    bound = bindings_of(state.module, written)
    return bound[0].value if len(bound) == 1 and not bound[0].part else None


def _kept_rows(project: Project, facts: ClassFacts) -> str:
    """The parameter of the constructor whose length the objects have; "" where there is none."""
    length, made = facts.method("__len__"), facts.method("__init__")
    if length is None or made is None:
        return ""
    returns = [n.value for n in walk_scope(length[1]) if isinstance(n, ast.Return)]
    asked = returns[0] if len(returns) == 1 else None
    if not isinstance(asked, ast.Call) or dotted(asked.func) != "len" or len(asked.args) != 1:
        return ""
    field = dotted(asked.args[0])
    if not field.startswith("self.") or field.count(".") != 1:
        return ""
    values = class_values(project, facts)
    given = values.given.get(field.removeprefix("self."), [])
    if len(given) != 1 or given[0].function is not made[1] or given[0].part is not None:
        return ""
    value = given[0].value
    return value.id if isinstance(value, ast.Name) else ""
