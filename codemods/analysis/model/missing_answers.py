"""What DDP002 says of a setting of the flag that is off: on, and by what evidence; or what has to be repaired first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.frameworks import Pin, lightning_pin
from codemods.analysis.model.answer import Answer
from codemods.analysis.model.checkpoint_kinds import checkpoint_repairs
from codemods.analysis.model.flag_edits import chosen_by, switched
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper, static_graph_of
from codemods.analysis.model.flow_values import Cause, Decision
from codemods.analysis.model.implicit_strategy import only_on_several
from codemods.analysis.model.model_usage import Usage, Verdict, left_out_where, modules_of, needs_flag, never_of
from codemods.analysis.model.observed_errors import Failure
from codemods.analysis.model.observed_usage import Probed, named
from codemods.analysis.model.own_settings import is_for_another, is_given_on
from codemods.analysis.model.tied_alike import is_on_where_made
from codemods.analysis.model.trained_model import Trained, seen_training, trained_by
from codemods.api.findings import Applicability, Asked, Edit, Evidence, SetKeyword, lowest
from codemods.data.find_unused_parameters import (
    LIGHTNING_ERROR,
    LIGHTNING_TRUE_NAME_FROM,
    OFF_NAMES,
    STRATEGY_CLASS_FROM,
    TORCH_ERROR,
)
from codemods.runtime.record import replace
from codemods.store.project import Project

ON_NAME = "ddp_find_unused_parameters_true"
# What decides whether a module takes part, and how far that may be trusted.
LEVELS = {
    Cause.RANDOM: Applicability.SAFE,
    Cause.INDEX: Applicability.UNSAFE,
    Cause.DATA: Applicability.UNSAFE,
    Cause.SHAPE: Applicability.UNSAFE,
    Cause.SCHEDULE: Applicability.UNSAFE,
    Cause.RANK: Applicability.UNSAFE,
    Cause.TURN: Applicability.UNSAFE,
}


def tied_to_a_test(setting: Setting) -> Setting | None:
    """`True if several else False` as one setting, which its test decides: somebody has thought of the flag there."""
    whole = chosen_by(setting) if setting.state is State.OFF else None
    text = f"{setting.keyword}={setting.module.text_of(whole)}" if whole is not None else ""
    return replace(setting, state=State.UNKNOWN, node=whole, text=text, call=None) if whole is not None else None


def tied_but_needed(project: Project, wrapper: Wrapper, settings: list[Setting]) -> Iterator[Answer]:
    """An expression decides over the flag of a model that needs it."""
    trained = trained_by(project, wrapper) if settings else Trained()
    for setting in settings if seen_training(project, wrapper, trained) else ():
        usage = next((u for u in trained.usages if needs_flag(u) and not is_for_another(project, setting, u)), None)
        decision = next((d for d in usage.skipped if d.cause in LEVELS), None) if usage is not None else None
        if usage is None or decision is None or is_on_where_made(setting, usage) or is_given_on(project, setting):
            continue
        yield Answer(
            setting,
            f"{modules_of(decision)} of {usage.name} takes no part {left_out_where(decision)}, "
            f"and {setting.text} decides whether DDP looks for it",
            evidence=[
            Evidence("static", f"`{decision.text}` decides", decision.path, decision.line, asked=Asked.BRANCHES),
            *usage.evidence[:8],
        ],
            reason="the flag is left to the expression it is tied to: for this model it has to come to True",
        )


def skipping(
    project: Project, wrapper: Wrapper, setting: Setting, usage: Usage, decision: Decision, trained: Trained,
    probe: Probed | None, *, alone: bool,
) -> Answer:  # fmt: skip
    level, reason = _level(project, wrapper, setting, usage, decision, trained, alone=alone)
    edit = _on(setting) if level is not Applicability.DISPLAY else None
    if edit is None and level is not Applicability.DISPLAY:
        level, reason = Applicability.DISPLAY, "there is no plain place to write the flag here"
    lightning = wrapper.framework is Framework.LIGHTNING
    error = LIGHTNING_ERROR if lightning else TORCH_ERROR
    names = modules_of(decision)
    message = (
        f"{names} of {usage.name} takes no part {left_out_where(decision)}: "
        f"with the flag off DDP stops there (“{error}”)"
    )
    evidence = [Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line, asked=Asked.BRANCHES)]
    evidence += probe.evidence if probe is not None else ()
    evidence += [*trained.evidence, *usage.evidence[:8], *_version(project, wrapper)]
    return Answer(
        setting,
        message,
        level=level,
        edits=[edit, *checkpoint_repairs(project, usage).edits] if edit is not None else [],
        evidence=evidence,
        reason=reason,
    )


def seen_by_probe(project: Project, wrapper: Wrapper, setting: Setting, trained: Trained, probe: Probed) -> Answer:
    """The flag for parameters that a probe saw left out, unless the source shows that all take part."""
    all_used = bool(trained.usages) and not trained.unknown and all(u.verdict is Verdict.ALL for u in trained.usages)
    edit = _on(setting)
    level = Applicability.UNSAFE
    reason = "assumes that what was probed is what is trained"
    if probe.only_never:
        reason += "; freezing these parameters before the wrap, or deleting them, would do without the flag"
    if all_used:
        names = ", ".join(usage.name for usage in trained.usages)
        level, edit = Applicability.DISPLAY, None
        reason = (
            f"the evidence contradicts itself: the source shows that every parameter of {names} reaches the loss, but the "
            f"run that was probed left {named(probe.left_out)} out: nothing is changed"
        )
    elif static := static_graph_of(setting):
        level, edit = Applicability.DISPLAY, None
        reason = f"{setting.module.text_of(static)} stands beside it: take that out first"
    elif any(row.reentrant for row in probe.rows):
        level, edit = Applicability.DISPLAY, None
        reason = "reentrant checkpointing fails with the flag on: use_reentrant=False first"
    elif edit is None:
        level, reason = Applicability.DISPLAY, "there is no plain place to write the flag here"
    error = LIGHTNING_ERROR if wrapper.framework is Framework.LIGHTNING else TORCH_ERROR
    return Answer(
        setting,
        f"{named(probe.left_out)} of {probe.models} had no path to the loss in steps of a probe: with the flag off DDP stops "
        f"in the step after (“{error}”)",
        level=level,
        edits=[edit] if edit is not None else [],
        evidence=[*probe.evidence, *(e for u in trained.usages for e in u.evidence[:8]), *_version(project, wrapper)],
        reason=reason,
    )


def failed(
    wrapper: Wrapper, setting: Setting, trained: Trained, failure: Failure, found: list[Answer],
    judgement: tuple[Applicability, str],
) -> Answer:  # fmt: skip
    """The flag for a run that stopped for want of it; `found`: what the source and a probe say of the same setting."""
    level, reason = judgement
    edit = _on(setting)
    if edit is None and level is not Applicability.DISPLAY:
        level, reason = Applicability.DISPLAY, "there is no plain place to write the flag here"
    error = LIGHTNING_ERROR if wrapper.framework is Framework.LIGHTNING else TORCH_ERROR
    who = failure.parameters or "a parameter"
    message = f"the run of {failure.files} stopped with “{error}”: {who} went without a gradient, and the flag is off"
    own = [f"{u.name}: {', '.join(u.never[:4])} never reaches the loss" for u in trained.usages if u.verdict is Verdict.NEVER]
    if own and level is not Applicability.DISPLAY:
        reason = "; ".join(r for r in (reason, f"{own[0]}: freezing it before the wrap would do without the flag") if r)
    said = [e for finding in found for e in finding.evidence] or [e for u in trained.usages for e in u.evidence[:8]]
    return Answer(
        setting,
        message if not found else f"{found[0].message}; {message}",
        level=level,
        edits=[edit] if edit is not None else [],
        evidence=dict.fromkeys([*failure.evidence, *said]),
        reason=reason,
    )


def dead(project: Project, wrapper: Wrapper, setting: Setting, usage: Usage, trained: Trained, probe: Probed | None) -> Answer:
    """The flag for what no step uses: it lets the run go on; freezing, or deleting, does without it."""
    refused = _refused(project, wrapper, setting, usage)
    edit = None if refused else _on(setting)
    if edit is None and not refused:
        refused = "there is no plain place to write the flag here"
    others = [u.name for u in trained.usages if u.site != usage.site]
    assumed = [*usage.assumptions, *([f"not only {', '.join(others)} is trained with it"] if others else [])]
    assumed += [setting.overridable] * bool(setting.overridable)
    freezing = "freezing it with requires_grad_(False) before the model is wrapped, or deleting it, does without the flag"
    better = usage.instead or freezing
    return Answer(
        setting,
        f"{never_of(usage, usage.dead or usage.never)}: with the flag off DDP stops in the second step",
        level=Applicability.DISPLAY if edit is None else Applicability.UNSAFE,
        edits=[edit] if edit is not None else [],
        evidence=[*(probe.evidence if probe is not None else ()), *usage.evidence, *_version(project, wrapper)],
        reason="; ".join([*([refused] if refused else []), better, *(f"assumes that {text}" for text in assumed[:3])]),
    )


def _on(setting: Setting) -> Edit | None:
    """The edit that switches the flag on; None where there is no plain place for it."""
    if not setting.strategy:
        return switched(setting, "True")
    if setting.node is setting.call:
        return SetKeyword(setting.module.path, setting.module.span(setting.call), "strategy", only_on_several(setting, ON_NAME))
    to = OFF_NAMES.get(str(ast.literal_eval(setting.node)), "")
    return switched(setting, to) if to else None


def _level(
    project: Project, wrapper: Wrapper, setting: Setting, usage: Usage, decision: Decision, trained: Trained, *, alone: bool
) -> tuple[Applicability, str]:
    """How far the fix may be trusted, and the first thing that lowers it."""
    if refused := _refused(project, wrapper, setting, usage):
        return Applicability.DISPLAY, refused
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    doubts: list[tuple[Applicability, str]] = [(LEVELS[decision.cause], _decided_by(decision))]
    if setting.overridable:
        doubts.append((Applicability.UNSAFE, f"assumes that {setting.overridable}"))
    if usage.taken:
        doubts.append((Applicability.UNSAFE, f"assumes that {usage.taken[0]}"))
    if all("(" in name for name in decision.names):
        doubts.append(
            (Applicability.UNSAFE, "assumes that the variant of the model that leaves it out is the one that is trained")
        )
    if trained.assumed:
        doubts.append((Applicability.UNSAFE, f"assumes that {trained.assumed}"))
    if trained.unknown:
        doubts.append((Applicability.UNSAFE, f"assumes that the wrapper takes no other model ({trained.unknown})"))
    if not alone or len(trained.usages) > 1:
        doubts.append((Applicability.UNSAFE, "several wrappers or models fit, and each needs its own answer"))
    if usage.wrapped:
        doubts.append((Applicability.UNSAFE, f"forward returns a {usage.wrapped}, which DDP may not look into for tensors"))
    if decision.names <= usage.opaque:
        doubts.append((Applicability.UNSAFE, "the module is made outside the project and may be frozen"))
    if wrapper.framework is Framework.LIGHTNING and setting.state is State.DEFAULT and not _surely_two(pin):
        doubts.append((Applicability.UNSAFE, "assumes Lightning 2.0 or newer, which the project does not pin"))
    level = lowest(*(d[0] for d in doubts))
    first = next((text for at, text in doubts if at is level), "") if level is not Applicability.SAFE else ""
    if said := checkpoint_repairs(project, usage).said:
        return Applicability.UNSAFE, "; ".join(text for text in (said, first) if text)
    return level, first


def _refused(project: Project, wrapper: Wrapper, setting: Setting, usage: Usage) -> str:
    """What has to be repaired before the flag can be on, "" where nothing has to."""
    if static := static_graph_of(setting):
        return f"{setting.module.text_of(static)} stands beside it, and this graph is not static: take that out first"
    if text := checkpoint_repairs(project, usage).refused:
        return text
    if wrapper.framework is Framework.ACCELERATE and setting.call is None:
        return "the Accelerator takes the flag as `kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)]`"
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    if setting.strategy and pin is not None and pin.surely_below(LIGHTNING_TRUE_NAME_FROM):
        named = "DDPPlugin" if pin.surely_below(STRATEGY_CLASS_FROM) else "DDPStrategy"
        return f"write {named}(find_unused_parameters=True): Lightning 1 knows no name for it"
    return ""


def _surely_two(pin: Pin | None) -> bool:
    return pin is not None and pin.surely_at_least(LIGHTNING_TRUE_NAME_FROM)


def _decided_by(decision: Decision) -> str:
    if decision.cause is Cause.TURN:
        return "assumes that all the backward passes of training_step are run"
    return f"assumes that {decision.cause.value} leaves the module out in some training step"


def _version(project: Project, wrapper: Wrapper) -> list[Evidence]:
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    if pin is None or not _surely_two(pin):
        return []
    return [Evidence("version", f"{pin.text}: the flag is off by default", pin.path, pin.line)]
