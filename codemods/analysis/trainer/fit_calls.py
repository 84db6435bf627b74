"""The `fit` of a Trainer that one call has made."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule


def only_fit(module: SourceModule, call: ast.Call) -> ast.Call | None:
    """The one `trainer.fit(…)` in the function that makes the Trainer; None where there are several, or it goes elsewhere."""
    made = module.parent(call)
    if not isinstance(made, ast.Assign) or len(made.targets) != 1 or not isinstance(name := made.targets[0], ast.Name):
        return None
    home = module.function_of(call)
    fits = [c for c in module.calls_named("fit") if dotted(c.func) == f"{name.id}.fit" and module.function_of(c) is home]
    if len(fits) != 1 or len(bindings_of(module, name)) != 1 or fits[0].lineno < call.lineno:
        return None
    return fits[0]
