"""Where a name is bound, and whether every way to a use of it goes past that place."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.wraps import is_prepare, is_wrap, without_moves
from codemods.files.source import FunctionNode, SourceModule, line_of, walk


def is_alike(module: SourceModule, value: ast.expr | None, name: str) -> bool:
    """True for another wrap of a kind that has no attributes of the model, and for the model itself, moved or not."""
    if value is None:
        return False
    value = without_moves(value)
    return dotted(value) == name or is_wrap(module, value) or is_prepare(module, value) or is_data_parallel(module, value)


def is_data_parallel(module: SourceModule, value: ast.expr) -> bool:
    """True for the wrapper of one process with several GPUs, which has no attributes of the model either."""
    return isinstance(value, ast.Call) and last(qualified(module, value.func)) == "DataParallel"


def is_parallel_beside_bare(module: SourceModule, value: ast.expr) -> bool:
    """True for `elif gpus > 1: model = nn.DataParallel(model)` without an `else`: one process may have the model bare."""
    statement = module.statement_of(value)
    up = module.parent(statement)
    return is_data_parallel(module, value) and isinstance(up, ast.If) and statement in up.body and not up.orelse


def comprehension_of(module: SourceModule, name: ast.Name) -> ast.comprehension | None:
    """The `for m in models` of a comprehension round the name that gives it its value."""
    for up in module.ancestors(name):
        if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            for part in up.generators:
                if any(isinstance(n, ast.Name) and n.id == name.id for n in walk(part.target)):
                    return part
        if isinstance(up, ast.stmt):
            return None
    return None


def place_in(node: ast.AST, name: str) -> int | None:
    """The index of a name in `a, b, c = value`, where nothing starred stands in front."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        for i, element in enumerate(getattr(target, "elts", ())):
            if isinstance(element, ast.Starred):
                break
            if dotted(element) == name:
                return i
    return None


def first_use(module: SourceModule, inner: FunctionNode | None, scope: FunctionNode | None) -> int:
    """The line of the scope in which a function defined there is first called; 0 where it is not called there by its name."""
    if inner is None:
        return 0
    lines = [c.lineno for c in module.calls_named(inner.name) if isinstance(c.func, ast.Name) and module.function_of(c) is scope]
    return min(lines, default=0)


def leaves(module: SourceModule, node: ast.AST, name: ast.Name) -> bool:
    """True for a binding in a block that ends with an exit, and that the name does not stand in."""
    statement = module.statement_of(node) if not isinstance(node, ast.arg) else None
    if statement is None or isinstance(module.parent(statement), ast.Module):
        return False
    block = module.block_of(statement)
    owner = module.parent(statement)
    if not isinstance(owner, (ast.If, ast.For, ast.While, ast.Try)):
        return False
    return isinstance(block[-1], (ast.Return, ast.Raise)) and not any(up is owner for up in module.ancestors(name))


def reaches(module: SourceModule, node: ast.AST, name: ast.Name) -> bool:
    """True where every way to the name goes past the binding: it stands in a block round the name, or is the loop of it."""
    if isinstance(node, ast.arg):
        return True
    statement = module.statement_of(node)
    owner = module.parent(statement)
    return isinstance(owner, (ast.Module, ast.With)) or any(up is owner for up in module.ancestors(name))


def bound_by(node: ast.AST) -> int:
    """The line behind which a binding holds: the last one of an assignment, the first one of a loop."""
    return line_of(node) if isinstance(node, (ast.For, ast.AsyncFor)) else end_of(node)


def end_of(node: ast.AST) -> int:
    end = getattr(node, "end_lineno", None)
    return end if isinstance(end, int) else line_of(node)
