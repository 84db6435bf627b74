"""May a `self.log` call be given `sync_dist=True`? Each question lowers the level and says why."""

from __future__ import annotations

import ast

from codemods.analysis.callers import Entries, family_of
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.hooks import EVALUATION_HOOKS, TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.accumulated import puts_into
from codemods.analysis.logged.cpu_entries import cpu_entry
from codemods.analysis.logged.divergent_dicts import dictionary_divergence
from codemods.analysis.logged.gathered_above import EPOCH_HOOKS, is_gathered_above
from codemods.analysis.logged.held_values import seen_to_differ
from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.log_calls import (
    LogCall,
    epoch_level,
    literal_mapping,
    literal_parameters,
    logged_value,
    reached,
    values,
)
from codemods.analysis.logged.log_keys import unsettled_parts
from codemods.analysis.logged.means import is_plain_mean, plain_extreme
from codemods.analysis.logged.monitors import watcher_of
from codemods.analysis.logged.moved_values import is_moved, takes_no_number
from codemods.analysis.logged.own_logs import reduces_by_itself
from codemods.analysis.logged.own_programs import evaluates_on_the_whole_set, nobody_fits
from codemods.analysis.logged.pending_metrics import Place as WatchedPlace
from codemods.analysis.logged.possible_keys import possible_keys
from codemods.analysis.logged.sync_stage import judge_data, judge_stage
from codemods.analysis.logged.test_programs import tests_alone
from codemods.analysis.logged.value_kinds import Kind, Value
from codemods.analysis.logged.verdict import Verdict
from codemods.analysis.metric_attributes import self_attribute
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.uniform import Condition, Place, conditions
from codemods.analysis.short_texts import shorter
from codemods.api.findings import Applicability
from codemods.files.left_alone import left

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
NEEDS_NOTHING = (Kind.METRIC_OBJECT, Kind.REDUCED, Kind.EQUAL, Kind.GAUGE)


def judge_alone(log: LogCall) -> Verdict | None:
    """The verdict on a call without the others of its key; None where it needs no reduction, or somebody has decided already."""
    key = ("sync verdict", log.module.path, log.call.lineno, log.call.col_offset)
    return log.project.keep(key, lambda: _judge(log))


def judge_promised(log: LogCall) -> Verdict | None:
    """The verdict on a call with `rank_zero_only=True`, whose number is to decide something on every rank."""
    if log.flag("rank_zero_only") is not True or is_test_file(log.module.path):
        return None
    return _judged(log)


def judge_declined(log: LogCall) -> Verdict | None:
    """The verdict on a call with `sync_dist=False` in an evaluation, whose number is seen to be the rank's own and decides."""
    if log.flag("sync_dist") is not False or is_test_file(log.module.path):
        return None
    found = reached(log)
    if found is None or not found.hooks & EVALUATION_HOOKS or watched_key(log) is None:
        _left(log, "`sync_dist=False` is written out, and no monitor is seen to decide by it")
        return None
    if all(v.kind is Kind.UNKNOWN for _, v in values(log)):
        shown = seen_to_differ(log.project, log.module, log.call, logged_value(log.call))
        if not shown and _left(log, "`sync_dist=False` is written out, and what it logs is not seen"):
            return None
    return _judged(log)


def _judge(log: LogCall) -> Verdict | None:
    if any(k.arg in ("sync_dist", "rank_zero_only") for k in log.call.keywords):
        _left(log, "`sync_dist` or `rank_zero_only` is written out: somebody has decided")
        return None
    return None if is_test_file(log.module.path) else _judged(log)


def _judged(log: LogCall) -> Verdict | None:
    found = _asked_of(log)
    if found is None:
        return None
    logged = values(log)
    if all(v.kind in NEEDS_NOTHING for _, v in logged) and _left(log, "the value is every rank's, or is reduced already"):
        return None
    if is_batch_value(log, logged) and _left(log, "a metric object gave the value: DDP104 speaks of these"):
        return None
    if _is_of_the_epoch(log, found, logged) and _left(log, "between epochs, nothing shows that it is of the rank's data"):
        return None
    if _is_drawn_in_steps(log, found) and _left(log, "it is a curve of the training's steps, and nothing decides by it"):
        return None
    if all(v.kind in (Kind.CPU, Kind.UNKNOWN) for _, v in logged) and is_gathered_above(log, found):
        unseen = any(v.kind is Kind.UNKNOWN for _, v in logged)
        if not unseen or not seen_to_differ(log.project, log.module, log.call, logged_value(log.call)):
            _left(log, "it is worked out from what was gathered over the ranks above")
            return None
    verdict = _judged_place(log, found)
    told_for_place = verdict.level is DISPLAY
    _judge_values(log, found, logged, verdict)
    if told_for_place and all(v.kind is Kind.UNKNOWN or v.kind in NEEDS_NOTHING for _, v in logged):
        _left(log, "neither what it logs nor that every rank comes here is seen")
        return None
    _judge_reduction(log, verdict)
    judge_stage(log, found, verdict)
    judge_data(log, found, verdict)
    return verdict


def _is_of_the_epoch(log: LogCall, found: Entries, logged: list[tuple[str, Value]]) -> bool:
    """True between the epochs of a training, where no batch comes, for what is not seen to be of the rank's own data.

    A margin that goes by the epoch, or a flag; the results of an evaluation come to hooks of their own.
    """
    if log.held is not None or not found.hooks <= TRAINING_EPOCH_HOOKS:
        return False
    unseen = all(v.kind in (Kind.UNKNOWN, Kind.NUMBER, *NEEDS_NOTHING) for _, v in logged)
    return unseen and not seen_to_differ(log.project, log.module, log.call, logged_value(log.call))


def _is_drawn_in_steps(log: LogCall, found: Entries) -> bool:
    """True for the curve of a training that is drawn in each step, and by which nothing decides.

    The epoch's number of rank 0 stands for all there; the reduction of each step would cost more than it is worth.
    """
    steps = bool(found.hooks) and found.hooks <= TRAINING_HOOKS - TRAINING_EPOCH_HOOKS
    return steps and log.flag("on_step") is not False and watched_key(log) is None


def is_batch_value(log: LogCall, logged: list[tuple[str, Value]]) -> bool:
    """True where a metric is logged by what it returned for the batch: sync_dist is not what that wants (DDP104)."""
    return log.is_log and log.on_self and [v.kind for _, v in logged] == [Kind.METRIC_RESULT]


def judge_as_object(log: LogCall) -> Verdict | None:
    """The verdict on a call that is to log the metric itself; None where it logs no metric's value of a batch."""
    if any(k.arg in ("sync_dist", "rank_zero_only") for k in log.call.keywords) or is_test_file(log.module.path):
        return None
    found = _asked_of(log)
    if found is None or not is_batch_value(log, values(log)):
        return None
    verdict = _judged_place(log, found)
    judge_stage(log, found, verdict, at_each_step=False)
    judge_data(log, found, verdict)
    return verdict


def _asked_of(log: LogCall) -> Entries | None:
    """The hooks of a call whose value Lightning would have to reduce; None for any other."""
    ranks = ranks_at(log.module, log.call, project=log.project)
    if ranks.some and _left(log, f"not every rank comes to this log: {ranks.value}"):
        return None
    if (found := reached(log)) is None and _left(log, "no hook of a Lightning module or callback is seen to come to this log"):
        return None
    if found is None or (_reduced_anyway(log) and _left(log, _REDUCED)):
        return None
    if _is_no_log_of_lightning(log) and _left(log, "the class has a `log` of its own, which does not hand on to Lightning's"):
        return None
    if nobody_fits(log.project) and _left(log, "the project trains by a loop of its own, and no Trainer fits anything"):
        return None
    if reduces_by_itself(log) and _left(log, "what is logged is reduced over the ranks by itself"):
        return None
    if found.hooks and found.hooks <= EVALUATION_HOOKS and evaluates_on_the_whole_set(log.project):
        _left(log, "each rank evaluates on the whole set, so all of them have the same number")
        return None
    if found.hooks and all(h.startswith(("test_", "on_test_")) for h in found.hooks) and tests_alone(log.project):
        _left(log, "each test run of the project is on one device")
        return None
    if epoch_level(log, found) or watched_step(log, found) is not None:
        return found
    _left(log, "it is logged at each step, and nothing decides by it")
    return None


_REDUCED = "the pinned Lightning is 1.4 to 1.6, which reduces epoch values over the ranks without `sync_dist`"


def _left(log: LogCall, why: str) -> bool:
    return left(log.module, log.call, why)


def _judged_place(log: LogCall, found: Entries) -> Verdict:
    verdict = Verdict()
    _judge_place(log, found, verdict)
    _judge_class(log, verdict)
    _judge_key(log, found, verdict)
    return verdict


def watched_step(log: LogCall, found: Entries) -> WatchedPlace | None:
    """What decides by the number of a training step: a callback or scheduler that monitors the key of the log."""
    if not found.hooks & TRAINING_HOOKS or found.hooks & EVALUATION_HOOKS:
        return None
    return watched_key(log)


def watched_key(log: LogCall) -> WatchedPlace | None:
    """What monitors one of the keys of the call."""
    return next((place for key in possible_keys(log) if (place := watcher_of(log.project, key, log.facts))), None)


def _reduced_anyway(log: LogCall) -> bool:
    """Lightning 1.4 to 1.6 reduced epoch values without being asked (measured on 1.6.5; removed by PR #13364)."""
    pin = lightning_pin(log.project, near=log.module.path)
    return pin is not None and pin.surely_below((1, 7)) and pin.surely_at_least((1, 4))


def _judge_place(log: LogCall, found: Entries, verdict: Verdict) -> None:
    if found.unknown:
        verdict.lower(DISPLAY, f"{found.unknown}, so it is not shown that every rank comes here")
    if "forward" in found.hooks:
        verdict.lower(DISPLAY, "forward comes here too, and who calls the model under which condition is not followed")
    literal = literal_parameters(log, found)
    standing = conditions(Place(log.project, log.module, log.facts, log.function, literal), log.call)
    for step in found.steps:
        place = Place(log.project, step.site.module, class_facts(log.project, step.site.module, step.site.node), step.function)
        standing += conditions(place, step.call)
        if ranks_at(step.site.module, step.call, project=log.project).some:
            verdict.lower(DISPLAY, f"{step.function.name} (line {step.call.lineno}) calls it on some ranks only")
    for outside in found.outside:
        if ranks_at(outside.module, outside.call, project=log.project).some:
            place_text = f"{outside.module.path}:{outside.call.lineno}"
            verdict.lower(DISPLAY, f"{place_text} calls it on some ranks only, where it would wait for the others")
    _lower_for(standing, verdict)
    hooks = ", ".join(sorted(found.hooks))
    shown = f"every rank runs {hooks}; nothing stands between its start and the call"
    verdict.note(shown, log.module.path, log.call.lineno, kind="safe")


def _lower_for(standing: list[Condition], verdict: Verdict) -> None:
    differing = [c for c in standing if not c.uniform]
    assumed = [c for c in standing if c.uniform]
    if differing:
        verdict.lower(DISPLAY, f"it stands behind {_listed(differing)}: a rank that skips it would leave the others waiting, or "
                               "values of different keys would be averaged in silence")  # fmt: skip
    elif assumed:
        verdict.lower(UNSAFE, f"right if {_listed(assumed)} goes the same way on every rank; one that skips the call would hang "
                              "the others")  # fmt: skip


def _listed(found: list[Condition]) -> str:
    text = f"{found[0].text} (line {found[0].line})"
    return text if len(found) == 1 else f"{text} and {len(found) - 1} more"


def _judge_class(log: LogCall, verdict: Verdict) -> None:
    if log.held is not None:
        verdict.lower(UNSAFE, f"right if {log.held.text} is what the Trainer runs")
    if not log.on_self:
        if place := _class_with_own_log(log):
            verdict.lower(UNSAFE, f"right if the module is not {place}, which has its own log")
        return
    for site in family_of(log.project, log.facts):
        if own := next((m for n, m in site.methods().items() if n in ("log", "log_dict")), None):
            where = f"{site.name}, {site.module.path}:{own.lineno}"
            verdict.lower(DISPLAY, f"the class has its own {own.name} ({where}): what it does with sync_dist is not known")
            break
    if log.facts.opaque:
        names = ", ".join(log.facts.opaque[:2])
        verdict.lower(UNSAFE, f"right if the base {names}, which cannot be looked into, does not override log")
    site = log.facts.lineage[-1]
    base = next((n for n in log.facts.external if n), "")
    verdict.note(f"{log.facts.lineage[0].name} is a {base}", site.module.path, site.node.lineno)


def _is_no_log_of_lightning(log: LogCall) -> bool:
    """True where the class has a method of that name that never hands on to Lightning's: another thing of the same name."""
    name = "log" if log.is_log else "log_dict"
    own = log.facts.method(name) if log.on_self else None
    return own is not None and not any(
        isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Call) and dotted(c.func.value.func) == "super"
        for c in own[0].module.calls_named("log", "log_dict") if own[0].module.function_of(c) is own[1]
    )  # fmt: skip


def _class_with_own_log(log: LogCall) -> str:
    def build() -> str:
        for path in log.project.files_containing(b"def log("):
            module = log.project.module(path)
            for node in module.nodes(ast.ClassDef) if module else ():
                named = any(isinstance(f, ast.FunctionDef) and f.name == "log" for f in node.body)
                if named and module and class_facts(log.project, module, node).is_a(Role.LIGHTNING_MODULE):
                    return f"{node.name} ({path}:{node.lineno})"
        return ""

    return log.project.memo("module with its own log", build)


# Keys


def _judge_key(log: LogCall, found: Entries, verdict: Verdict) -> None:
    if any(k.arg is None for k in log.call.keywords) or any(isinstance(a, ast.Starred) for a in log.call.args):
        verdict.lower(DISPLAY, "its arguments come from an unpacked collection, which may hold sync_dist already")
    if len(log.call.args) > (2 if log.is_log else 1):
        verdict.lower(DISPLAY, "its options are given by position, whose order differs between versions of Lightning")
    if not log.is_log and literal_mapping(log) is None:
        node = logged_value(log.call)
        text = shorter(log.module, node) if node is not None else "the dictionary"
        if (found_in := dictionary_divergence(log)) is not None:
            verdict.lower(DISPLAY, f"`{found_in.text}` (line {found_in.line}) makes the keys of {text} hang on the batch: with "
                                   "others, ranks wait for each other or get each other's values")  # fmt: skip
        verdict.lower(UNSAFE, f"right if {text} has the same keys, in the same order, on every rank")
    for part in unsettled_parts(log, literal_parameters(log, found)):
        if part.configured:
            verdict.lower(UNSAFE, f"right if {part.text} is the same on every rank: the key is built from it")
        else:
            verdict.lower(DISPLAY, f"the key is built from {part.text}: if ranks build other keys, values mix or are waited for")


# Values


def _judge_values(log: LogCall, found: Entries, logged: list[tuple[str, Value]], verdict: Verdict) -> None:
    at_end = bool(found.hooks & EPOCH_HOOKS)
    for key, value in logged:
        named = f"{key}: " if key and len(logged) > 1 else ""
        if value.kind is Kind.METRIC_RESULT:
            verdict.lower(DISPLAY, f"{named}the value is what the metric returned for this batch ({value.text}): update the "
                                   "metric and log the object itself, which reduces over ranks and batches")  # fmt: skip
        elif value.kind is Kind.LIST:
            _judge_list(log, value, verdict, at_end=at_end)
        elif at_end and not value.traced and value.kind is not Kind.REDUCED:
            text = value.text or "its source is not seen"
            verdict.lower(DISPLAY, f"{named}{text}: if it is worked out from this rank's share, a mean over ranks need not be "
                                   "the value of all the data")  # fmt: skip
        elif value.kind is Kind.CPU:
            moved = is_moved(log)
            reason = "NCCL cannot reduce a CPU tensor (Lightning before 1.4, and from 2.1 on, keeps it there)"
            advice = "right if it is moved to the device, or made a float" if moved else "log it as a float, with sync_dist=True"
            verdict.lower(UNSAFE if moved else DISPLAY, f"{named}{value.text}: {reason}; {advice}")
        elif value.kind is Kind.NUMBER and takes_no_number(log):
            verdict.lower(DISPLAY, f"{named}{value.text}: Lightning 1.0 reduces tensors alone, and raises on a number")
        elif value.kind is Kind.UNKNOWN and _has_written_keys(log):
            verdict.lower(UNSAFE, f"{named}right if the value is a number or a tensor on the module's device: {value.text}")
        elif value.kind is Kind.UNKNOWN and (place := cpu_entry(log)) is not None:
            verdict.lower(DISPLAY, f"{place}: NCCL cannot reduce a CPU tensor; where it is in this dict, give it the device")
        elif value.kind is Kind.REDUCED and len(logged) > 1:
            verdict.lower(UNSAFE, f"{named}{value.text}; reducing it again changes nothing under a mean")
        elif value.kind in (Kind.LOCAL, Kind.NUMBER) and value.text:
            verdict.note(value.text, log.module.path, log.call.lineno)


def _has_written_keys(log: LogCall) -> bool:
    return log.is_log or literal_mapping(log) is not None


def _judge_list(log: LogCall, value: Value, verdict: Verdict, *, at_end: bool) -> None:
    if not at_end:
        verdict.lower(UNSAFE, f"right if what is logged is the value of this batch: {value.text}")
        return
    node = logged_value(log.call)
    sources: list[ast.expr | None] = [node]
    if isinstance(node, ast.Name):
        sources += [b.value for b in local_values(log.project, log.module, log.function).get(node.id, [])]
    shown = sources[-1] if len(sources) == 2 else node
    extreme = plain_extreme(node) or plain_extreme(shown)
    if extreme and shown is not None and _is_filled_in_steps(log, shown) and log.is_log and log.keyword("reduce_fx") is None:
        verdict.reduce_fx = extreme  # the largest of the ranks' largest is that of all; one value a hook is what it is
        verdict.note(f"{value.text}, and its {extreme} is logged", log.module.path, log.call.lineno)
    elif is_plain_mean([source for source in sources if source is not None]):
        verdict.lower(UNSAFE, f"{value.text}: the mean over ranks is that of all samples only if every rank has as many")
    else:
        verdict.lower(DISPLAY, f"{value.text}: gather it over the ranks (self.all_gather) before the number is worked out")


def _is_filled_in_steps(log: LogCall, node: ast.expr) -> bool:
    """True where the lists hold values of batches: the best epoch of each rank is not the best epoch of all."""
    names = {name for part in ast.walk(node) if isinstance(part, ast.Attribute) and (name := self_attribute(part))}
    if not names:
        return True  # the outputs that Lightning hands to an epoch end are the steps' own
    puts = [puts_into(log.project, log.facts, name) for name in names]
    return all(of and all(put.function.name.endswith(("_step", "_batch_end")) for put in of) for of in puts)


def _judge_reduction(log: LogCall, verdict: Verdict) -> None:
    reduce_fx = log.keyword("reduce_fx")
    if log.keyword("enable_graph") is not None and log.flag("enable_graph") is not False:
        verdict.lower(UNSAFE, "right if no gradient is taken of the logged value: enable_graph keeps it in the graph")
    if reduce_fx is None:
        return
    name = str(reduce_fx.value) if isinstance(reduce_fx, ast.Constant) else dotted(reduce_fx).rpartition(".")[2]
    if name == "sum":
        verdict.lower(UNSAFE, "right if the value counts this rank's own batch: over ranks it is summed too")
    elif name not in ("mean", "min", "max"):
        verdict.lower(DISPLAY, f"reduce_fx={log.module.text_of(reduce_fx)} cannot be applied over ranks by Lightning")
