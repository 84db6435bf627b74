"""DDP101: an epoch-level metric that each rank logs from its own share of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.hooks import TEST_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.absent_keys import is_under_absent_key
from codemods.analysis.logged.log_calls import (
    LogCall,
    as_any_log_call,
    epoch_level,
    key_node,
    key_nodes,
    key_text,
    reached,
    values,
)
from codemods.analysis.logged.monitors import watcher_of
from codemods.analysis.logged.named_checkpoints import named_checkpoints
from codemods.analysis.logged.pending_metrics import Place
from codemods.analysis.logged.possible_keys import possible_keys
from codemods.analysis.logged.sync_judgement import NEEDS_NOTHING, judge_declined, judge_promised, watched_key
from codemods.analysis.logged.sync_twins import judge
from codemods.analysis.logged.whole_outputs import is_whole_output
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, Finding, SetKeyword
from codemods.data.printed_errors import WAITING
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_UNDER_A_NAME = tuple(b"= self." + name + end for name in (b"log", b"log_dict") for end in (b"\n", b"\r", b" "))
_IN_THE_EVALUATION = "reduce it in the evaluation (`sync_dist=not self.training`): the steps of the training need no reduction"
_SPEAKS = lazy(rb"\b(?!(?:math|np|numpy|torch|wandb|jnp|logger|logging|tf|mlflow|console|cmath)\b)\w+\.log(?:_dict)?\(")


class UnsyncedMetric(DdpCodemod):
    """An epoch-level metric is logged from each rank's own share of the data.

    ## What it does
    Finds `self.log` and `self.log_dict` calls of a LightningModule (and `pl_module.log` in a Callback) whose value is a plain
    number or tensor of this rank and which Lightning reduces at the end of an epoch, and adds `sync_dist=True`. Those
    of a helper with a parameter for the stage (`self._step(batch, train=False)`) get `sync_dist=not train`, or
    `stage != "train"`: each step of the training reduces nothing then. The calls of other objects that hold the module
    (`self.model.log` of a task that the module makes with `self`) count, and so does the value of a training step that a
    ModelCheckpoint, EarlyStopping or ReduceLROnPlateau of the same script monitors. Reports a ModelCheckpoint whose file name
    holds such a number, here or in a configuration, where `ckpt_path="best"` or a load of `best_model_path` asks every rank for
    its own best file, and a value of an evaluation that is logged with `sync_dist=False` while a monitor decides by it. Reports
    what a method of a metric class of the project makes of its states at the end of an epoch: torchmetrics puts the ranks' states
    together in `compute` alone.

    ## Why it matters
    Since Lightning 1.7 an epoch value is not reduced over the ranks unless `sync_dist=True` is given: the logger shows rank
    0's share of the validation set, and each rank's ModelCheckpoint, EarlyStopping or ReduceLROnPlateau decides by its own
    number. Best checkpoints differ or are lost, and a plateau scheduler lets the learning rates, then the weights, of the
    replicas drift apart without a word.

    ## Example
    ```python
    import lightning.pytorch as pl
    import torch.nn.functional as F


    class Model(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            x, y = batch
            loss = F.cross_entropy(self(x), y)
            self.log("val/loss", loss, prog_bar=True)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    import torch.nn.functional as F


    class Model(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            x, y = batch
            loss = F.cross_entropy(self(x), y)
            self.log("val/loss", loss, prog_bar=True, sync_dist=True)
    ```

    ## Safety
    Safe where every rank is shown to reach the call with the same literal key, in a validation or test hook or an epoch hook,
    and the value is a plain number or tensor on the module's device. What may stand before the call is what Lightning itself
    keeps equal (`trainer.sanity_checking`, `current_epoch`) and what callers decide by literals. On one device `sync_dist` does
    nothing. On several the value changes: it becomes the mean over all ranks, which is what one device would have shown.

    Unsafe, each with its assumption named: configuration decides about the call or its key, the value's device or type is not
    seen, the call stands in an object that holds the module, the value is a monitored one of a training step or of a call with
    `rank_zero_only=True` (which switches the reduction off on every rank), a dictionary's keys are not written out,
    `reduce_fx="sum"`, the key is also logged at every training step (one barrier and one all-reduce a step) and no parameter that
    every caller gives a literal is another in training than in evaluation, or a monitor reads what the training logs, or ranks
    may get no validation batch (iterable data, own samplers, sharding switched off).

    ## Refuses
    - clocks and memory gauges (`time`, `psutil`, `torch.cuda.max_memory_allocated`): they are the machine's, or a mean hides the
      peak: nothing is said; a monitor is named only where its script or configuration names the class, or there is one model;
      that of a scheduler only where it may be a ReduceLROnPlateau (`reduce_on_plateau=True`), for no other reads it
    - an explicit `sync_dist` (but `sync_dist=False` where a monitor reads the key), `rank_zero_only` on a key that nothing
      monitors (with `sync_dist=True` beside it: reported), a training step's value that nothing monitors (with `on_epoch=True`,
      too: the reduction of each step costs more than the epoch's number of rank 0 loses), a call that only some ranks reach,
      values that are equal on all ranks (learning rates, counters, configuration), metric objects, gathered, reduced or
      computed values: nothing is said
    - a repository's own tests, and projects that pin Lightning 1.4 to 1.6, which reduced epoch values anyway: nothing is said
    - a value that is not followed in a place that is not either, or between the epochs of a training, where it may be a margin
      or a flag that goes by the epoch: nothing is said
    - a call under an `if` on data, in a loop over data, a `try`, a comprehension, an inner function, a coroutine, or below an
      early return: a rank that does not come here leaves the others waiting, or values of different keys are mixed in silence
    - a helper that other code or `forward` may call, and a hook that a rank guard calls by hand
    - a key built from anything but literals, options by position, or keywords from `**kwargs`
    - a class, or a project subclass of it, with a `log` of its own; nothing is said where that never hands on to Lightning's
    - a tensor on the CPU, which NCCL refuses (Lightning before 1.4, and from 2.1 on, keeps it there): log it as a float. What a
      metric gives that the step makes for itself and never moves, or that counts texts, is one
    - a number where Lightning 1.0 is pinned, which reduces tensors alone
    - the hooks of a test where each `trainer.test` of the project is that of one device, or only its own tests make one; those of
      a validation that no program hands data to (each `val_dataloader` gives None, and no `fit` has another);
      modules in a project that trains by a loop of its own and fits nothing; evaluations of which each rank has the whole
      set: nothing is said
    - a method of a metric that a step calls, or whose class sees to the other ranks, calls `compute`, or is handed what was
      gathered; a metric that the module hands on, or whose states it touches: its states are not reported
    - the batch value that a metric returned: DDP104 logs the object instead
    - at the end of an epoch what is put together of the results of metrics (`getattr(self, name).compute()`), or of what was
      gathered above, also through a dictionary: nothing is said; nor in programs whose Trainer, command or settings ask for `dp`,
      which is one process
    - a value worked out from what the steps gathered, unless it is logged as a mean (unsafe then: counts may differ) or as the
      largest or smallest, which `reduce_fx` puts together
    - a dictionary whose keys a helper makes of the batch
    - calls of objects that no module is seen to make, and whose methods no hook is seen to call
    - what was read back from the Trainer under another key: that key is judged by itself
    - an epoch-end value whose source is not seen: the mean of the ranks' scores need not be the score
    - all outputs of the network for a batch (`self.log("prediction", out)`): Lightning raises on more than one number
    - `reduce_fx` other than mean, min, max or sum
    - a key that the same hook logs a second time where only one of the two calls could be changed: Lightning raises then
    - a value of each evaluation batch (`on_step=True`) where ranks may get different numbers of batches
    - a training value where a hook reads `trainer.callback_metrics` on some ranks only, or where `on_train_epoch_end` of the
      project runs a collective: rank 0's progress bar starts the reduction before that hook, the other ranks after it
    - an evaluation's epoch-end value where such a hook reads `trainer.callback_metrics` on some ranks only

    ## References
    Lightning 1.7.0 (PR #13364) removed the forced reduction; `logger_connector/result.py` and `loops/fit_loop.py` of 2.6.6;
    issues #19045, #19106, #18803; two-process runs on 2.6.6 of each row, the error for a key logged twice and the progress
    bar's early read among them.
    """

    code = "DDP101"
    names_number = True
    severity = "data"
    subject = "Reduce epoch metrics over the ranks"
    must_show = (
        "Each logged value is the mean over both processes, and the epoch ends: a rank that does not reach the call leaves the "
        "others waiting there."
    )
    printed = (*WAITING, "No backend type associated with device type cpu")
    TRIGGERS = (
        (b".log(", b".log_dict(", b"ModelCheckpoint(", *_UNDER_A_NAME),
        (b"_step", b"_epoch", b"ightning", b"module", b"model", b"self"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        """Half of all files take a logarithm: what is no module of Lightning's must look as if it spoke to one."""
        data = project.read(path) or b""
        said = (b"self.log(", b"self.log_dict(", b"pl_module.log(", b"pl_module.log_dict(", *_UNDER_A_NAME)
        if any(word in data for word in said) or (b"ModelCheckpoint(" in data and b"best" in data):
            return True
        return bool(project.files_containing(b"LightningModule")) and _SPEAKS.search(data) is not None

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log", "log_dict"):
            log = as_any_log_call(module, project, call)
            if log is None:
                continue
            if log.flag("rank_zero_only") is True:
                yield from self._promised(log)
                continue
            if log.flag("sync_dist") is False:
                yield from self._declined(log)
                continue
            verdict = judge(log)
            if verdict is None or is_whole_output(log):
                continue
            if is_under_absent_key(project, module, call) and left(module, call, "no key of the dict leads to this branch"):
                continue
            edits = [SetKeyword(module.path, module.span(call), "sync_dist", verdict.sync_dist)]
            if verdict.reduce_fx:
                edits.append(SetKeyword(module.path, module.span(call), "reduce_fx", f'"{verdict.reduce_fx}"'))
            told = verdict.level is Applicability.DISPLAY
            yield self.finding(
                module,
                call,
                _message(log),
                level=verdict.level,
                edits=edits,
                evidence=() if told else verdict.evidence,
                reason=verdict.reason,
            )

        for named in named_checkpoints(project, module):
            yield self.finding(
                module,
                named.made,
                f"each rank puts its own number of {named.key!r} into the name, and rank 0 alone writes the file: the others are "
                f"asked for another one by `{named.by}` in line {named.asked.lineno}, and end with FileNotFoundError",
                evidence=[Evidence("static", "it is logged unreduced here", named.log.module.path, named.log.call.lineno)],
                reason="reduce what is logged (`sync_dist=True`, or gathered first), or name the file by the epoch alone",
                severity="crash",
            )

    def _declined(self, log: LogCall) -> Iterator[Finding]:
        """`sync_dist=False` on a value of an evaluation that decides: what is only shown may be meant so."""
        verdict = None if _in_tests_alone(log) else judge_declined(log)
        place = watched_key(log) if verdict is not None else None
        if place is None:
            return
        decides = f"{place.text} at {place.path}:{place.line} decides on each rank by that rank's number"
        text = f"sync_dist=False keeps what is logged here unreduced, and {decides}"
        found = reached(log)
        steps = found is not None and bool(found.hooks & TRAINING_HOOKS)
        reason = _IN_THE_EVALUATION if steps else "reduce it over the ranks (`sync_dist=True`), if every rank comes here"
        yield self.finding(log.module, log.call, text, reason=reason)

    def _promised(self, log: LogCall) -> Iterator[Finding]:
        """`rank_zero_only=True` does not keep a value to rank 0: it switches the reduction off, also of a key that decides."""
        watcher = None if _in_tests_alone(log) else watched_key(log)
        if watcher is None:
            yield from self._switched_off(log)
            return
        module, call = log.module, log.call
        decides = f"{watcher.text} at {watcher.path}:{watcher.line}"
        if ranks_at(module, call, project=log.project).some:
            text = f"only rank 0 logs {key_text(log)!r}, which {decides} reads on every rank: the others do not find the key"
            yield self.finding(module, call, text, reason="log it on every rank, with sync_dist=True and without rank_zero_only")
            return
        if (verdict := judge_promised(log)) is None:
            return
        verdict.lower(Applicability.UNSAFE, "right if the value is meant to be that of all ranks")
        text = f"rank_zero_only=True keeps {key_text(log)!r} unreduced, and {decides} decides on each rank by that rank's number"
        edits: list[Edit] = [DropKeyword(module.path, module.span(call), "rank_zero_only")]
        if log.flag("sync_dist") is not True:
            edits.append(SetKeyword(module.path, module.span(call), "sync_dist", verdict.sync_dist))
        yield self.finding(module, call, text, level=verdict.level, edits=edits, reason=verdict.reason)

    def _switched_off(self, log: LogCall) -> Iterator[Finding]:
        """`sync_dist=True, rank_zero_only=True`: the first asks for the mean of all ranks, the second switches it off."""
        module, call = log.module, log.call
        if log.flag("sync_dist") is not True or ranks_at(module, call, project=log.project).some or is_test_module(module):
            return
        found = reached(log)
        if found is None or all(v.kind in NEEDS_NOTHING for _, v in values(log)):
            return
        text = (
            "rank_zero_only=True switches sync_dist=True off: Lightning reduces nothing here, and the logger shows the values of "
            "rank 0 as they are"
        )
        reason = (
            "leave rank_zero_only out: the logger writes on rank 0 alone in any case, and it only promises that this call runs "
            "there alone; the keys have to be the same on every rank then"
        )
        yield self.finding(module, call, text, reason=reason)


def _message(log: LogCall) -> str:
    key = key_text(log) if log.is_log else ""
    literal = isinstance(key_node(log), ast.Constant)
    named = f"{key!r} is" if key and literal else f"{key} is" if key else "these values are"
    found = reached(log)
    when = "at epoch level" if found is None or epoch_level(log, found) else "at each training step"
    text = f"{named} logged {when} without being reduced over the ranks: what is shown is rank 0's own number"
    for node in () if _in_tests_alone(log) else key_nodes(log):
        name = str(node.value) if isinstance(node, ast.Constant) else ""
        if name and (place := watcher_of(log.project, name, log.facts)) is not None:
            return _decided(text, place, "" if log.is_log else name)
    for name in () if _in_tests_alone(log) else possible_keys(log):
        if (place := watcher_of(log.project, name, log.facts)) is not None:
            return _decided(text, place, name)
    return text


def _decided(text: str, place: Place, key: str) -> str:
    which = f" of {key!r}" if key else ""
    return f"{text}, and {place.text} at {place.path}:{place.line} decides on each rank by that rank's number{which}"


def _in_tests_alone(log: LogCall) -> bool:
    """True where only the hooks of `trainer.test` come here: no monitor reads what they log."""
    found = reached(log)
    return found is not None and bool(found.hooks) and found.hooks <= TEST_HOOKS
