"""`correct[:k].view(-1)` of hits that stand in columns: since torch 1.7 it raises wherever k is more than one.

`topk(…)` is turned by `.t()`, and since 1.7 `eq` keeps that order in memory (pytorch/examples issue 836; measured on torch 2.13:
"view size is not compatible with input tensor's size and stride" for k = 5, and none for k = 1).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.store.project import Project

WORD = b"].view(-1)"


def flat_views(project: Project, module: SourceModule, program: frozenset[str]) -> Iterator[int]:
    """The lines of such views, in functions that a file of the program calls with more than one k. program: its paths."""
    for line, function, name in _views(module):
        handed = any(home.path in program and _has_more(given) for home, given in arguments(project, module, function, name))
        if handed or (_has_more(_default(function, name)) and _is_called(project, program, function)):
            yield line


@once_a_module
def _views(module: SourceModule) -> tuple[tuple[int, FunctionNode, str], ...]:
    """(line, function, its parameter with the k's)."""
    found: list[tuple[int, FunctionNode, str]] = []
    for call in module.calls_named("view"):
        part = call.func.value if isinstance(call.func, ast.Attribute) else None
        function = module.function_of(call)
        if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Slice) or function is None:
            continue
        if module.text_of(call).endswith(".view(-1)") and _is_turned(module, part.value):
            name = _looped_over(module, function, part.slice.upper)
            if name:
                found.append((call.lineno, function, name))
    return tuple(found)


def _is_turned(module: SourceModule, hits: ast.expr) -> bool:
    """True for a name that is bound to `predicted.eq(…)` alone, and `predicted` last to something's `.t()`."""
    bound = bindings_of(module, hits) if isinstance(hits, ast.Name) else []
    for binding in bound:
        made = binding.value
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr != "eq":
            return False
        held = made.func.value
        values = [b.value for b in bindings_of(module, held)] if isinstance(held, ast.Name) else [held]
        if not any(isinstance(v, ast.Call) and last(dotted(v.func)) == "t" for v in values):
            return False
    return bool(bound)


def _looped_over(module: SourceModule, function: FunctionNode, upper: ast.expr | None) -> str:
    """The parameter that `k` of `[:k]` runs over, "" where it is anything else."""
    parameters = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    for up in module.ancestors(upper) if isinstance(upper, ast.Name) else ():
        loops = [up] if isinstance(up, ast.For) else getattr(up, "generators", [])
        for loop in loops:
            named = isinstance(loop.target, ast.Name) and isinstance(upper, ast.Name) and loop.target.id == upper.id
            if named and isinstance(loop.iter, ast.Name) and loop.iter.id in parameters:
                return str(loop.iter.id)
    return ""


def _default(function: FunctionNode, name: str) -> ast.expr | None:
    plain = [*function.args.posonlyargs, *function.args.args]
    given = zip(reversed(plain), reversed(function.args.defaults), strict=False)
    return next((value for parameter, value in given if parameter.arg == name), None)


def _is_called(project: Project, program: frozenset[str], function: FunctionNode) -> bool:
    """True where a file of the program calls something of the function's name outside of it."""
    word = function.name.encode()
    modules = (project.module(path) for path in sorted(program) if word in (project.read(path) or b""))
    calls = ((m, call) for m in modules if m is not None for call in m.calls_named(function.name))
    return any(m.function_of(call) is not function for m, call in calls)


def _has_more(given: ast.expr | None) -> bool:
    parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else []
    return any(isinstance(p, ast.Constant) and isinstance(p.value, int) and p.value > 1 for p in parts)
