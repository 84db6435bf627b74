"""What a base class leaves to its heirs: methods that it only names, fields that they fill."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, class_facts, first_subclasses, overriding
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import own_field
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Thing
from codemods.files.source import FunctionNode, walk_scope

_MOST_HEIRS = 4  # of one method; what the first few of them come to is what the others come to


def is_left_open(function: FunctionNode) -> bool:
    """True for a method that does nothing, or only says that it is not written: an heir has it."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return all(isinstance(s, ast.Pass) or _says_missing(s) for s in body)


def _says_missing(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


def written_by_heirs(state: State, site: FunctionSite) -> list[State]:
    """The summaries of the methods that heirs put in the place of one that is left open."""
    owner = site.module.parent(site.node)
    if not isinstance(owner, ast.ClassDef) or not is_left_open(site.node):
        return []
    base = class_facts(state.project, site.module, owner).lineage[0]
    found: list[State] = []
    for heir in (overriding(state.project, base, site.node.name) or ())[:_MOST_HEIRS]:
        summary = state.summaries.of(FunctionSite(heir.module, heir.methods()[site.node.name]))
        if summary is not None:
            found.append(summary)
    return found


def written_anew(state: State, owner: ClassSite, summary: State) -> list[State]:
    """The summaries of what the class `owner` has in the place of the methods that a method of its base class calls on itself."""
    facts = class_facts(state.project, owner.module, owner.node)
    if summary.function is None or len(facts.lineage) < 2 or summary.module.class_of(summary.function) is owner.node:
        return []
    found: list[State] = []
    for call in (n for n in walk_scope(summary.function) if isinstance(n, ast.Call)):
        name, known = own_field(dotted(call.func)), summary.targets.get(id(call))
        method = facts.method(name) if name and known is not None else None
        if method is None or known is None or method[1] is known.node:
            continue
        each = state.summaries.of(FunctionSite(method[0].module, method[1]))
        found += [each] if each is not None else []
    return found


def held_by_heirs(state: State, owner: ClassSite, name: str) -> Thing | None:
    """What object an heir puts into `self.name` where the class itself does not: of several the first."""
    for heir in first_subclasses(state.project, owner, _MOST_HEIRS):
        if (thing := state.summaries.field_thing(heir, name)) is not None:
            return thing
    return None
