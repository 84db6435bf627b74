"""Which hooks a method runs under: the hook itself, or every hook that reaches a helper through `self.helper(...)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, subclasses
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import dotted
from codemods.project import Project
from codemods.source import FunctionNode


@dataclass(frozen=True, slots=True)
class Caller:
    """A call of a method through `self` (or `super()`), and the method it stands in."""

    site: ClassSite
    function: FunctionNode
    call: ast.Call


@dataclass(frozen=True, slots=True)
class Entries:
    """How a method is reached. hooks: names of the framework's hooks. steps: the calls on the way. unknown: why it may be
    reached in other ways too, "" where it is not."""

    hooks: frozenset[str]
    steps: tuple[Caller, ...]
    unknown: str = ""


def family_of(project: Project, facts: ClassFacts) -> tuple[ClassSite, ...]:
    """The class, its project ancestors and everything that derives from it: whoever can call its methods through self."""
    start = facts.lineage[0]
    wider = [*facts.lineage, *subclasses(project, start)]
    return tuple({(s.module.path, s.node.lineno): s for s in wider}.values())


def entries(project: Project, facts: ClassFacts, function: FunctionNode) -> Entries:
    """The hooks from which `function` is reached, remembered for the project."""
    key = ("entries", facts.lineage[0].module.path, facts.lineage[0].node.lineno, function.lineno, function.name)
    return project.memo(key, lambda: _entries(project, facts, function))


def _entries(project: Project, facts: ClassFacts, function: FunctionNode) -> Entries:
    kin = family_of(project, facts)
    hooks: set[str] = set()
    steps: list[Caller] = []
    unknown = ""
    seen: set[str] = set()
    queue = [function.name]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in LIGHTNING_HOOKS:
            hooks.add(name)
            continue
        callers, other = _callers(kin, name)
        unknown = unknown or other
        if not callers and name == function.name:
            unknown = unknown or f"nobody in the project is seen to call {name}"
        for caller in callers:
            steps.append(caller)
            queue.append(caller.function.name)
    return Entries(frozenset(hooks), tuple(steps), unknown)


def _callers(kin: tuple[ClassSite, ...], name: str) -> tuple[list[Caller], str]:
    """(calls of `self.name(...)` in these classes, why there may be others)."""
    found: list[Caller] = []
    for site in kin:
        module = site.module
        called = {id(call.func) for call in module.calls_named(name)}
        for call in module.calls_named(name):
            if not isinstance(call.func, ast.Attribute):
                continue
            place = module.method_of(call)
            if place is None or place[0] is not site.node:
                continue
            receiver = call.func.value
            own = dotted(receiver) == "self" or (isinstance(receiver, ast.Call) and dotted(receiver.func) == "super")
            if own and module.function_of(call) is place[1]:
                found.append(Caller(site, place[1], call))
            elif own:
                return found, f"{name} is called from a function inside {place[1].name}"
        for attribute in module.nodes(ast.Attribute):
            if attribute.attr == name and id(attribute) not in called and dotted(attribute) == f"self.{name}":
                place = module.method_of(attribute)
                if place and place[0] is site.node:
                    return found, f"{name} is passed on as a value in {site.name}.{place[1].name}"
    return found, ""


def facts_of(project: Project, site: ClassSite) -> ClassFacts:
    return class_facts(project, site.module, site.node)
