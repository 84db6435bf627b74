"""Which hooks reach a method of an object that a module or a callback keeps: `self.task.validate(batch)` in a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import Caller, Entries, entries, family_of
from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.kept_objects import keepings
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_CALLED = frozenset({"__call__", "forward"})
MOST = 40  # callers on the way; more of them say no more


def held_entries(project: Project, module: SourceModule, function: FunctionNode) -> Entries:
    """The hooks from which a function outside of every module and callback is reached, remembered for the project."""
    key = ("held entries", module.path, function.lineno, function.name)
    return project.memo(key, lambda: _entries(project, module, function))


def _entries(project: Project, module: SourceModule, function: FunctionNode) -> Entries:
    hooks: frozenset[str] = frozenset()
    steps: list[Caller] = []
    unknown = ""
    seen: set[tuple[str, int]] = set()
    queue: list[tuple[SourceModule, FunctionNode]] = [(module, function)]
    while queue and len(steps) < MOST:
        place, asked = queue.pop()
        if (place.path, asked.lineno) in seen:
            continue
        seen.add((place.path, asked.lineno))
        direct = callers_of(project, place, asked)
        if not direct:
            unknown = unknown or f"nobody in the project is seen to call {asked.name}"
        for caller in direct:
            steps.append(caller)
            facts = class_facts(project, caller.site.module, caller.site.node)
            if facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.LIGHTNING_CALLBACK):
                above = entries(project, facts, caller.function)
                hooks |= above.hooks
                steps += above.steps
                unknown = unknown or above.unknown
            else:
                queue.append((caller.site.module, caller.function))
    return Entries(hooks, tuple(steps), (), unknown)


def callers_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[Caller, ...]:
    """The calls of a function that stand in a method: through `self`, through the attribute that keeps the object, by name."""
    key = ("callers of held", module.path, function.lineno, function.name)
    return project.memo(key, lambda: tuple(_callers(project, module, function)))


def _callers(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[Caller]:
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        for use in uses_of(project, module, function).calls:
            place = use.module.method_of(use.call)
            if place is not None and not is_test_file(use.module.path):
                yield Caller(ClassSite(use.module, place[0]), place[1], use.call)
        return
    facts = class_facts(project, module, owner)
    if function.name not in _CALLED:
        yield from _in_family(project, facts, {f"self.{function.name}"}, function.name)
    for keeping in keepings(project, facts.lineage[0]):
        through = f"self.{keeping.field}"
        if function.name in _CALLED:
            yield from _in_family(project, keeping.owner, {through}, keeping.field)
        else:
            yield from _in_family(project, keeping.owner, {f"{through}.{function.name}"}, function.name)


def _in_family(project: Project, facts: ClassFacts, written: set[str], name: str) -> Iterator[Caller]:
    for site in family_of(project, facts):
        for call in site.module.calls_named(name):
            place = site.module.method_of(call)
            if place is not None and place[0] is site.node and dotted(call.func) in written:
                yield Caller(site, place[1], call)
