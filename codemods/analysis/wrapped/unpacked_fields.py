"""Fields of `self` that are taken out of what one call gives: `self.net, self.loader = accelerator.prepare(net, loader)`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, once_a_module, stands_above, walk


def unpacked_from(module: SourceModule, node: ast.Attribute) -> ast.Call | None:
    """The call that the field holds a part of at its place; None where the field may be read before, or is bound below it again.

    Another method comes behind a constructor, but for what that calls above the call; other methods are in no order.
    """
    owner, here, name = module.class_of(node), module.function_of(node), dotted(node)
    made = _unpacked(module).get((id(owner), name), []) if owner is not None else []
    above = [c for c in made if module.function_of(c) is here and stands_above(module.statement_of(c), node)]
    if owner is None or here is None or not made:
        return None
    call = (above or made)[-1]
    home = module.function_of(call)
    if home is None or any(stands_above(module.statement_of(call), s) for s in _stores(home, name) if s is not node):
        return None
    if home is here:
        return call if above else None
    if home.name != "__init__" or name in _bound_in_others(module, owner, home):
        return None
    return None if here.name in _called_above(module, owner, home, call) else call


@once_a_module
def _unpacked(module: SourceModule) -> dict[tuple[int, str], list[ast.Call]]:
    """(class, field) -> the calls that it is a part of."""
    found: dict[tuple[int, str], list[ast.Call]] = {}
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(assign.value, ast.Call):
            for element in target.elts:
                if isinstance(element, ast.Attribute) and dotted(element) == f"self.{element.attr}":
                    found.setdefault((id(module.class_of(assign)), dotted(element)), []).append(assign.value)
    return found


def _stores(function: FunctionNode, name: str) -> list[ast.Attribute]:
    return [n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and dotted(n) == name]


def _bound_in_others(module: SourceModule, owner: ast.ClassDef, home: FunctionNode) -> set[str]:
    """The fields that other methods of the class bind: which of them comes last is not seen."""
    nodes = (n for f in module.methods_of(owner).values() if f is not home for n in walk(f) if isinstance(n, ast.Attribute))
    return {dotted(n) for n in nodes if isinstance(n.ctx, ast.Store)}


def _called_above(module: SourceModule, owner: ast.ClassDef, home: FunctionNode, call: ast.Call) -> set[str]:
    """The methods that run before the call: those that the function calls above it, and those that they call."""
    methods = module.methods_of(owner)
    above = [n for n in walk(home) if isinstance(n, ast.Attribute) and stands_above(n, call)]
    found: set[str] = set()
    waiting = [n.attr for n in above if dotted(n) == f"self.{n.attr}"]
    while waiting:
        name = waiting.pop()
        if name in methods and name not in found:
            found.add(name)
            waiting += [n.attr for n in walk(methods[name]) if isinstance(n, ast.Attribute) and dotted(n) == f"self.{n.attr}"]
    return found
