"""The functions of a file that print or log, themselves or by one of the same file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, once_a_module


def prints_below(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that prints or logs, or calls one of this file that does."""
    return id(function) in _printing(module) or id(function) in _calling_printers(module)


@once_a_module
def _calling_printers(module: SourceModule) -> frozenset[int]:
    """The functions within whose lines one of this file is called that prints or logs, by id."""
    called = {f.name for f in module.functions if id(f) in _printing(module)}
    lines = sorted(c.lineno for c in module.calls_named(*called))
    found = (f for f in module.functions if bisect_left(lines, f.lineno) < bisect_right(lines, f.end_lineno or f.lineno))
    return frozenset(id(f) for f in found)


@once_a_module
def _printing(module: SourceModule) -> frozenset[int]:
    """The functions that print or log themselves, by id."""
    found: set[int] = set()
    for call in module.calls_named("print", "info"):
        function = module.function_of(call) if dotted(call.func) else None
        while function is not None and id(function) not in found:
            found.add(id(function))
            function = module.function_of(function)
    return frozenset(found)
