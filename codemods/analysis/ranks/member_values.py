"""What `environment.rank` is by the class of its object: what the property gives back, or what the class puts into the field."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.object_class import answers_of_its_own, class_of_object
from codemods.analysis.ranks.rank_attributes import is_given_by_others
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_PROPERTIES = frozenset({"property", "cached_property"})
_MOST = 4


def member_values(project: Project, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, ast.expr]]:
    """The expressions that the attribute may be; none where the class is not seen, an heir may answer, or others set it."""
    site = class_of_object(project, module, node.value)
    if site is None:
        return []
    facts = class_facts(project, site.module, site.node)
    if (method := facts.method(node.attr)) is not None:
        if not any(last(dotted(d)) in _PROPERTIES for d in method[1].decorator_list):
            return []
        if not answers_of_its_own(project, site, node.attr):
            return []
        found = [(method[0].module, r.value) for r in walk_scope(method[1]) if isinstance(r, ast.Return) and r.value is not None]
    else:
        given = class_values(project, facts).given.get(node.attr, [])
        if is_given_by_others(project, node.attr) or any(g.part is not None for g in given):
            return []
        found = [(g.site.module, g.value) for g in given]
    return found if len(found) <= _MOST else []
