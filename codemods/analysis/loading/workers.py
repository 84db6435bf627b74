"""How many workers a loader has, where the source shows it."""

from __future__ import annotations

import ast

from codemods.analysis.loading.samplers import Loader
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last


def may_have_no_workers(loader: Loader) -> bool:
    """True where a loader is given no workers, or as many as a setting says whose default is none."""
    given = loader.argument("num_workers", 5)
    if given is None:
        return not loader.hides
    if isinstance(given, ast.Constant):
        return given.value == 0
    module, name = loader.module, last(dotted(given))
    owner = module.class_of(loader.call)
    makers = [module.function_of(loader.call), module.methods_of(owner).get("__init__") if owner is not None else None]
    found = [defaults(maker).get(name) for maker in makers if maker is not None]
    return any(isinstance(value, ast.Constant) and value.value == 0 for value in found)
