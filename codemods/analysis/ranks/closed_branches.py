"""Branches that a call cannot come to: `if create:` in a function that is called with `create=False`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.model.signatures import bind
from codemods.analysis.ranks.uses import CallSite, Uses
from codemods.source import FunctionNode, SourceModule


def open_uses(module: SourceModule, function: FunctionNode, node: ast.AST, uses: Uses) -> Uses:
    """`uses` of the function without the calls whose literal arguments, or defaults, lead past `node`."""
    asked = _asked(module, function, node)
    if not asked:
        return uses
    calls = tuple(site for site in uses.calls if not _is_past(module, function, site, asked))
    return uses if len(calls) == len(uses.calls) else Uses(calls, uses.handed_on, uses.more)


def asks_a_parameter(module: SourceModule, function: FunctionNode, node: ast.AST) -> bool:
    """True where a test round the node is a parameter of its function alone."""
    return bool(_asked(module, function, node))


def _asked(module: SourceModule, function: FunctionNode, node: ast.AST) -> dict[str, bool]:
    """Parameter -> what it has to be for the node to be reached."""
    parameters = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    out: dict[str, bool] = {}
    below: ast.AST = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If) and below is not up.test:
            wanted = any(below is s for s in up.body)
            test = up.test
            while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, wanted = test.operand, not wanted
            if isinstance(test, ast.Name) and test.id in parameters:
                out[test.id] = wanted
        below = up
    rebound = {name for name in out if any(not b.parameter for b in bindings_in(module, function, name))}
    return {name: wanted for name, wanted in out.items() if name not in rebound}


def _is_past(module: SourceModule, function: FunctionNode, site: CallSite, asked: dict[str, bool]) -> bool:
    given = bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef))
    if given is None:
        return False
    defaults = _defaults(function)
    for name, wanted in asked.items():
        value = given.get(name, defaults.get(name))
        if isinstance(value, ast.Constant) and bool(value.value) is not wanted:
            return True
    return False


def _defaults(function: FunctionNode) -> dict[str, ast.expr]:
    placed = [*function.args.posonlyargs, *function.args.args]
    out = {a.arg: d for a, d in zip(reversed(placed), reversed(function.args.defaults), strict=False)}
    return out | {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is not None}
