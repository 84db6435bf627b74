"""Which parameter of a helper says whether it is called for an evaluation: `train` of `self._step(batch, train=False)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import Caller, Entries, entries
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.log_calls import LogCall, key_node
from codemods.analysis.logged.monitors import watcher_of
from codemods.analysis.logged.possible_keys import possible_keys
from codemods.files.source import walk


def true_in_evaluations(log: LogCall, found: Entries) -> str:
    """An expression of one parameter that is true for the calls of evaluations and false for those of the training; "" for none.

    Also "" where a monitor may read what the training logs.
    """
    calls = [s for s in found.steps if isinstance(s.call.func, ast.Attribute) and s.call.func.attr == log.function.name]
    if log.held is not None or found.unknown or found.outside or log.function.name in found.hooks or not calls:
        return ""
    stages = [_stage(log, step) for step in calls]
    if {*stages} != {"training", "evaluation"}:
        return ""
    given = [arguments_of(step.call, log.function, skip_self=True) for step in calls]
    for name in _kept_parameters(log):
        values = [g.get(name) for g in given]
        literals: list[object] = [value.value if isinstance(value, ast.Constant) else None for value in values]
        training = {v for v, stage in zip(literals, stages, strict=True) if stage == "training"}
        evaluation = {v for v, stage in zip(literals, stages, strict=True) if stage == "evaluation"}
        test = _test(name, training, evaluation)
        if test and not _is_watched(log, name, training):
            return test
    return ""


def _stage(log: LogCall, step: Caller) -> str:
    hooks = entries(log.project, log.facts, step.function).hooks
    if hooks and hooks <= TRAINING_HOOKS:
        return "training"
    return "evaluation" if hooks and hooks <= EVALUATION_HOOKS else ""


def _kept_parameters(log: LogCall) -> Iterator[str]:
    """The parameters that hold in the whole method what the caller gave."""
    arguments = log.function.args
    stored = {n.id for n in walk(log.function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.arg not in stored:
            yield argument.arg


def _test(name: str, training: set[object], evaluation: set[object]) -> str:
    if all(isinstance(v, bool) for v in training | evaluation) and len(training) == len(evaluation) == 1:
        return "" if training == evaluation else f"not {name}" if True in training else name
    written = all(isinstance(v, str) and v.isprintable() and '"' not in v and "\\" not in v for v in training | evaluation)
    return f'{name} != "{next(iter(training))}"' if written and len(training) == 1 and not training & evaluation else ""


def _is_watched(log: LogCall, name: str, training: set[object]) -> bool:
    """True where a monitor reads a key of the call, unless the parameter stands in the key and keeps those of the training apart.
    """
    if not any(watcher_of(log.project, key, log.facts) for key in possible_keys(log)):
        return False
    key = key_node(log) if log.is_log else None
    if not isinstance(key, ast.JoinedStr):
        return True
    texts = []
    for value in training:
        parts = [_part(p, name, value) for p in key.values]
        if None in parts:
            return True
        texts.append("".join(p for p in parts if p is not None))
    return not any(isinstance(p, ast.FormattedValue) for p in key.values) or any(
        watcher_of(log.project, text, log.facts) for text in texts
    )


def _part(part: ast.expr, name: str, value: object) -> str | None:
    if isinstance(part, ast.Constant):
        return str(part.value)
    plain = isinstance(part, ast.FormattedValue) and part.format_spec is None and part.conversion == -1
    if plain and isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id == name:
        return str(value)
    return None
