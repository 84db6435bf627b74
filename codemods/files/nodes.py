"""The nodes of a syntax tree: what stands below one, in the order of the source, and which of two comes first."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_LEAVES = frozenset({"ctx", "id", "attr", "arg", "n", "s", "kind", "type_comment", "level", "lineno", "op", "ops", "is_async"})
_CHILDLESS = (ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.MatchSingleton)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)  # `name` is a text


def _node_fields(cls: type[ast.AST]) -> tuple[str, ...]:
    """The fields that can hold nodes: those that hold texts and numbers are half of all, and asked for in vain."""
    if issubclass(cls, _CHILDLESS):
        return ()
    texts = _LEAVES | {"name"} if issubclass(cls, _NAMED) else _LEAVES
    texts = texts | {"module"} if issubclass(cls, ast.ImportFrom) else texts
    return tuple(f for f in cls._fields if f not in texts)


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


# What nine of ten nodes are, each in one expression: reading their fields by name takes three times as long.
_SHORT: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Attribute: lambda n: [n.value],
    ast.Call: lambda n: [n.func, *n.args, *n.keywords],
    ast.Expr: lambda n: [n.value],
    ast.keyword: lambda n: [n.value],
    ast.Starred: lambda n: [n.value],
    ast.Assign: lambda n: [*n.targets, n.value],
    ast.Subscript: lambda n: [n.value, n.slice],
    ast.BinOp: lambda n: [n.left, n.right],
    ast.UnaryOp: lambda n: [n.operand],
    ast.BoolOp: lambda n: n.values[:],
    ast.Compare: lambda n: [n.left, *n.comparators],
    ast.Tuple: lambda n: n.elts[:],
    ast.List: lambda n: n.elts[:],
    ast.JoinedStr: lambda n: n.values[:],
    ast.arg: lambda n: [n.annotation] if n.annotation is not None else [],
    ast.Return: lambda n: [n.value] if n.value is not None else [],
    ast.If: lambda n: [n.test, *n.body, *n.orelse],
    ast.For: lambda n: [n.target, n.iter, *n.body, *n.orelse],
    ast.With: lambda n: [*n.items, *n.body],
    ast.IfExp: lambda n: [n.test, n.body, n.orelse],
    ast.ListComp: lambda n: [n.elt, *n.generators],
    ast.comprehension: lambda n: [n.target, n.iter, *n.ifs],
    ast.FormattedValue: lambda n: [n.value, n.format_spec] if n.format_spec is not None else [n.value],
    ast.arguments: lambda n: [
        *n.posonlyargs, *n.args, *([n.vararg] if n.vararg else ()), *n.kwonlyargs, *filter(None, n.kw_defaults),
        *([n.kwarg] if n.kwarg else ()), *n.defaults,
    ],
    **dict.fromkeys(_CHILDLESS, lambda n: []),
}


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The direct children in source order of their fields, without operators and contexts."""
    short = _SHORT.get(node.__class__)
    return short(node) if short is not None else _children(node)


def _children(node: ast.AST) -> list[ast.AST]:
    cls = node.__class__
    fields = _FIELDS.get(cls)
    if fields is None:
        fields = _FIELDS[cls] = _node_fields(cls)
    out: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            if value:
                out += value if isinstance(value[0], ast.stmt) else [v for v in value if isinstance(v, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            out.append(value)
    return out


_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})


def line_of(node: ast.AST) -> int:
    """The line in which a statement, an expression or anything else that has a place begins."""
    line: int = getattr(node, "lineno", 0)
    return line


def called_name(call: ast.Call) -> str:
    """The last name of what is called: `append` for `rows[0].append(x)`; "" where that is no name."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def stands_above(one: ast.AST, other: ast.AST) -> bool:
    """True where `one` begins in an earlier line than `other`, or ends before it in the same line (`a(); b()`)."""
    first, then = line_of(one), line_of(other)
    if first != then:
        return first < then
    return ends_above(one, other)


def ends_above(one: ast.AST, other: ast.AST) -> bool:
    """True where `one` ends before `other` begins."""
    ends = getattr(one, "end_lineno", 0), getattr(one, "end_col_offset", 0)
    return ends <= (line_of(other), getattr(other, "col_offset", 0))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below and including `node`, parents first, in source order; iterative, so depth does not matter."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        short = _SHORT.get(top.__class__)
        children = short(top) if short is not None else _children(top)
        if children:
            children.reverse()
            stack += children


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Like `walk`, but does not enter functions, lambdas and classes below `node`."""
    stack = child_nodes(node)[::-1]
    while stack:
        top = stack.pop()
        yield top
        if (cls := top.__class__) not in _SCOPES:
            short = _SHORT.get(cls)
            children = short(top) if short is not None else _children(top)
            if children:
                children.reverse()
                stack += children


def walk_block(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements and what stands in them, without what the functions and classes among them hold."""
    for statement in statements:
        yield statement
        if statement.__class__ not in _SCOPES:
            yield from walk_scope(statement)


def parents_and_kinds(tree: ast.Module) -> tuple[dict[ast.AST, ast.AST], defaultdict[type[ast.AST], list[ast.AST]]]:
    """(each node's parent, the nodes of each class in source order), in one walk."""
    parents: dict[ast.AST, ast.AST] = {}
    kinds: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    stack: list[ast.AST] = [tree]
    pop, short_of, childless = stack.pop, _SHORT.get, frozenset(_CHILDLESS)
    while stack:
        node = pop()
        cls = node.__class__
        kinds[cls].append(node)
        if cls in childless:
            continue
        short = short_of(cls)
        children = short(node) if short is not None else _children(node)
        if children:
            for child in children:
                parents[child] = node
            children.reverse()
            stack += children
    return parents, kinds
