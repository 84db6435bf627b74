"""What a constructor's argument is given: by the calls of the class in the project, and by configurations that name the class."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, ClassSite, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.config_targets import argument, name_of, targets_of_class
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

MOST_CALLS = 8


@record
class Given:
    """One thing that is handed over. function: round the call, None at the top level of a file. name: of a class in YAML."""

    module: SourceModule | None
    function: FunctionNode | None
    value: ast.expr | None
    name: str = ""
    path: str = ""
    line: int = 0


def given_for(project: Project, facts: ClassFacts, site: ClassSite, name: str) -> tuple[Given, ...] | None:
    """All that the parameter `name` of the constructor of `site` is given where an object of the class of `facts` is made.

    None where some place hides it (`*args`, `**kwargs`), nothing is found, or there are too many places.
    """
    key = ("constructor argument", facts.lineage[0].module.path, facts.lineage[0].node.lineno, site.name, name)
    return project.memo(key, lambda: _given_for(project, facts, site, name))


def _given_for(project: Project, facts: ClassFacts, site: ClassSite, name: str) -> tuple[Given, ...] | None:
    constructor = site.methods().get("__init__")
    if constructor is None:
        return None
    position = [a.arg for a in (*constructor.args.posonlyargs, *constructor.args.args)][1:]
    if site is not facts.lineage[0]:
        return _by_heir(facts, site, name, position)
    found: list[Given] = []
    for module, call in _calls(project, site):
        value = _argument(call, name, position)
        if value is None:
            return None
        found.append(Given(module, module.function_of(call), value, path=module.path, line=call.lineno))
    for target in targets_of_class(project, site):
        node = argument(target, name)
        inner = name_of(node) if node is not None else ""
        if inner:
            found.append(Given(None, None, None, inner, target.path, node.start_mark.line + 1 if node is not None else 0))
    return tuple(found) if 0 < len(found) <= MOST_CALLS else None


def _by_heir(facts: ClassFacts, site: ClassSite, name: str, position: list[str]) -> tuple[Given, ...] | None:
    """What `super().__init__(…)` of the class below hands on."""
    below = [s for s in facts.lineage[: facts.lineage.index(site)] if "__init__" in s.methods()]
    if len(below) != 1:
        return None
    heir, function = below[0], below[0].methods()["__init__"]
    for node in walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            value = _argument(node, name, position)
            return (Given(heir.module, function, value, path=heir.module.path, line=node.lineno),) if value is not None else None
    return None


def _calls(project: Project, site: ClassSite) -> list[tuple[SourceModule, ast.Call]]:
    def search() -> list[tuple[SourceModule, ast.Call]]:
        out = []
        for path in project.files_containing(f"{site.name}(".encode()):
            module = project.module(path) if not is_test_file(path) else None
            for call in module.calls_named(site.name) if module is not None else ():
                assert module is not None
                found = find_class(project, module, dotted(call.func)) if dotted(call.func) else None
                if found is not None and found.node is site.node:
                    out.append((module, call))
        return out

    return project.memo(("calls of class", site.module.path, site.node.lineno), search)


def _argument(call: ast.Call, name: str, position: list[str]) -> ast.expr | None:
    """The argument as written; one that `**kwargs` may hold is not seen."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name in position and (index := position.index(name)) < len(call.args):
        before = call.args[: index + 1]
        return None if any(isinstance(a, ast.Starred) for a in before) else call.args[index]
    return None


def may_freeze(module: SourceModule, function: FunctionNode | None) -> bool:
    """True where the code that hands a module over also speaks of its gradients: what it then trains is not plain."""
    text = module.text if function is None else module.text_of(function)
    return "requires_grad" in text or ".freeze(" in text
