"""Objects of the project's classes that a function makes itself: which of their methods have run where a field of one is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.analysis.positions import above
from codemods.analysis.wrapped.method_order import comes_to
from codemods.analysis.wrapped.near_wraps import getters, near_wraps
from codemods.analysis.wrapped.wrap_files import wrapping
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class MadeObject:
    """facts: the class that is called. begun: the methods of it that have run, its constructor among them."""

    facts: ClassFacts
    begun: tuple[FunctionNode, ...]

    def has_run(self, function: FunctionNode) -> bool:
        return any(comes_to(self.facts, start, function) for start in self.begun)


def made_object(project: Project, module: SourceModule, field: ast.Attribute) -> MadeObject | None:
    """The object of `task.net` or `self.task.net`, where the function makes it and nothing here gives the field a value."""
    holder = dotted(field.value)
    if not holder or holder == "self" or holder.count(".") > 1 or (holder.count(".") and not holder.startswith("self.")):
        return None
    before = list(_passed(module, field))
    made = [s for s in before if isinstance(s, ast.Assign) and [dotted(t) for t in s.targets] == [holder]]
    call = made[0].value if len(made) == 1 else None
    if not isinstance(call, ast.Call) or not dotted(call.func) or not _is_given_once(project, module, field.value):
        return None
    site = find_class(project, module, dotted(call.func))
    if site is None or any(_is_set_here(n, dotted(field)) for n in module.nodes(ast.Attribute)):
        return None
    facts = class_facts(project, site.module, site.node)
    calls = (c for s in before if s.lineno > made[0].lineno for c in _called(s))
    names = ["__init__", *(c.func.attr for c in calls if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == holder)]
    methods = (facts.method(name) for name in names)
    return MadeObject(facts, tuple(m[1] for m in methods if m is not None))


def _passed(module: SourceModule, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of the function that every way to the node has passed, as far as the blocks round it show them."""
    for up in (module.statement_of(node), *module.ancestors(module.statement_of(node))):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        yield from above(module, up)


def _called(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a plain statement, which a test does not keep it from."""
    if isinstance(statement, (ast.Expr, ast.Assign)):
        yield from (n for n in walk(statement) if isinstance(n, ast.Call))


def _is_given_once(project: Project, module: SourceModule, holder: ast.expr) -> bool:
    if isinstance(holder, ast.Name):
        return len(bindings_of(module, holder)) == 1
    owner = module.class_of(holder)
    if owner is None or not isinstance(holder, ast.Attribute):
        return False
    return len(class_values(project, class_facts(project, module, owner)).given.get(holder.attr, ())) == 1


def _is_set_here(node: ast.Attribute, field: str) -> bool:
    return not isinstance(node.ctx, ast.Load) and dotted(node) == field


def may_hold_wrapper(project: Project, path: str) -> bool:
    """True for a file near a wrap, and for one that makes an object of a class whose file wraps, or gets a wrapper."""
    return path in near_wraps(project) or path in project.keep("makers of what wraps", lambda: frozenset(_makers(project)))


def _makers(project: Project) -> Iterator[str]:
    paths = {m.path for m in wrapping(project)} | {p for w in getters(project) for p in project.files_calling(w)}
    for path in sorted(paths):
        module = None if is_test_file(path) else project.module(path)
        for node in module.nodes(ast.ClassDef) if module is not None else ():
            yield from project.files_calling(node.name)
