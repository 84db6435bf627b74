"""Strategies of Lightning that spawn the ranks inside `fit`: by name, by what they are made with, or by what an heir hands on.

A choice between several counts where one of them does: that every rank runs the script is not shown then.
"""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.model.signatures import bind, defaults
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

# Lightning's launcher of processes in Python takes these; `popen`, the default, starts the script anew (DDPStrategy of 2.6).
_SPAWNING = ("spawn", "fork")
_DEPTH = 3


def spawns_by(project: Project, module: SourceModule, value: ast.expr, depth: int = _DEPTH) -> bool:
    """True for `"ddp_spawn"`, for `DDPStrategy(start_method="spawn")` and its heirs, and for a choice that has one of them."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and any(word in value.value for word in _SPAWNING)
    if isinstance(value, ast.IfExp):
        return any(spawns_by(project, module, arm, depth) for arm in (value.body, value.orelse))
    if isinstance(value, ast.Call):
        return _is_made_so(project, module, value)
    if not depth or not dotted(value):
        return False
    return any(spawns_by(project, module, given, depth - 1) for given in assigned(module, value, dotted(value)))


def _is_made_so(project: Project, module: SourceModule, call: ast.Call) -> bool:
    name = dotted(call.func)
    made = find_class(project, module, name)
    facts = class_facts(project, made.module, made.node) if made is not None else None
    if not any(base.endswith(("Strategy", "Plugin")) for base in (facts.external if facts is not None else (name,))):
        return False
    method = facts.method("__init__") if facts is not None else None
    if method is None:
        bases = (name, *(facts.external if facts is not None else ()))
        return any(word in base.lower() for base in bases for word in _SPAWNING) or _names_one(call)
    constructor = method[1]
    above = next((c for c in walk_scope(constructor) if isinstance(c, ast.Call) and _is_of_the_base(c)), None)
    handed = next((k.value for k in above.keywords if k.arg == "start_method"), None) if above is not None else None
    if isinstance(handed, ast.Name):
        given = bind(constructor, call, bound=True) or {}
        handed = given.get(handed.id) or defaults(constructor).get(handed.id)
    if handed is None:
        return above is not None and any(k.arg is None for k in above.keywords) and _names_one(call)
    return _is_one(handed)


def _is_of_the_base(call: ast.Call) -> bool:
    """True for `super().__init__(...)` and `DDPStrategy.__init__(self, ...)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"


def _names_one(call: ast.Call) -> bool:
    return any(k.arg == "start_method" and _is_one(k.value) for k in call.keywords)


def _is_one(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in _SPAWNING
