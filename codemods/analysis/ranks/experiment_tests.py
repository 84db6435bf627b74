"""A test of what a Lightning logger's `experiment` is: on every rank but 0 it is a dummy, and what is taken from it a function.

`isinstance(trainer.logger.experiment, SummaryWriter)`, `isinstance(entity, str)` of `entity = logger.experiment.entity`.
"""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, end_of, family
from codemods.analysis.ranks.rank_sets import Ranks, Split
from codemods.files.source import SourceModule


def split_of_experiment(module: SourceModule, test: ast.AST) -> Split | None:
    """What `isinstance` says of ranks where it asks such an experiment or a value of it; None for anything else."""
    if not isinstance(test, ast.Call) or len(test.args) != 2 or dotted(test.func) != "isinstance":
        return None
    if not module.holds(b".experiment") or not any(family(n) == "lightning" for n in module.imported_modules):
        return None
    asked, kinds = test.args
    values = assigned(module, asked, asked.id) if isinstance(asked, ast.Name) else [asked]
    if not values or not all(_is_of_experiment(v) for v in values):
        return None
    split = Split(Ranks.ZERO, Ranks.UNKNOWN, alone=False)
    return split.turned if "Dummy" in end_of(kinds) else split


def _is_of_experiment(value: ast.expr) -> bool:
    """True for `logger.experiment` and what hangs on it, of a name that says logger."""
    name = dotted(value)
    holder, found, _ = f"{name}.".partition(".experiment.")
    return bool(found) and "logger" in holder.rpartition(".")[2].lower()
