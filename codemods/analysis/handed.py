"""What a call hands to the parameters of a function of the project."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.model.signatures import bind, is_bound
from codemods.analysis.names import dotted, last


def handed(site: FunctionSite, call: ast.Call) -> dict[str, ast.expr]:
    """Parameter -> what the call gives it; nothing where `*args` or `**kwargs` hide it."""
    return bind(site.node, call, bound=_is_bound(site, call)) or {}


def held_as(site: FunctionSite, call: ast.Call, value: ast.expr) -> str:
    """The parameter that holds what stands in an argument of a call, as long as the function runs; "" for none."""
    name = next((n for n, given in handed(site, call).items() if given is value), "") or _by_place(site, call, value)
    return name if name and len(bindings_in(site.module, site.node, name)) == 1 else ""


def _is_bound(site: FunctionSite, call: ast.Call) -> bool:
    of_autograd = last(dotted(call.func)) == "apply" and site.node.name == "forward"  # `Gather.apply(x)`: it is given a context
    return of_autograd or is_bound(site.module, site.node)


def _by_place(site: FunctionSite, call: ast.Call, value: ast.expr) -> str:
    """The parameter of a positional argument beside `**options`, which cannot give it again; "" for none."""
    at = next((i for i, given in enumerate(call.args) if given is value), -1)
    if at < 0 or any(isinstance(given, ast.Starred) for given in call.args[:at]):
        return ""
    parameters = [*site.node.args.posonlyargs, *site.node.args.args][_is_bound(site, call) :]
    return parameters[at].arg if at < len(parameters) else ""
