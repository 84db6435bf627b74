"""Does a test ask a function that an object, or a call, was given, and that asks for the rank?

`if not self.writes(): return`, where `__init__` has `writes=lambda: int(os.environ["LOCAL_RANK"]) == 0`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted
from codemods.analysis.output.effect_kinds import names_rank
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def asks_by_given_function(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True where one of the functions that may be asked names the rank: which ones are given there is not looked for."""
    calls = [n for n in walk(test) if isinstance(n, ast.Call) and not n.args and not n.keywords]
    return any(names_rank(home.text_of(value)) for call in calls for home, value in _given(project, module, call))


def _given(project: Project, module: SourceModule, call: ast.Call) -> Iterator[tuple[SourceModule, ast.AST]]:
    if isinstance(call.func, ast.Name):
        function = module.function_of(call)
        if function is not None:
            yield from _of_parameter(module, function, call.func.id)
        return
    owner = module.class_of(call)
    if owner is None or not isinstance(call.func, ast.Attribute) or dotted(call.func) != f"self.{call.func.attr}":
        return
    for bound in class_values(project, class_facts(project, module, owner)).given.get(call.func.attr, []):
        home = bound.site.module
        if isinstance(bound.value, ast.Name) and bound.function is not None:
            yield from _of_parameter(home, bound.function, bound.value.id)
        elif bound.value is not None:
            yield from _function_of(home, bound.value)


def _of_parameter(module: SourceModule, function: FunctionNode, name: str) -> Iterator[tuple[SourceModule, ast.AST]]:
    default = defaults(function).get(name)
    if default is not None:
        yield from _function_of(module, default)


def _function_of(module: SourceModule, value: ast.expr) -> Iterator[tuple[SourceModule, ast.AST]]:
    """A lambda, or a function of the file by its name."""
    if isinstance(value, ast.Lambda):
        yield module, value
    elif isinstance(value, ast.Name):
        yield from ((module, f) for f in module.functions if f.name == value.id and module.parent(f) is module.tree)
