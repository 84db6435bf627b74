"""Parameters, defaults and returned values of a function, and which argument of a call goes to which parameter."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule


def parameters(function: FunctionNode | ast.Lambda, *, bound: bool) -> list[ast.arg]:
    """The named parameters in order, without `self` or `cls` of a bound method."""
    args = [*function.args.posonlyargs, *function.args.args]
    return [*(args[1:] if bound else args), *function.args.kwonlyargs]


def defaults(function: FunctionNode | ast.Lambda) -> dict[str, ast.expr]:
    """Parameter -> its default."""
    positional = [*function.args.posonlyargs, *function.args.args]
    tail = positional[len(positional) - len(function.args.defaults) :]
    out = {arg.arg: value for arg, value in zip(tail, function.args.defaults, strict=True)}
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return out | {arg.arg: value for arg, value in pairs if value is not None}


def bind(function: FunctionNode | ast.Lambda, call: ast.Call, *, bound: bool) -> dict[str, ast.expr] | None:
    """Parameter -> the argument a call gives it; None where `*args` or `**kwargs` hide it."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    positional = [*function.args.posonlyargs, *function.args.args][1 if bound else 0 :]
    out = {arg.arg: value for arg, value in zip(positional, call.args, strict=False)}
    return out | {k.arg: k.value for k in call.keywords if k.arg is not None}


def is_static(function: FunctionNode) -> bool:
    return any(dotted(d) == "staticmethod" for d in function.decorator_list)


def is_bound(module: SourceModule, function: FunctionNode) -> bool:
    """True for a method whose first parameter is the object or the class."""
    return isinstance(module.parent(function), ast.ClassDef) and not is_static(function)


def returned(function: FunctionNode, module: SourceModule) -> list[ast.expr]:
    """The expressions of the function's own return statements."""
    return [r.value for r in module.nodes(ast.Return) if r.value is not None and module.function_of(r) is function]
