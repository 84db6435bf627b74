"""Parameters, defaults and returned values of a function; which argument of a call goes to which parameter, and do all fit?"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule


def parameters(function: FunctionNode | ast.Lambda, *, bound: bool) -> list[ast.arg]:
    """The named parameters in order, without `self` or `cls` of a bound method."""
    args = [*function.args.posonlyargs, *function.args.args]
    return [*(args[1:] if bound else args), *function.args.kwonlyargs]


def has_parameter(function: FunctionNode | ast.Lambda, name: str) -> bool:
    return any(p.arg == name for p in parameters(function, bound=False))


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


def takes(function: FunctionNode, call: ast.Call, *, bound: bool) -> bool:
    """True where the arguments fit, or where `*args` and `**kwargs` of the call hide whether they do."""
    given = bind(function, call, bound=bound)
    if given is None:
        return True
    args = function.args
    positional = [*args.posonlyargs, *args.args][1 if bound else 0 :]
    names = {p.arg for p in parameters(function, bound=bound)}
    by_name = names - {p.arg for p in args.posonlyargs}
    if args.vararg is None and len(call.args) > len(positional):
        return False
    if args.kwarg is None and not {k.arg for k in call.keywords} <= by_name:
        return False
    return names <= given.keys() | defaults(function).keys()


def is_static(function: FunctionNode) -> bool:
    return any(dotted(d) == "staticmethod" for d in function.decorator_list)


def is_bound(module: SourceModule, function: FunctionNode) -> bool:
    """True for a method whose first parameter is the object or the class."""
    return isinstance(module.parent(function), ast.ClassDef) and not is_static(function)


def returned(function: FunctionNode, module: SourceModule) -> list[ast.expr]:
    """The expressions of the function's own return statements."""
    return [r.value for r in module.nodes(ast.Return) if r.value is not None and module.function_of(r) is function]
