"""Is an exception of the project raised by what all ranks have in common? `raise StopTraining` behind the last step is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts, find_class, subclasses
from codemods.analysis.distribution import is_test_module
from codemods.analysis.handlers import kinds_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A test that speaks of these most often asks the rank's own batch, memory or clock, whether that is shown or not.
_OWN = lazy(r"loss|nan\b|isinf|finite|grad|batch|memory|alloc|time|clock|signal|rank|exists|output|pred|score", 2)  # IGNORECASE


def raised_alike(project: Project, module: SourceModule, handler: ast.AST) -> bool:
    """True where a handler catches such exceptions alone: each `raise` of them is seen, and no test over it is a rank's own."""
    kinds = kinds_of(handler) if isinstance(handler, ast.ExceptHandler) else []
    classes = [find_class(project, module, dotted(kind)) if dotted(kind) else None for kind in kinds]
    return bool(classes) and all(c is not None and _is_alike(project, c) for c in classes)


def _is_alike(project: Project, site: ClassSite) -> bool:
    if class_facts(project, site.module, site.node).unresolved or subclasses(project, site):
        return False
    raises = 0
    for module, mention in _mentions(project, site.node.name):
        up = module.parent(mention)
        if isinstance(up, ast.Call) and up.func is mention:
            mention, up = up, module.parent(up)
        if isinstance(up, ast.Raise) and up.exc is mention:
            if not _is_by_common_tests(project, module, up):
                return False
            raises += 1
        elif not _is_of_a_handler(module, mention):
            return False  # it is handed on: who raises it is not seen
    return raises > 0


def _mentions(project: Project, name: str) -> Iterator[tuple[SourceModule, ast.AST]]:
    for path in project.files_containing(name.encode()):
        module = project.module(path)
        if module is None or is_test_module(module):
            continue
        for alias in (a for imported in module.nodes(ast.ImportFrom) for a in imported.names):
            if alias.name == name and alias.asname is not None:
                yield module, alias  # its other name is not followed
        yield from ((module, n) for n in module.nodes(ast.Name) if n.id == name)
        yield from ((module, n) for n in module.nodes(ast.Attribute) if n.attr == name)


def _is_of_a_handler(module: SourceModule, mention: ast.AST) -> bool:
    up = module.parent(mention)
    handler = module.parent(up) if isinstance(up, ast.Tuple) else up
    return isinstance(handler, ast.ExceptHandler)


def _is_by_common_tests(project: Project, module: SourceModule, node: ast.Raise) -> bool:
    function = module.function_of(node)
    if function is None:
        return False
    over: list[ast.If] = []
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.ExceptHandler, ast.Match, ast.While)):
            return False
        if isinstance(up, ast.If):
            over.append(up)
    above = (n for n in walk_scope(function) if isinstance(n, ast.If) and n.lineno < node.lineno)
    earlier = [n for n in above if n not in over and _leaves(n)]
    return bool(over) and all(_is_common(project, module, n.test) for n in (*over, *earlier))


def _leaves(test: ast.If) -> bool:
    return any(isinstance(n, (ast.Return, ast.Continue, ast.Break)) for n in walk(test))


def _is_common(project: Project, module: SourceModule, test: ast.expr) -> bool:
    names = (last(dotted(n)) for n in (test, *walk(test)) if isinstance(n, (ast.Name, ast.Attribute)))
    return not any(_OWN.search(name) for name in names) and not variance(project).tested(module, test).differs
