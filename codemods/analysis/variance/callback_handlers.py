"""The handler that runs the callbacks of a Trainer of transformers, in its own class and in a copy of it."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, family, qualified
from codemods.analysis.variance.state import State

_FIELD = "callback_handler"  # of `transformers.Trainer`
_CLASS = "CallbackHandler"


def asks_callbacks(state: State, call: ast.Call) -> bool:
    """True for `self.control = self.callback_handler.on_log(args, state, self.control, logs)`.

    Each callback is handed a state and metrics that are the same on every rank, and changes the control by them.
    """
    func = call.func
    if not isinstance(func, ast.Attribute) or not func.attr.startswith("on_"):
        return False
    return _is_of_trainer(state, func.value) or _is_made_here(state, func.value)


def _is_of_trainer(state: State, holder: ast.expr) -> bool:
    owner = state.module.class_of(holder) if dotted(holder) == f"self.{_FIELD}" else None
    return owner is not None and class_facts(state.project, state.module, owner).is_a(Role.HF_TRAINER)


def _is_made_here(state: State, holder: ast.expr) -> bool:
    if not state.module.holds(_CLASS.encode()):
        return False
    bound = [b.value for b in name_or_field_bindings(state.module, holder)]
    made = [qualified(state.module, v.func) for v in bound if isinstance(v, ast.Call)]
    of_library = (family(name) == "transformers" and name.endswith(f".{_CLASS}") for name in made)
    return bool(bound) and len(made) == len(bound) and all(of_library)
