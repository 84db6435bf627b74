"""What signal handlers set: each process gets a signal on its own, and at a time of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk


def handlers(module: SourceModule) -> frozenset[str]:
    """The names of the functions that `signal.signal` is handed."""
    return frozenset(last(dotted(c.args[1])) for c in module.calls_named("signal") if len(c.args) == 2)


def set_in_file(module: SourceModule) -> frozenset[str]:
    """The names and entries (`flag["stop"]`) that a signal handler of the file sets."""
    if b"signal" not in module.data:
        return frozenset()
    found: set[str] = set()
    names = handlers(module)
    for function in (f for f in module.functions if f.name in names):
        outer = {name for n in walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        for assign in (n for n in walk(function) if isinstance(n, ast.Assign)):
            for target in assign.targets:
                if isinstance(target, ast.Name) and target.id in outer:
                    found.add(target.id)
                elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    found.add(f"{dotted(target.value)}[{target.slice.value!r}]")
                elif isinstance(target, ast.Attribute) and not dotted(target).startswith("self."):
                    found.add(dotted(target))
    return frozenset(found)


def set_in_class(site: ClassSite) -> frozenset[str]:
    """The fields that a signal handler of the class sets: a method, or a function inside of one."""
    names = handlers(site.module)
    found: set[str] = set()
    for function in _functions(site) if names else ():
        if function.name in names:
            targets = (t for n in walk(function) if isinstance(n, ast.Assign) for t in n.targets)
            found |= {t.attr for t in targets if isinstance(t, ast.Attribute) and dotted(t.value) == "self"}
    return frozenset(found)


def _functions(site: ClassSite) -> Iterator[FunctionNode]:
    for method in site.methods().values():
        yield from (n for n in walk(method) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))


def is_set_by_handler(module: SourceModule, value: ast.expr) -> bool:
    """True for a value that a signal handler of the file gives to something."""
    function = module.function_of(value)
    return function is not None and function.name in handlers(module)
