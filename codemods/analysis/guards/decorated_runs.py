"""Which functions does a decorator of the project run? `@cli` over `main`, where its inner function calls what it was given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_MOST_FILES = 40


def run_by_decorator(project: Project, module: SourceModule, body: list[ast.stmt]) -> Iterator[FunctionSite]:
    """The functions that `body` runs, which stands in the inner function of a decorator that they carry."""
    for call in (n for s in body for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
        taker = _taker_of(module, call)
        top = _outermost(module, taker) if taker is not None else None
        if taker is None or top is None or module.function_of(call) is taker:
            continue
        yield from _decorated(project, module, top, called=taker is not top)
        return


def _taker_of(module: SourceModule, call: ast.Call) -> FunctionNode | None:
    """The function round the place whose parameter is called."""
    assert isinstance(call.func, ast.Name)
    bound = bindings_of(module, call.func)
    if len(bound) != 1 or not bound[0].parameter:
        return None
    arguments = module.parent(bound[0].node)
    taker = module.parent(arguments) if arguments is not None else None
    return taker if isinstance(taker, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _outermost(module: SourceModule, function: FunctionNode) -> FunctionNode | None:
    """The function of the file that it stands in, or itself; None in a class."""
    while (up := module.function_of(function)) is not None:
        function = up
    return function if module.class_of(function) is None else None


def _decorated(project: Project, module: SourceModule, top: FunctionNode, *, called: bool) -> Iterator[FunctionSite]:
    """The functions that carry it. called: the decorator is what a call of it gives (`@cli(Config)`)."""
    paths = sorted(p for p in project.files_containing(f"@{top.name}".encode()) if not is_test_file(p))
    paths += sorted(p for p in project.files_containing(f".{top.name}".encode()) if p not in paths and not is_test_file(p))
    for path in paths[:_MOST_FILES]:
        other = project.module(path)
        for function in other.functions if other is not None else ():
            for decorator in function.decorator_list:
                inner = decorator.func if isinstance(decorator, ast.Call) else decorator
                if other is None or isinstance(decorator, ast.Call) is not called or dotted(inner).rpartition(".")[2] != top.name:
                    continue
                site = find_function(project, other, dotted(inner))
                if site is not None and site.node is top and site.module is module:
                    yield FunctionSite(other, function)
