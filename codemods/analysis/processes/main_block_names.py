"""Names that only the block under `__main__` binds: a spawned process imports the file, and does not run that block."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import is_parameter
from codemods.analysis.processes.starts import Start, reached_by
from codemods.analysis.unbound_names import given_otherwise, names_bound_by, names_outside
from codemods.files.source import SourceModule, child_nodes, once_a_module, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_CATCHING = ("NameError", "Exception", "BaseException")
_BUILTINS = frozenset(dir(builtins))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@record
class MissingName:
    """name: a read by a worker. others: the lines of further reads. bound: the block that binds it."""

    name: ast.Name
    others: tuple[int, ...]
    bound: ast.If


def names_of_main_block(project: Project, module: SourceModule, start: Start) -> Iterator[MissingName]:
    """What the workers read of the block under `__main__` of the file that starts them."""
    bound = _bound_by_main_block(module)
    if not bound or start.worker.module is not module:
        return
    reads: dict[str, list[ast.Name]] = {}
    for site in reached_by(project, start.worker):
        for node in walk(site.node) if site.module is module else ():
            if isinstance(node, ast.Name) and node.id in bound and _is_read_of_file(module, node):
                reads.setdefault(node.id, []).append(node)
    for word, names in reads.items():
        first = min(names, key=lambda n: (n.lineno, n.col_offset))
        yield MissingName(first, tuple(sorted({n.lineno for n in names} - {first.lineno})), bound[word])


def _is_read_of_file(module: SourceModule, name: ast.Name) -> bool:
    if not isinstance(name.ctx, ast.Load) or is_parameter(module, name.id, name) or _is_annotation(module, name):
        return False
    if any(module.function_of(b.node) is not None for b in bindings_of(module, name)) or _is_local(module, name):
        return False
    return handler_over(module, name, _CATCHING) is None


def _is_annotation(module: SourceModule, name: ast.Name) -> bool:
    """True for what a local annotation names, which is not looked up, and for those of parameters and results."""
    below: ast.AST = name
    for up in module.ancestors(name):
        if isinstance(up, ast.arg) or (isinstance(up, ast.AnnAssign) and below is up.annotation):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return below is up.returns
        below = up
    return False


def _is_local(module: SourceModule, name: ast.Name) -> bool:
    """True where a function round the read binds the name in any way: an import, an inner function, a comprehension."""
    function = module.function_of(name)
    while function is not None:
        if any(name.id in names_bound_by(n) for n in walk(function) if n is not function):
            return True
        function = module.function_of(function)
    return False


@once_a_module
def _bound_by_main_block(module: SourceModule) -> dict[str, ast.If]:
    """Name -> the block, for what nothing else in the file binds outside of functions."""
    blocks = [s for s in module.tree.body if _is_main_block(s)]
    if not blocks or given_otherwise(module) or module.holds(b"__mp_main__"):
        return {}
    inside: dict[str, ast.If] = {}
    for block in blocks:
        assert isinstance(block, ast.If)
        for statement in block.body:
            inside |= dict.fromkeys(_names_of(statement), block)
    elsewhere = names_outside(module, tuple(s for s in module.tree.body if s not in blocks))
    elsewhere |= frozenset(n for b in blocks if isinstance(b, ast.If) for s in b.orelse for n in _names_of(s))
    elsewhere |= _BUILTINS
    return {} if "*" in inside or "*" in elsewhere else {n: b for n, b in inside.items() if n not in elsewhere}


def _names_of(statement: ast.stmt) -> Iterator[str]:
    return (name for node in _outside_of_functions(statement) for name in names_bound_by(node))


def _is_main_block(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(test := node.test, ast.Compare) or len(test.ops) != 1:
        return False
    words = {n.id if isinstance(n, ast.Name) else n.value for n in (test.left, test.comparators[0])
             if isinstance(n, (ast.Name, ast.Constant))}  # fmt: skip
    return isinstance(test.ops[0], ast.Eq) and words == {"__name__", "__main__"}


def _outside_of_functions(statement: ast.stmt) -> Iterator[ast.AST]:
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, _COMPREHENSIONS):
            continue
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            left.extend(child_nodes(node))
