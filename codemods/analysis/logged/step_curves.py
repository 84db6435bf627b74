"""Losses of single training steps that a LightningModule logs: what the logger draws is rank 0's own batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import Role
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.log_calls import LogCall, as_log_call, epoch_level, key_nodes, logged_value, reached
from codemods.analysis.logged.sync_judgement import watched_step
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_words import is_key
from codemods.analysis.variance.values import Cause, Value
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule


@record
class StepCurve:
    """The first such call of a module. key: what it is logged as."""

    call: ast.Call
    key: str
    value: Value


def step_curves(project: Project, module: SourceModule) -> Iterator[StepCurve]:
    """One a class: of a training step's loss, that nothing monitors and nobody reduces."""
    if not any(project.files_containing(w) for w in (b"Trainer(", b"LightningCLI(")):  # nothing here runs the module
        return
    seen: set[int] = set()
    for call in sorted(module.calls_named("log", "log_dict"), key=lambda c: c.lineno):
        log = as_log_call(module, project, call)
        if log is None or not log.on_self or not log.facts.is_a(Role.LIGHTNING_MODULE) or not _is_of_step(log):
            continue
        owner = log.facts.lineage[0].node.lineno
        key, value = _key(log), _value(log)
        if owner not in seen and key and value.differs and value.cause is Cause.DATA:
            seen.add(owner)
            yield StepCurve(call, key, value)


def _is_of_step(log: LogCall) -> bool:
    """True where the call runs in training steps alone, on every rank, and says nothing of the other ranks."""
    decided = ("sync_dist", "rank_zero_only", "reduce_fx")
    if any(k.arg in decided or k.arg is None for k in log.call.keywords) or log.flag("logger") is False:
        return False
    found = reached(log)
    if found is None or not found.hooks & TRAINING_HOOKS or found.hooks & EVALUATION_HOOKS or epoch_level(log, found):
        return False
    return not ranks_at(log.module, log.call, project=log.project).some and watched_step(log, found) is None


def _key(log: LogCall) -> str:
    nodes = key_nodes(log)
    given = logged_value(log.call)
    if not nodes and isinstance(given, ast.Name):  # a dict that is written out above
        written = (b.value for b in bindings_of(log.module, given))
        nodes = [k for d in written if isinstance(d, ast.Dict) for k in d.keys if k is not None]
    texts = [str(n.value) for n in nodes if isinstance(n, ast.Constant)]
    return next((t for t in texts if is_key(t)), "")


def _value(log: LogCall) -> Value:
    index: int | str = 1 if log.is_log else 0
    given = variance(log.project).argument(log.module, log.call, index)
    if given.differs:
        return given
    return variance(log.project).argument(log.module, log.call, "value" if log.is_log else "dictionary")
