"""When a value that is given `sync_dist=True` would be reduced, and on what data: what may go wrong then."""

from __future__ import annotations

from codemods.analysis.callers import Entries
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.evaluation_data import own_batches, uneven_data
from codemods.analysis.logged.log_calls import LogCall, epoch_level, key_text
from codemods.analysis.logged.monitors import watcher_of
from codemods.analysis.logged.pending_metrics import EVALUATION_ENDS, epoch_end_collective, guarded_read
from codemods.analysis.logged.stage_parameters import true_in_evaluations
from codemods.analysis.logged.verdict import Verdict
from codemods.api.findings import Applicability

UNSAFE, DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY
_STEP_COST = (
    "sync_dist also reduces the value at every training step, which costs a barrier and an all-reduce each time: an epoch value "
    "of its own call (on_step=False, on_epoch=True) avoids that"
)


def judge_stage(log: LogCall, found: Entries, verdict: Verdict, *, at_each_step: bool = True) -> None:
    """at_each_step: a value of a training step is reduced in it, which that of a metric object is not."""
    training = found.hooks & TRAINING_HOOKS
    at_end = found.hooks & frozenset(EVALUATION_ENDS)
    pending = training if epoch_level(log, found) else frozenset[str]()  # the value of a step is reduced at once
    place = guarded_read(log.project, evaluation=False) if pending else None
    if place is None and at_end:
        place = guarded_read(log.project, evaluation=True)
    if place is not None:
        verdict.lower(DISPLAY, f"{place}: with a value still to be reduced that read waits for the other ranks; move it above "
                               "the rank test first")  # fmt: skip
    place = epoch_end_collective(log.project) if pending else None
    if place is not None:
        verdict.lower(DISPLAY, f"{place}: with sync_dist=True rank 0's progress bar starts the reduction before that call, the "
                               "other ranks after it, so they wait for each other")  # fmt: skip
    if at_each_step and training - TRAINING_EPOCH_HOOKS and log.flag("on_step") is not False:
        if test := true_in_evaluations(log, found):
            verdict.sync_dist = test
            verdict.note(f"by its callers `{test}` is true in evaluations alone: no training step of {log.function.name} reduces",
                         log.module.path, log.call.lineno)  # fmt: skip
            return
        monitored = "a monitor reads this key, so it should be; " if watcher_of(log.project, key_text(log), log.facts) else ""
        verdict.lower(UNSAFE, monitored + _STEP_COST)


def judge_data(log: LogCall, found: Entries, verdict: Verdict) -> None:
    each_step = log.keyword("on_step") is not None and log.flag("on_step") is not False and found.hooks & EVALUATION_HOOKS
    place = uneven_data(log.project, log.module.path)
    if place is not None and each_step:
        verdict.lower(DISPLAY, f"{place}: with on_step=True a rank with fewer batches leaves the others waiting")
    elif place is not None:
        verdict.lower(UNSAFE, f"{place}: right if every rank has at least one batch; one without would lack the key and the "
                              "others would wait")  # fmt: skip
    elif each_step and (place := own_batches(log.project)) is not None:
        verdict.lower(UNSAFE, f"{place}: right if every rank has as many batches, as on_step=True reduces in each of them")
