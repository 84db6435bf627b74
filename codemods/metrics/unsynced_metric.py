"""DDP101: an epoch-level metric that each rank logs from its own share of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from codemods.analysis import logged_values
from codemods.analysis.callers import Entries
from codemods.analysis.evaluation_data import guarded_metric_read, monitors, uneven_data
from codemods.analysis.hooks import TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.log_calls import LogCall, as_log_call, epoch_level, key_node, key_text, logged_value, reached, values
from codemods.analysis.logged_values import Kind, Scope, Value
from codemods.analysis.rank_guards import ranks_at
from codemods.analysis.uniform import conditions
from codemods.codemod import DdpCodemod
from codemods.findings import Applicability, Evidence, Finding, SetKeyword, lowest
from codemods.project import Project
from codemods.source import SourceModule

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


@dataclass
class Verdict:
    """The level so far, with every reason that lowered it and every fact that carries it."""

    level: Applicability = SAFE
    reasons: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    def lower(self, level: Applicability, reason: str) -> None:
        if level.rank < self.level.rank:
            self.reasons.clear()
        if level.rank <= self.level.rank and reason not in self.reasons:
            self.reasons.append(reason)
        self.level = lowest(self.level, level)

    def note(self, text: str, path: str, line: int) -> None:
        self.evidence.append(Evidence("static", text, path, line))


class UnsyncedMetric(DdpCodemod):
    """An epoch-level metric is logged from each rank's own share of the data.

    ## What it does
    Finds `self.log` and `self.log_dict` calls of a LightningModule (and `pl_module.log` in a Callback) whose value is a plain
    number or tensor of this rank and which Lightning reduces at the end of an epoch, and adds `sync_dist=True`.

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
    and the value is a plain number or tensor on the module's device. On one device `sync_dist` does nothing. On several the
    value changes: it becomes the mean over all ranks, which is what one device would have shown. Unsafe where the value's
    device or type is not seen, where the key is also logged at every training step (one barrier and one all-reduce a step),
    or where the data may be uneven (a rank without a validation batch lacks the key, and the others wait).

    ## Refuses
    - a class that overrides `log` or has a base that cannot be followed
    - a call under an `if` on data, in a loop, a `try`, a comprehension, an inner function, or below an early return: a rank
      that does not come here leaves the others waiting, or mixes values of different keys in silence
    - a key that is not literal, positional arguments beyond the value, or keywords from `**kwargs`
    - a torchmetrics object (it reduces itself), the batch value that a metric returned (log the object instead), a value that
      is already gathered, reduced or computed by a metric
    - a value worked out from a list filled step by step, unless it is logged as a mean (unsafe then: counts may differ)
    - `reduce_fx` other than mean, min or max
    - an explicit `sync_dist=False` and a call that only some ranks reach: both are left alone without a word
    - a training-epoch key where a hook of the project reads `trainer.callback_metrics` on some ranks only

    ## References
    Lightning 1.7.0 (PR #13364) removed the forced reduction; `logger_connector/result.py` of 2.6.6; issues #19045, #19106,
    #18803; two-process runs of each row.
    """

    code = "DDP101"
    TRIGGERS = ((b"self.log(", b"self.log_dict(", b"pl_module.log(", b"pl_module.log_dict("),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log", "log_dict"):
            log = as_log_call(module, project, call)
            if log is None or any(k.arg in ("sync_dist", "rank_zero_only") for k in call.keywords):
                continue
            if ranks_at(module, call).some:
                continue
            yield from self._judge(log)

    def _judge(self, log: LogCall) -> Iterator[Finding]:
        hooks = reached(log)
        if hooks is None or not epoch_level(log, hooks):
            return
        logged = values(log)
        kept = [v for _, v in logged if v.kind not in (Kind.METRIC_OBJECT, Kind.REDUCED, Kind.EQUAL)]
        if not kept:
            return
        verdict = Verdict()
        _judge_class(log, verdict)
        _judge_place(log, hooks, verdict)
        _judge_key(log, hooks, verdict)
        _judge_values(log, logged, verdict)
        _judge_stage(log, hooks, verdict)
        _judge_data(log, verdict)
        edit = SetKeyword(log.module.path, log.module.span(log.call), "sync_dist", "True")
        if verdict.level is DISPLAY:
            verdict.evidence.clear()
        yield self.finding(
            log.module,
            log.call,
            _message(log),
            level=verdict.level,
            edits=[edit],
            evidence=verdict.evidence,
            reason="; ".join(verdict.reasons),
        )


def _message(log: LogCall) -> str:
    key = key_text(log) if log.is_log else ""
    literal = isinstance(key_node(log), ast.Constant)
    named = f"{key!r} is" if key and literal else f"{key} is" if key else "these values are"
    text = f"{named} logged at epoch level without being reduced over the ranks: what is shown is rank 0's own number"
    if place := monitors(log.project).get(key):
        return f"{text}, and {place.text} at {place.path}:{place.line} decides on each rank by that rank's number"
    return text


def _judge_class(log: LogCall, verdict: Verdict) -> None:
    own = log.call.func.value.id == "self"  # type: ignore[attr-defined]
    for name in ("log", "log_dict"):
        if own and (found := log.facts.method(name)):
            where = f"{found[0].module.path}:{found[1].lineno}"
            verdict.lower(DISPLAY, f"the class has its own {name} ({where}): what it does with sync_dist is not known")
    if log.facts.opaque:
        names = ", ".join(log.facts.opaque[:2])
        verdict.lower(UNSAFE, f"the base {names} cannot be looked into: it may override log")
    site = log.facts.lineage[-1]
    base = next((n for n in log.facts.external if n), "")
    verdict.note(f"{log.facts.lineage[0].name} is a {base}", site.module.path, site.node.lineno)


def _judge_place(log: LogCall, reached: Entries, verdict: Verdict) -> None:
    if reached.unknown:
        verdict.lower(DISPLAY, f"{reached.unknown}, so it is not shown that every rank comes here")
    places = [(log.module, log.call, log.function)]
    places += [(step.site.module, step.call, step.function) for step in reached.steps]
    for module, call, function in places:
        for condition in conditions(module, call, function):
            where = f"{condition.text} (line {condition.line})"
            if condition.uniform:
                verdict.lower(UNSAFE, f"right if {where} is the same on every rank; a rank that skips it would hang the others")
            else:
                verdict.lower(DISPLAY, f"it stands behind {where}: a rank that skips it would leave the others waiting, or "
                                       "values of different keys would be averaged in silence")  # fmt: skip
        if ranks_at(module, call).some:
            verdict.lower(DISPLAY, f"{function.name} calls it on some ranks only")
    hooks = ", ".join(sorted(reached.hooks))
    verdict.note(f"every rank runs {hooks}; nothing stands between its start and the call", log.module.path, log.call.lineno)


def _judge_key(log: LogCall, reached: Entries, verdict: Verdict) -> None:
    if any(k.arg is None for k in log.call.keywords) or any(isinstance(a, ast.Starred) for a in log.call.args):
        verdict.lower(DISPLAY, "its arguments come from an unpacked collection, which may hold sync_dist already")
    if len(log.call.args) > (2 if log.is_log else 1):
        verdict.lower(DISPLAY, "its options are given by position, whose order differs between versions of Lightning")
    node = key_node(log)
    if not log.is_log or node is None or isinstance(node, ast.Constant):
        return
    if isinstance(node, ast.JoinedStr) and not any(isinstance(v, ast.FormattedValue) for v in node.values):
        return
    if unknown := _unsettled(node, log, reached):
        verdict.lower(DISPLAY, f"the key is built from {unknown}: if ranks build other keys, values mix")
    else:
        verdict.lower(UNSAFE, f"right if the key {log.module.text_of(node)} is built the same on every rank")


def _unsettled(node: ast.expr, log: LogCall, reached: Entries) -> str:
    """The first part of a key that may differ between ranks: anything but a parameter that every caller gives a literal."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            continue
        if isinstance(part, ast.Name) and part.id not in ("self", "str") and not _given_literally(part.id, log, reached):
            return part.id
        if isinstance(part, ast.Call) and not (isinstance(part.func, ast.Attribute) and part.func.attr in ("format", "lower")):
            return log.module.text_of(part)
    return ""


def _given_literally(name: str, log: LogCall, reached: Entries) -> bool:
    names = [a.arg for a in log.function.args.args]
    if name not in names or not reached.steps:
        return False
    index = names.index(name) - 1
    calls = [s.call for s in reached.steps if s.call.func.attr == log.function.name]  # type: ignore[attr-defined]
    given = [next((k.value for k in c.keywords if k.arg == name), c.args[index] if index < len(c.args) else None) for c in calls]
    return bool(given) and all(isinstance(g, ast.Constant) for g in given)


def _judge_values(log: LogCall, values: list[tuple[str, Value]], verdict: Verdict) -> None:
    for key, value in values:
        named = f"{key}: " if key and len(values) > 1 else ""
        if value.kind is Kind.METRIC_RESULT:
            verdict.lower(DISPLAY, f"{named}the value is what the metric returned for this batch ({value.text}); update the "
                                   "metric and log the object itself, which reduces over ranks and batches")  # fmt: skip
        elif value.kind is Kind.LIST:
            _judge_list(log, value, verdict)
        elif value.kind is Kind.CPU:
            reason = "a CPU tensor cannot be reduced over NCCL (Lightning 2.1 and later keep it there)"
            verdict.lower(UNSAFE, f"{named}{value.text}: {reason}")
        elif value.kind is Kind.UNKNOWN:
            verdict.lower(UNSAFE, f"{named}right if the value is a plain number or a tensor on the module's device; {value.text}")
        elif value.kind is Kind.REDUCED and len(values) > 1:
            verdict.lower(UNSAFE, f"{named}{value.text}; reducing it again changes nothing under a mean")
        elif value.kind is Kind.LOCAL and value.text:
            verdict.note(value.text, log.module.path, log.call.lineno)
    reduce_fx = log.keyword("reduce_fx")
    if reduce_fx is not None:
        name = str(reduce_fx.value) if isinstance(reduce_fx, ast.Constant) else log.module.text_of(reduce_fx).rpartition(".")[2]
        if name not in ("mean", "min", "max"):
            verdict.lower(DISPLAY, f"reduce_fx={log.module.text_of(reduce_fx)}: over ranks it would be applied a second time")


def _judge_list(log: LogCall, value: Value, verdict: Verdict) -> None:
    node = logged_value(log.call)
    text = log.module.text_of(node) if node is not None else ""
    scope = Scope(log.project, log.facts, log.module, log.function)
    if isinstance(node, ast.Name):
        text = " ".join(log.module.text_of(v) for v, _ in logged_values.assigned_values(scope, node.id) if v is not None)
    if "mean" in text or ("sum(" in text and "/" in text):
        verdict.lower(UNSAFE, f"{value.text}; the mean over ranks is that of all samples only if every rank has as many")
    else:
        verdict.lower(DISPLAY, f"{value.text}; gather it over the ranks (self.all_gather) before it is worked out")


_STEP_COST = (
    "the value is also reduced at every training step, which costs a barrier and an all-reduce a step: log the epoch value "
    "under its own call (on_step=False) to avoid that"
)


def _judge_stage(log: LogCall, reached: Entries, verdict: Verdict) -> None:
    training = reached.hooks & TRAINING_HOOKS
    if not training:
        return
    place = guarded_metric_read(log.project)
    if place is not None:
        waits = "with a training value to reduce, that read waits for the other ranks; move it above the guard first"
        verdict.lower(DISPLAY, f"{place.text} ({place.path}:{place.line}): {waits}")
    if training - TRAINING_EPOCH_HOOKS and log.flag("on_step") is not False:
        monitored = "a monitor reads this key, so it should be; " if key_text(log) in monitors(log.project) else ""
        verdict.lower(UNSAFE, monitored + _STEP_COST)


def _judge_data(log: LogCall, verdict: Verdict) -> None:
    place = uneven_data(log.project)
    if place is not None:
        assumed = "right if every rank has at least one batch; one without would lack the key and the others would wait"
        verdict.lower(UNSAFE, f"{place.text} ({place.path}:{place.line}): {assumed}")
