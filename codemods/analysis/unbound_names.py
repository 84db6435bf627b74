"""Names that a file reads and nothing in it binds: the read ends with NameError."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from codemods.files.source import SourceModule, child_nodes, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy

_OF_MODULES = frozenset({"__file__", "__path__", "__builtins__", "__annotations__", "__class__", "__spec__", "__loader__",
                         "__package__", "__doc__", "__name__", "__debug__"})  # fmt: skip
_OF_SITE = frozenset({"exit", "quit", "copyright", "credits", "license", "_", "profile", "display", "get_ipython", "reveal_type"})
_OF_PYTHON_2 = frozenset({"unicode", "xrange", "raw_input", "basestring", "long", "reduce", "unichr", "file", "cmp", "reload",
                          "execfile", "WindowsError"})  # fmt: skip
_KNOWN = frozenset(dir(builtins)) | _OF_MODULES | _OF_SITE | _OF_PYTHON_2
# What gives names in a way that is not read here.
# `builtins.print = quiet` gives no name that is not there anyway.
_GIVEN_OTHERWISE = lazy(
    rb"\b(?:globals|locals|vars|dir)\(\)|exec\(|__builtin__|sys\.modules\[__name__"
    rb"|builtins\.(?!(?:" + "|".join(dir(builtins)).encode() + rb")\b)"
)
# Most nodes of a function.
_BINDING_NOTHING = frozenset({ast.Attribute, ast.Constant, ast.Call, ast.keyword, ast.Expr, ast.Assign, ast.If, ast.Return,
                              ast.Subscript, ast.BinOp, ast.Compare, ast.Tuple, ast.List, ast.Slice, ast.UnaryOp})  # fmt: skip


@once_a_module
def unbound(module: SourceModule) -> frozenset[str]:
    """The names that a file reads and binds nowhere, in no scope of it."""
    if given_otherwise(module):
        return frozenset()
    read: set[str] = set()
    bound: set[str] = set()
    for node in walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        else:
            bound.update(names_bound_by(node))
    return frozenset() if "*" in bound else frozenset(read - bound - _KNOWN)


def is_unbound(module: SourceModule, name: ast.Name) -> bool:
    """True for a read whose name neither the file binds outside of its functions, nor the outermost function round it within.

    A name of another function's own is none here. What a class binds counts for its methods, though they do not see it.
    """
    outside = _names_outside(module)
    if name.id in outside or name.id in _KNOWN or "*" in outside or given_otherwise(module):
        return False
    outermost = _outermost(module, name)
    return outermost is None or name.id not in _names_within(module)[outermost]


@once_a_module
def given_otherwise(module: SourceModule) -> bool:
    """True for a file that may get names in a way that is not read here: `globals()`, `exec`."""
    return _GIVEN_OTHERWISE.search(module.data) is not None


def _outermost(module: SourceModule, node: ast.AST) -> ast.AST | None:
    found = None
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = up
    return found


@once_a_module
def _names_outside(module: SourceModule) -> frozenset[str]:
    return names_outside(module, tuple(module.tree.body))


def names_outside(module: SourceModule, statements: tuple[ast.stmt, ...]) -> frozenset[str]:
    """The names that these statements bind outside of functions, and those that functions of the file say are global."""
    bound: set[str] = set()
    left: list[ast.AST] = [*statements]
    while left:
        node = left.pop()
        bound.update(names_bound_by(node))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            left.extend(child_nodes(node))
    bound.update(n for node in module.nodes(ast.Global) for n in node.names)
    return frozenset(bound)


@once_a_module
def _names_within(module: SourceModule) -> dict[ast.AST, frozenset[str]]:
    outer = [f for f in module.functions if _outermost(module, f) is None]
    binding = {f: (node for node in walk(f) if type(node) not in _BINDING_NOTHING) for f in outer}
    return {f: frozenset(name for node in nodes for name in names_bound_by(node)) for f, nodes in binding.items()}


def names_bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a node binds itself, without what stands in it."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    else:
        for part in ("name", "rest"):  # of an `except`, of what `match` takes, of a type parameter
            if isinstance(held := getattr(node, part, None), str):
                yield held
