"""Where objects of a project class are made, and in which attribute of which other class they are kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import HandedOn, constructions
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Making:
    """A call that makes an object of the class `site`."""

    module: SourceModule
    call: ast.Call
    site: ClassSite


@record
class Keeping:
    """`self.field` of the class `owner` holds such an object."""

    owner: ClassFacts
    field: str


def makings(project: Project, site: ClassSite) -> tuple[Making, ...]:
    """The calls that make objects of a class or of one below it, also where the class is the default of a parameter."""
    return project.memo(("makings", site.module.path, site.node.lineno), lambda: tuple(_makings(project, site)))


def _makings(project: Project, site: ClassSite) -> Iterator[Making]:
    uses = constructions(project, site.module, site.node)
    if uses is None:
        return
    for made in uses.calls:
        found = find_class(project, made.module, dotted(made.call.func))
        if found is not None and not is_test_file(made.module.path):
            yield Making(made.module, made.call, found)
    for handed in uses.handed_on:
        found = find_class(project, handed.module, dotted(handed.node))
        if found is not None and not is_test_file(handed.module.path):
            yield from (Making(handed.module, call, found) for call in _calls_of_default(handed))


def _calls_of_default(handed: HandedOn) -> Iterator[ast.Call]:
    """`def __init__(self, task_class=Task)`: the calls of `task_class` in that function."""
    arguments = handed.module.parent(handed.node)
    function = handed.module.parent(arguments) if isinstance(arguments, ast.arguments) else None
    if not isinstance(arguments, ast.arguments) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    for parameter, default in pairs:
        if default is handed.node:
            calls = handed.module.calls_named(parameter.arg)
            yield from (c for c in calls if isinstance(c.func, ast.Name) and handed.module.function_of(c) is function)


def keepings(project: Project, site: ClassSite) -> tuple[Keeping, ...]:
    """The attributes that hold objects of a class: `self.task = Task(self)`, or `Runner(Task())` and what Runner does with it."""
    key = ("keepings", site.module.path, site.node.lineno)
    return project.memo(key, lambda: tuple(k for making in makings(project, site) for k in _kept(project, making)))


def _kept(project: Project, making: Making) -> Iterator[Keeping]:
    up = making.module.parent(making.call)
    if isinstance(up, ast.keyword):
        up = making.module.parent(up)
    if isinstance(up, ast.Call) and up is not making.call:
        yield from _by_constructor(project, making.module, up, making.call)
    if not isinstance(up, (ast.Assign, ast.AnnAssign)):
        return
    for target in up.targets if isinstance(up, ast.Assign) else [up.target]:
        owner = making.module.class_of(target)
        if isinstance(target, ast.Attribute) and dotted(target.value) == "self" and owner is not None:
            yield Keeping(class_facts(project, making.module, owner), target.attr)
        elif isinstance(target, ast.Name):
            function = making.module.function_of(up)
            for node in making.module.reads_of(target.id):
                holder = making.module.parent(node)
                holder = making.module.parent(holder) if isinstance(holder, ast.keyword) else holder
                if isinstance(holder, ast.Call) and node is not holder.func and making.module.function_of(node) is function:
                    yield from _by_constructor(project, making.module, holder, node)


def _by_constructor(project: Project, module: SourceModule, call: ast.Call, argument: ast.expr) -> Iterator[Keeping]:
    """The attributes in which a constructor puts one of its arguments."""
    found = find_class(project, module, dotted(call.func)) if dotted(call.func) else None
    if found is None:
        return
    facts = class_facts(project, found.module, found.node)
    if (init := facts.method("__init__")) is None:
        return
    names = {name for name, node in arguments_of(call, init[1], skip_self=True).items() if node is argument}
    for attribute, values in class_values(project, facts).given.items():
        for given in values:
            if given.function is init[1] and isinstance(given.value, ast.Name) and given.value.id in names:
                yield Keeping(facts, attribute)


def handed_to_init(project: Project, making: Making, init: FunctionNode, name: str) -> ast.expr | None:
    """What a making hands to the parameter `name` of `init`, which is the class's own constructor or the one it calls above."""
    facts = class_facts(project, making.site.module, making.site.node)
    own = facts.method("__init__")
    if own is None:
        return None
    given = arguments_of(making.call, own[1], skip_self=True)
    if own[1] is init:
        return given.get(name)
    for call in own[0].module.calls_named("__init__"):
        if own[0].module.function_of(call) is not own[1]:
            continue
        passed = arguments_of(call, init, skip_self=True).get(name)
        if isinstance(passed, ast.Name):
            return given.get(passed.id)
    return None
