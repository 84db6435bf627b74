"""Comments that tell an evaluation off for now: `eval_strategy="no",  # "epoch" to evaluate`. Its metric is kept for that day."""

from __future__ import annotations

import ast
import re

from codemods.analysis.trainer.references import Mention, in_comments
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

_SETTINGS = ("eval_strategy", "evaluation_strategy", "do_eval", "eval_steps", "evaluate_during_training", "prediction_loss_only")
# What such a comment names: what the setting is there for, or a value that would turn it on. "no evaluation here" does neither.
_SPEAKS = lazy(
    r"\b(?:for|to|if|when|enable|turn on)\b[^\n]{0,20}\b(?:eval|validat)|[\"'](?:epoch|steps)[\"']|"
    r"\b(?:switch|turn|set)\w*\b[^\n]{0,20}\b(?:on|off)\b", re.IGNORECASE
)  # fmt: skip


def told_switch(module: SourceModule, arguments: ast.Call) -> Mention | None:
    """The first comment in the call of the training arguments that says what the evaluation is set to otherwise.

    Beside one of its settings or right above it; a setting that is commented out (`# eval_strategy="epoch",`) says so, too.
    """
    inside = range(arguments.lineno, (arguments.end_lineno or arguments.lineno) + 1)
    for setting in _SETTINGS:
        if found := next((m for m in in_comments(module, setting) if m.line in inside), None):
            return found
    for given in arguments.keywords:
        if given.arg in _SETTINGS:
            lines = [n for n in (given.value.end_lineno or 0, given.lineno - 1) if n in inside]
            if line := next((n for n in lines if _comments(module, n, alone=n < given.lineno)), 0):
                return Mention("comment", module.path, line)
    return None


def _comments(module: SourceModule, line: int, *, alone: bool) -> bool:
    """True for a line whose comment speaks of evaluating. alone: nothing but a comment may stand in it."""
    before, mark, said = module.lines[line - 1].partition("#")
    return bool(mark) and not (alone and before.strip()) and _SPEAKS.search(said) is not None
