"""Fields that a constructor makes of its keywords: `for key in kwargs: setattr(self, key, …)`, `vars(self).update(kwargs)`."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import has_parameter
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.store.project import Project

_MOST_FILES = 8  # a keyword of more files than this belongs to more than these objects


def keyword_values(project: Project | None, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, ast.expr]]:
    """What the objects of the class round `self.main` may be given for it as a keyword, where the class sets what it is given."""
    owner = module.class_of(node) if dotted(node.value) == "self" else None
    if project is None or owner is None or not _takes_any(project, module, owner, node.attr):
        return []
    return project.memo(("keyword fields", node.attr), lambda: _given(project, node.attr))


def _takes_any(project: Project, module: SourceModule, owner: ast.ClassDef, name: str) -> bool:
    found = class_facts(project, module, owner).method("__init__")
    if found is None or has_parameter(found[1], name):
        return False
    return id(found[1]) in _sets_its_keywords(found[0].module)


@once_a_module
def _sets_its_keywords(module: SourceModule) -> frozenset[int]:
    """The constructors of the file that make a field of each keyword, by id."""
    if not any(module.holds(word) for word in (b"setattr", b"__dict__", b"vars(")):
        return frozenset()
    made = [f for f in module.functions if f.name == "__init__" and f.args.kwarg is not None]
    return frozenset(id(f) for f in made if any(_stores(n, f) for n in walk(f)))


def _stores(node: ast.AST, function: FunctionNode) -> bool:
    assert function.args.kwarg is not None
    keywords = function.args.kwarg.arg
    if isinstance(node, ast.For) and keywords in (n.id for n in walk(node.iter) if isinstance(n, ast.Name)):
        return any(_sets(call) for call in walk(node) if isinstance(call, ast.Call))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "update":
        return False
    holder = node.func.value
    own = dotted(holder) == "self.__dict__" or (isinstance(holder, ast.Call) and ast.unparse(holder) == "vars(self)")
    given = [*node.args, *(k.value for k in node.keywords if k.arg is None)]
    return own and any(dotted(a) == keywords for a in given)


def _sets(call: ast.Call) -> bool:
    """`setattr(self, key, …)`, the name being what the loop gives."""
    named = dotted(call.func) == "setattr" and len(call.args) == 3 and dotted(call.args[0]) == "self"
    return named and isinstance(call.args[1], ast.Name)


def _given(project: Project, name: str) -> list[tuple[SourceModule, ast.expr]]:
    paths = {p for written in (f"{name}=", f"{name} =") for p in project.files_containing(written.encode())}
    paths = {p for p in paths if p.endswith(".py") and not is_test_file(p)}
    found: list[tuple[SourceModule, ast.expr]] = []
    for module in (m for p in sorted(paths) if (m := project.module(p)) is not None):
        calls = ((c, k) for c in module.nodes(ast.Call) for k in c.keywords if k.arg == name)
        found += [(module, k.value) for c, k in calls if _may_make(project, module, c, name)]
    return found if len({m.path for m, _ in found}) <= _MOST_FILES else []


def _may_make(project: Project, module: SourceModule, call: ast.Call, name: str) -> bool:
    """False where the call leads to something else: a function, a class that names the parameter, a package."""
    called = dotted(call.func)
    root = called.partition(".")[0]
    if not called:
        return False
    if made := find_class(project, module, called):
        return _takes_any(project, made.module, made.node, name)
    return "." not in called and root not in module.imports and called_function(project, module, call) is None
