"""Does the program of a seed come to a place: does it make an object of the class that holds it, and train that?

A script may import a file for one name of it: what the other classes there do is no part of its run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts, local_class
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.model.wrapped_model import model_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.looked_up import is_looked_up
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEPTH = 4
_MOST = 12
_BY_TEXT = frozenset({"instantiate", "get_class", "import_module", "getattr", "globals"})


def is_run_in_program(project: Project, module: SourceModule, node: ast.AST, seed: CallSite) -> bool:
    """False where the class that holds the place is made elsewhere alone, or where the model that is fitted there is another."""
    return _is_run(project, module, node, seed.module, _DEPTH) and not _fits_another(project, module, node, seed)


def _is_run(project: Project, module: SourceModule, node: ast.AST, start: SourceModule, depth: int) -> bool:
    """True, too, where it is not seen who makes the object, or calls the function."""
    if not same_program(project, module.path, start.path):
        return False
    if module is start or depth == 0:
        return True
    made = _made_at(project, module, node)
    return made is None or any(_is_run(project, s.module, s.call, start, depth - 1) for s in made)


def _made_at(project: Project, module: SourceModule, node: ast.AST) -> tuple[CallSite, ...] | None:
    """Every call that leads to the function of a place, or makes an object of its class; None where that is not seen."""
    method, function = module.method_of(node), _outermost(module, node)
    if method is not None and module.parent(method[0]) is module.tree:
        owner = method[0]
        hidden = bool(owner.decorator_list) or is_looked_up(project, module, owner, notebooks=False)
        used = None if hidden else constructions(project, module, owner)
    elif function is not None and not function.decorator_list:
        used = uses_of(project, module, function)
    else:
        return None
    used = used.outside_tests() if used is not None else None
    if used is None or used.more or used.handed_on or not 0 < len(used.calls) <= _MOST:
        return None
    return used.calls


def _outermost(module: SourceModule, node: ast.AST) -> FunctionNode | None:
    """The function at the top of the file that holds the place; None in a class, and outside of functions."""
    below = node
    for up in module.ancestors(node):
        if up is module.tree:
            return below if isinstance(below, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        below = up
    return None


def _fits_another(project: Project, module: SourceModule, node: ast.AST, seed: CallSite) -> bool:
    """True in a method of a class that has nothing to do with the models that the function of the seed has fitted."""
    function, method = seed.module.function_of(seed.call), module.method_of(node)
    if function is None or method is None:
        return False
    fits = [n for n in walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "fit"]
    given = [f.args[0] if f.args else next((k.value for k in f.keywords if k.arg == "model"), None) for f in fits]
    if not given:
        return False
    for model in given:
        found = model_of(project, seed.module, model) if model is not None else None
        if found is None or found.unknown or found.assumed or not found.classes:
            return False
        if not all(_holds_no_other(project, site) and not _shares(project, site, module, method[0]) for site in found.classes):
            return False
    return True


def _shares(project: Project, site: ClassSite, module: SourceModule, owner: ast.ClassDef) -> bool:
    """True where one of the two classes derives from the other."""
    above = (*class_facts(project, site.module, site.node).lineage, *class_facts(project, module, owner).lineage)
    own, other = (len([s for s in above if s.node is node]) for node in (site.node, owner))
    return own > 1 or other > 1 or site.node is owner


def _holds_no_other(project: Project, site: ClassSite) -> bool:
    """True where the class takes nothing, and neither it nor those above it name anything else of the project."""
    facts = class_facts(project, site.module, site.node)
    return not facts.opaque and all(
        _takes_nothing(s) and not any(_is_of_project(project, s, n) for n in _named(s)) for s in facts.lineage
    )


def _takes_nothing(site: ClassSite) -> bool:
    init = site.module.methods_of(site.node).get("__init__")
    if init is None:
        return True
    given = init.args
    return len(given.posonlyargs) + len(given.args) == 1 and not (given.kwonlyargs or given.vararg or given.kwarg)


def _named(site: ClassSite) -> Iterator[ast.Name]:
    for statement in site.node.body:
        yield from (n for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _is_of_project(project: Project, site: ClassSite, name: ast.Name) -> bool:
    module = site.module
    called = module.parent(name)
    if name.id in _BY_TEXT or (isinstance(called, ast.Attribute) and last(dotted(called)) in _BY_TEXT):
        return True
    if local_class(module, name.id) is not None or any(f.name == name.id and f in module.tree.body for f in module.functions):
        return True
    return any(project.resolve(i.dotted, module.path) is not None for i in module.imports.get(name.id, ()))
