"""Layers of a part of a model that no loss can reach, whatever the model around the part does.

A model that is not followed as a whole (it chooses its forward when it is made, say) may hold a part that is: where the part's
own forward makes nothing of a layer and nothing else of the project reads it, the layer gets no gradient in any step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts
from codemods.analysis.model.member_kinds import Kind, Member
from codemods.analysis.model.model_members import members_of
from codemods.analysis.model.model_usage import Entry, Usage, Verdict, usage_of
from codemods.analysis.model.unread_poolers import unread_pooler
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 6
_HOLD = (Kind.SEQUENCE, Kind.LIST)
_FREEZES = lazy(r"requires_grad_\(|requires_grad\s*=(?!=)|\.freeze|\.to_empty|get_peft_model|add_adapter|_hook\(")


def dead_inside(project: Project, site: ClassSite) -> Usage | None:
    """What is known of a part that each such model has, and of which a layer reaches no loss."""
    key = ("dead inside", site.module.path, site.node.lineno)
    return project.memo(key, lambda: next(_found(project, site), None))


def dead_in(project: Project, site: ClassSite, entry: Entry) -> Usage | None:
    """The model itself where it is followed as a whole and leaves a layer out for good; else a part of it."""
    whole = usage_of(project, site, entry)
    if whole.verdict is Verdict.NEVER:
        return whole if whole.dead else None
    return dead_inside(project, site) if whole.verdict is Verdict.UNKNOWN else None


def _found(project: Project, site: ClassSite) -> Iterator[Usage]:
    parts = list(_parts(project, site, [], frozenset()))
    for facts in parts[1:]:
        usage = usage_of(project, facts.lineage[0], Entry.FORWARD)
        if usage.verdict is Verdict.NEVER and usage.dead and all(_is_of_forward(facts, path) for path in usage.dead):
            yield usage
    yield from filter(None, (unread_pooler(project, facts) for facts in parts))


def _parts(project: Project, site: ClassSite, chain: list[SourceModule], seen: frozenset[int]) -> Iterator[ClassFacts]:
    """The model and the parts of it that are read, where no file of them freezes or swaps anything; the model first."""
    facts = class_facts(project, site.module, site.node)
    chain = [*chain, *(s.module for s in facts.lineage)]
    if facts.unresolved or id(site.node) in seen or len(seen) > _DEPTH or any(_FREEZES.search(m.text) for m in chain):
        return
    yield facts
    for member in members_of(project, facts).by_name.values():
        for inner in _certain(member):
            yield from _parts(project, inner, chain, seen | {id(site.node)})


def _certain(member: Member) -> Iterator[ClassSite]:
    """The classes of the project of which the member is sure to hold an object."""
    if member.condition or member.perhaps or member.assumed:
        return
    if member.kind is Kind.MODULE and member.site is not None:
        yield member.site
    elif member.kind in _HOLD:
        for part in member.parts:
            yield from _certain(part)


def _is_of_forward(facts: ClassFacts, path: str) -> bool:
    """True where the constructor makes the layer and `forward` alone reads it: nothing else replaces or runs it."""
    name = path.partition(".")[0].partition("[")[0]
    for site in facts.lineage:
        module = site.module
        if any(text.value == name for text in module.nodes(ast.Constant)):
            return False  # `getattr(block, "late")`
        for node in module.nodes(ast.Attribute):
            if node.attr != name:
                continue
            owner, function = module.class_of(node), module.function_of(node)
            if owner is not site.node and owner is not None and dotted(node.value) == "self":
                continue  # another class has one of that name
            wanted = "forward" if isinstance(node.ctx, ast.Load) else "__init__"
            if owner is not site.node or function is None or function.name != wanted:
                return False
    return True
