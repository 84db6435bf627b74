"""Names of a file that one of its functions binds (`global model`): from which line of that function on do others read them?"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.bindings import Binding
from codemods.files.source import FunctionNode, SourceModule, line_of


def binding_function(module: SourceModule, bound: Sequence[Binding]) -> FunctionNode | None:
    """The one function that binds a name of the file; None where none does, or several do."""
    homes = {id(f): f for b in bound if not b.parameter and (f := module.function_of(b.node)) is not None}
    return next(iter(homes.values())) if len(homes) == 1 else None


def first_come_to(module: SourceModule, function: FunctionNode, home: FunctionNode) -> int:
    """The line of `home` from which one first comes to `function`, over functions of the file; 0 where others may come there."""
    ways = _ways_to(module, function, home)
    if ways is None:
        return 0
    calls = (c for name in ways for c in module.calls_named(name) if module.function_of(c) is home)
    return min((line_of(c) for c in calls), default=0)


def _ways_to(module: SourceModule, function: FunctionNode, home: FunctionNode) -> set[str] | None:
    """The functions of the file by which `home` comes to one, and itself; None where something else may call one of them."""
    found: set[str] = set()
    edge = [function]
    while edge:
        one = edge.pop()
        if one.name in found:
            continue
        found.add(one.name)
        if one.decorator_list or module.parent(one) is not module.tree:
            return None
        for read in module.reads_of(one.name):
            if not isinstance(read, ast.Name):
                continue  # `model.keep`: a method of that name
            above, caller = module.parent(read), module.function_of(read)
            if not isinstance(above, ast.Call) or above.func is not read or caller is None:
                return None
            if caller is not home:
                edge.append(caller)
    return found
