"""Functions inside of functions that nothing names: their registration is gone, say, and no run comes into them."""

from __future__ import annotations

import ast

from codemods.files.source import FunctionNode, SourceModule, walk

# What finds a name of the function round it without naming it.
_FIND_BY_TEXT = frozenset({"locals", "eval", "exec"})


def is_never_named(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function without decorators inside of another one, which that one, all that is in it included, never names.

    Its own body may name it: only who runs it comes there.
    """
    outer = module.function_of(function)
    if outer is None or function.decorator_list or isinstance(module.parent(function), ast.ClassDef):
        return False
    inside = {id(n) for n in walk(function)}
    for node in walk(outer):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            if function.name in node.names:
                return False  # it belongs to another scope
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside:
            if node.id == function.name or node.id in _FIND_BY_TEXT or _asks_for_own_names(module, node):
                return False
    return True


def _asks_for_own_names(module: SourceModule, name: ast.Name) -> bool:
    """True for `vars()`; `vars(args)` gives what an object holds."""
    call = module.parent(name)
    return name.id == "vars" and not (isinstance(call, ast.Call) and call.func is name and call.args)


def is_in_a_function_never_named(module: SourceModule, node: ast.AST) -> bool:
    """True where the function round a place, or one further out, is such a one."""
    function = module.function_of(node)
    while function is not None:
        if is_never_named(module, function):
            return True
        function = module.function_of(function)
    return False
