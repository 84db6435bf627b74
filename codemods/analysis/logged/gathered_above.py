"""What is logged at the end of an epoch, made of what was put together from all ranks above: by a gather, or by a metric."""

from __future__ import annotations

import ast

from codemods.analysis.callers import Entries
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS
from codemods.analysis.logged.log_calls import LogCall
from codemods.analysis.metric_attributes import loose_metric, metric_attribute
from codemods.analysis.names import dotted

_GATHERS = ("gather", "all_gather", "all_gather_object", "gather_object", "all_reduce")
EPOCH_HOOKS = TRAINING_EPOCH_HOOKS | frozenset(h for h in EVALUATION_HOOKS if "epoch" in h)


def is_gathered_above(log: LogCall, found: Entries) -> bool:
    """True at the end of an epoch, in a function that has gathered something above: what is made of it is whole."""
    if not found.hooks & EPOCH_HOOKS:
        return False
    calls = [c for name in (*_GATHERS, "compute") for c in log.module.calls_named(name) if _is_above(log, c)]
    return any(_puts_together(log, call) for call in calls)


def _is_above(log: LogCall, call: ast.Call) -> bool:
    return log.function.lineno <= call.lineno < log.call.lineno


def _puts_together(log: LogCall, call: ast.Call) -> bool:
    """True for a gather, and for `compute` of a metric of the module: torchmetrics has it wait for all ranks' states."""
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr != "compute":
        return True
    holder = called.value
    if isinstance(holder, ast.Call):  # `getattr(self, name).compute()`
        by_name = dotted(holder.func) == "getattr" and bool(holder.args) and dotted(holder.args[0]) == "self"
        return by_name and log.on_self and loose_metric(log.project, log.facts) is not None
    return log.on_self and metric_attribute(log.project, log.facts, holder) is not None
