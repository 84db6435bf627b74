"""Classes of the project below a data set of a package that loads its files down: `class Tiles(EuroSAT)`."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project


def is_heir_that_fetches(project: Project, module: SourceModule, call: ast.Call, packages: tuple[str, ...]) -> bool:
    """True where `call` makes an object of such a class, and its constructors hand `download` on to the package."""
    name = dotted(call.func)
    site = find_class(project, module, name) if last(name)[:1].isupper() else None
    if site is None:
        return False
    facts = class_facts(project, site.module, site.node)
    if len(facts.external) != 1 or facts.unresolved or not facts.external[0].startswith(packages):
        return False
    own = [s.methods()["__init__"] for s in facts.lineage if "__init__" in s.methods()]
    return all(map(_hands_on, own))


def _hands_on(constructor: FunctionNode) -> bool:
    """`super().__init__(root, download=download)`, for a parameter of that name; `**kwargs` holds it, where there is none."""
    args = constructor.args
    named = any(a.arg == "download" for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
    rest = args.kwarg.arg if args.kwarg is not None else ""
    wanted = "download" if named else rest
    for node in walk_scope(constructor):
        if wanted and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            given = (*node.args, *(k.value for k in node.keywords if k.arg in (None, "download")))
            if any(isinstance(g, ast.Name) and g.id == wanted for g in given):
                return True
    return False
