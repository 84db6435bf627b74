"""Metrics whose value is on the CPU: an object that a function makes and never moves, and torchmetrics' functions on texts.

A module moves the metrics that it holds as attributes; nobody moves one that a local name holds.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, external_role
from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.logged_values import Scope, short
from codemods.analysis.logged.value_kinds import Kind, Value
from codemods.analysis.names import last, qualified

# They take texts, which are on no device, and make new tensors of what they count.
_ON_TEXTS = frozenset(
    {"bleu_score", "char_error_rate", "chrf_score", "edit_distance", "extended_edit_distance", "match_error_rate", "rouge_score",
     "sacre_bleu_score", "squad", "translation_edit_rate", "word_error_rate", "word_information_lost",
     "word_information_preserved"}
)  # fmt: skip


def host_metric(scope: Scope, call: ast.Call, name: str) -> Value | None:
    """The value on the CPU that the call gives, if it is one of these."""
    if name.startswith("torchmetrics.functional") and last(name) in _ON_TEXTS:
        return Value(Kind.CPU, f"{short(scope, call)} makes its tensor of texts, on the CPU")
    if isinstance(call.func, ast.Call):
        made = [call.func]
    elif isinstance(call.func, ast.Name) and scope.function is not None:
        bounds = local_values(scope.project, scope.module, scope.function).get(call.func.id, [])
        made = [b.value for b in bounds if isinstance(b.value, ast.Call) and not b.path and b.into is None]
        if len(made) != len(bounds):
            return None
    else:
        return None
    if not made or any(external_role(qualified(scope.module, m.func)) is not Role.METRIC for m in made):
        return None
    if isinstance(call.func, ast.Name) and _is_moved(scope, call.func.id):
        return None
    return Value(Kind.CPU, f"{short(scope, made[0])} is made here and never moved to the device")


def _is_moved(scope: Scope, name: str) -> bool:
    receivers = (c.func.value for c in scope.module.calls_named("to", "cuda") if isinstance(c.func, ast.Attribute))
    return any(isinstance(r, ast.Name) and r.id == name for r in receivers)
