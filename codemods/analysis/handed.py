"""What a call hands to the parameters of a function of the project."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.model.signatures import bind, is_bound
from codemods.analysis.names import dotted, last


def handed(site: FunctionSite, call: ast.Call) -> dict[str, ast.expr]:
    """Parameter -> what the call gives it; nothing where `*args` or `**kwargs` hide it."""
    of_autograd = last(dotted(call.func)) == "apply" and site.node.name == "forward"  # `Gather.apply(x)`: it is given a context
    return bind(site.node, call, bound=of_autograd or is_bound(site.module, site.node)) or {}


def held_as(site: FunctionSite, call: ast.Call, value: ast.expr) -> str:
    """The parameter that holds what stands in an argument of a call, as long as the function runs; "" for none."""
    name = next((n for n, given in handed(site, call).items() if given is value), "")
    return name if name and len(bindings_in(site.module, site.node, name)) == 1 else ""
