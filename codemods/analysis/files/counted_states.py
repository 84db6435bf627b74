"""Does every rank work out for itself which folder is free for the states of a Trainer, and nobody waits before it is made?

Rank 0 makes the `output_dir` where the Trainer is made. `TrainingArguments` starts the process group, at which no rank waits for
another (torch 2.2 and later, NCCL).
"""

from __future__ import annotations

import ast

from codemods.analysis.files.counted_apart import is_handed_round
from codemods.analysis.files.counted_names import Counted, counted_in
from codemods.analysis.files.every_rank import way_of_every_rank
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MEET = lazy(r"barrier|wait_for_everyone|broadcast|main_process_first|all_reduce|all_gather")


def counted_state(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> Counted | None:
    """What every rank counts for the folder of the states that `call` saves, or whose Trainer it makes."""
    if (found := counted_in(project, module, path)) is None or is_handed_round(project, module, call):
        return None
    if any(ranks_reaching(project, m, n).some for m, n in ((module, call), (found.module, found.node))):
        return None
    if _meet_above(module, call) or way_of_every_rank(project, module, call) is None:
        return None
    return found


def _meet_above(module: SourceModule, call: ast.Call) -> bool:
    """True where something above in the function has the ranks wait for each other: all have counted by then."""
    function = module.function_of(call)
    others = (c for c in module.nodes(ast.Call) if c.lineno < call.lineno and module.function_of(c) is function)
    return any(_MEET.search(last(dotted(c.func)) or getattr(c.func, "attr", "")) for c in others)
