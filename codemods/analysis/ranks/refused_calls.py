"""Calls of which the source shows what they run; and those of them that raise TypeError in every run, by their arguments."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings, bindings_of, only_value
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, find_class, has_many_heirs, overriding, subclasses
from codemods.analysis.functions import find_function
from codemods.analysis.model.signatures import takes
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

# What may give a class another constructor than the one that is written in it.
_MAKERS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.alias)


@record
class Meant:
    """The one function that a call runs, in its file. bound: it is given `self` beside the arguments of the call."""

    module: SourceModule
    function: FunctionNode
    bound: bool


def is_refused(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call that raises TypeError in every run: it gives a parameter that is not there, or leaves one out."""
    found = meant(project, module, call)
    return found is not None and not takes(found.function, call, bound=found.bound)


def surely_run(project: Project, module: SourceModule, call: ast.Call) -> Meant | None:
    """What a call surely runs, from its first line on: no generator, and nothing that waits."""
    found = meant(project, module, call)
    if found is None or isinstance(found.function, ast.AsyncFunctionDef):
        return None
    waits = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(found.function))
    return None if waits else found


def meant(project: Project, module: SourceModule, call: ast.Call) -> Meant | None:
    """The one function that a call runs: by name, on `self`, of the class above, or on an object that is made beside it.

    None where a decorator, an heir, an assignment or a library may stand in its place.
    """
    if isinstance(call.func, ast.Name):
        return None if _is_rebound(module, call.func) else _by_name(project, module, call.func)
    if not isinstance(call.func, ast.Attribute):
        return None
    holder, name = call.func.value, call.func.attr
    if isinstance(holder, ast.Call) and dotted(holder.func) == "super":
        return _of_class_above(project, module, holder, name)
    if isinstance(holder, ast.Name) and holder.id == "self":
        place = module.method_of(call)
        return _method(project, ClassSite(module, place[0]), name) if place is not None else None
    made = _made(project, module, holder)
    return _method(project, made, name, heirs=False) if made is not None else None


def _made(project: Project, module: SourceModule, holder: ast.expr) -> ClassSite | None:
    """The class of an object that a name, or a field of `self`, is given once, by a call of the class."""
    if isinstance(holder, ast.Name):
        value = only_value(bindings_of(module, holder))
    elif isinstance(holder, ast.Attribute):
        value = only_value(attribute_bindings(module, holder))
    else:
        value = holder
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or _is_rebound(module, value.func):
        return None
    return find_class(project, module, value.func.id)


def _method(project: Project, owner: ClassSite, name: str, *, heirs: bool = True) -> Meant | None:
    """The method that an object of the class has by that name. heirs: the object may be one of an heir's."""
    facts = class_facts(project, owner.module, owner.node)
    if name.startswith("__") or _is_stored(facts, name):
        return None
    if heirs and (has_many_heirs(project, owner) or overriding(project, owner, name) != ()):
        return None
    return _defined(facts, name)


def _defined(facts: ClassFacts, name: str) -> Meant | None:
    found = facts.method(name)
    if found is None or found[1].decorator_list or not _is_only(found[0].module, found[1]):
        return None
    return Meant(found[0].module, found[1], True) if _is_plain_up_to(facts, found[0]) else None


def _is_plain_up_to(facts: ClassFacts, owner: ClassSite) -> bool:
    """True where each class on the way to the owner of a method has one base, so that no other can come before it."""
    for site in facts.lineage:
        if site.node is owner.node:
            return True
        if len(site.node.bases) != 1 or site.node.decorator_list or site.node.keywords:
            return False
    return False


def _is_stored(facts: ClassFacts, name: str) -> bool:
    """True where code of these files stores something under the name of a method."""
    return any(name in _stored_attributes(site.module) for site in facts.lineage)


@once_a_module
def _stored_attributes(module: SourceModule) -> frozenset[str]:
    return frozenset(n.attr for n in module.nodes(ast.Attribute) if not isinstance(n.ctx, ast.Load))


def _of_class_above(project: Project, module: SourceModule, asked: ast.Call, name: str) -> Meant | None:
    """`super().__init__(…)`, where the class and each of its heirs have one base."""
    place = module.method_of(asked)
    if place is None or (asked.args and (len(asked.args) != 2 or dotted(asked.args[0]) != place[0].name)):
        return None
    owner = ClassSite(module, place[0])
    if len(owner.node.bases) != 1 or owner.node.keywords or owner.node.decorator_list or has_many_heirs(project, owner):
        return None
    if any(len(s.node.bases) != 1 for s in subclasses(project, owner)):
        return None
    above = find_class(project, module, dotted(owner.node.bases[0]))
    if above is None or above.node is owner.node:
        return None
    return _defined(class_facts(project, above.module, above.node), name)


def _is_rebound(module: SourceModule, name: ast.Name) -> bool:
    """True where an assignment, a parameter or a second definition may stand behind the name."""
    bound = bindings_of(module, name)
    if len(module.imports.get(name.id, ())) + len(bound) > 1:
        return True
    return any(not isinstance(b.node, _DEFINES) for b in bound)


def _by_name(project: Project, module: SourceModule, name: ast.Name) -> Meant | None:
    made = find_class(project, module, name.id)
    if made is not None:
        return _constructed(project, made)
    found = find_function(project, module, name, name)
    if found is None:
        return None
    site, function = found
    plain = not function.decorator_list and _is_only(site, function)
    return Meant(site, function, False) if plain and site.class_of(function) is None else None


def _constructed(project: Project, made: ClassSite) -> Meant | None:
    """The constructor that making an object of the class runs."""
    facts = class_facts(project, made.module, made.node)
    plain = not made.node.decorator_list and not any(k.arg for k in made.node.keywords) and _is_only(made.module, made.node)
    if not plain or facts.unresolved or any(_MAKERS & site.methods().keys() for site in facts.lineage):
        return None
    return _defined(facts, "__init__")


def _is_only(module: SourceModule, node: FunctionNode | ast.ClassDef) -> bool:
    """True where the file gives that name nothing else, in no branch and by no assignment."""
    defined, stored = _bound_names(module)
    others = [n for n in defined.get(node.name, ()) if n is not node and module.class_of(n) is module.class_of(node)]
    return not others and node.name not in stored and node.name not in module.imports


@once_a_module
def _bound_names(module: SourceModule) -> tuple[dict[str, list[FunctionNode | ast.ClassDef]], frozenset[str]]:
    """The functions and classes of a file by name, and the names that it stores to."""
    nodes: list[FunctionNode | ast.ClassDef] = [*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef)]
    defined: dict[str, list[FunctionNode | ast.ClassDef]] = {}
    for node in (*nodes, *module.nodes(ast.ClassDef)):
        defined.setdefault(node.name, []).append(node)
    return defined, frozenset(n.id for n in module.nodes(ast.Name) if isinstance(n.ctx, ast.Store))
