"""What DDP001 says of a setting of the flag that is on: off, and on what proof; or why nobody can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.answer import Answer
from codemods.analysis.model.flag_comment import off_comment
from codemods.analysis.model.flag_edits import comment_column, left_out, with_comment
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper
from codemods.analysis.model.flow_values import Decision
from codemods.analysis.model.grad_switches import grad_switch
from codemods.analysis.model.model_usage import Entry, Usage, Verdict, left_out_where, modules_of, names_of
from codemods.analysis.model.observed_usage import Probed, named
from codemods.analysis.model.signatures import returned
from codemods.analysis.model.trained_model import Trained, seen_training
from codemods.api.findings import Applicability, Asked, Evidence
from codemods.data.find_unused_parameters import FALSE_NAMES, LAYER_DROP_FAMILIES, LIGHTNING_FALSE_NAME_FROM, ON_NAMES
from codemods.files.source import SourceModule
from codemods.store.project import Project

ROWS = 30


def tied(setting: Setting, usages: list[Usage]) -> Answer:
    """An expression decides: it may know of models that this reading does not."""
    names = ", ".join(dict.fromkeys(usage.name for usage in usages))
    return Answer(
        setting,
        f"{setting.text} decides whether DDP searches the graph in every step; every parameter of {names} reaches the loss "
        "without it",
        evidence=[e for usage in usages for e in usage.evidence][:ROWS],
        reason="the flag is left to the expression it is tied to: where that comes to True for this model, it can be off",
    )


def off(project: Project, setting: Setting, takers: list[Wrapper], trained: list[Trained], probe: Probed | None) -> Answer:
    framework = takers[0].framework
    trains = all(seen_training(project, wrapper, one) for wrapper, one in zip(takers, trained, strict=True))
    usages = [usage for one in trained for usage in one.usages]
    level, reason = _level(project, setting, usages, trains=trains)
    to = _off_name(project, setting) if setting.strategy else "False"
    names = ", ".join(dict.fromkeys(usage.name for usage in usages))
    message = (
        f"{_shown(project, setting, framework)} makes DDP search the graph in every step, and every parameter of {names} "
        f"{'takes part in what its forward returns' if _by_output(usages) else 'reaches the loss'} without it"
    )
    where = "reaches the loss of training_step" if _is_lightning(framework) else "reaches the loss in every step"
    where = "takes part in each output" if _by_output(usages) else where
    why = f"Off: every parameter of {usages[0].name} {where} ({usages[0].site.module.path})."
    comment = off_comment(project, setting, framework, why, column=comment_column(setting))
    evidence = [e for one in trained for e in one.evidence] + [e for usage in usages for e in usage.evidence]
    evidence = [*(probe.evidence if probe is not None else ()), *evidence]
    edits = left_out(project, setting, framework) or (with_comment(setting, to, comment) if to else ())
    return Answer(
        setting,
        message,
        level=level,
        edits=edits,
        evidence=dict.fromkeys(evidence[:ROWS]),
        reason=reason,
    )


def _by_output(usages: list[Usage]) -> bool:
    """True where one output was followed, not the loss: where a step leaves that out it leaves out the whole wrapper.

    Measured on torch 2.13: DDP then waits for no gradient of it, and says nothing.
    """
    return all(usage.entry is Entry.FORWARD and not usage.many for usage in usages)


def off_by_line(project: Project, setting: Setting, takers: list[Wrapper], evidence: Iterable[Evidence], open_end: str) -> Answer:
    """The flag off because torch's line and a source without a sign agree; both together are no proof."""
    to = ON_NAMES[ast.literal_eval(setting.node)] if setting.strategy else "False"
    why = "Off: a run said that no parameter goes unused, and nothing in the source speaks against it."
    comment = off_comment(project, setting, takers[0].framework, why, column=comment_column(setting))
    return Answer(
        setting,
        f"{setting.text} makes DDP search the graph in every step; a run said in its first step that it finds nothing",
        level=Applicability.UNSAFE,
        edits=with_comment(setting, to, comment),
        evidence=evidence,
        reason=f"assumes that the first step of the logged run is like all others; the source leaves it open: {open_end}",
    )


def off_by_probe(project: Project, setting: Setting, framework: Framework, trained: list[Trained], probe: Probed) -> Answer:
    to = ON_NAMES[ast.literal_eval(setting.node)] if setting.strategy else "False"
    why = f"Off: in {probe.steps} steps of a probe every parameter of {probe.models} had a path to the loss."
    comment = off_comment(project, setting, framework, why, column=comment_column(setting))
    usages = [usage for one in trained for usage in one.usages]
    open_questions = [one.unknown for one in trained if one.unknown] + [r for usage in usages for r in usage.reasons]
    doubt = f"; the source alone does not show it ({open_questions[0]})" if open_questions else ""
    return Answer(
        setting,
        f"{setting.text} makes DDP search the graph in every step, and in {probe.steps} steps of a probe no parameter of "
        f"{probe.models} was left out",
        level=Applicability.UNSAFE,
        edits=with_comment(setting, to, comment),
        evidence=dict.fromkeys([*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS]),
        reason=f"assumes that what was probed is what is trained: {probe.chance()}{doubt}",
    )


def needed_by_dead(setting: Setting, usages: list[Usage]) -> Answer:
    usage = next(u for u in usages if u.verdict is Verdict.NEVER)
    return Answer(
        setting,
        f"{setting.text} is needed only because {names_of(usage.never)} of {usage.name} never reaches the loss",
        evidence=usage.evidence,
        reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; then the flag can go"
        + "".join(f"; assumes that {text}" for text in usage.assumptions[:2]),
    )


def needed_anyway(setting: Setting, usages: list[Usage]) -> Answer:
    """Whatever the source leaves open, a parameter that no step uses needs the flag."""
    usage = usages[0]
    open_end = "".join(f" ({reason})" for reason in usage.reasons[:1])
    return Answer(
        setting,
        f"{setting.text} is needed as long as {names_of(usage.dead)} of {usage.name} never reaches the loss",
        evidence=[e for one in usages for e in one.evidence][:ROWS],
        reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; whether the flag can go then the "
        f"source does not show{open_end}" + "".join(f"; assumes that {text}" for text in usage.assumptions[:2]),
        open=True,
    )


def shared(setting: Setting, usage: Usage, decision: Decision, others: list[Usage]) -> Answer:
    """A configuration in Python that models with and without the need are trained with."""
    names = ", ".join(other.name for other in others)
    return Answer(
        setting,
        f"{setting.text} makes DDP search the graph in every step for each model of this configuration, and {usage.name} "
        f"needs it: {modules_of(decision)} takes no part {left_out_where(decision)}",
        evidence=[
            Evidence("static", f"`{decision.text}` decides", decision.path, decision.line, asked=Asked.BRANCHES),
            *usage.evidence[:8],
        ],
        reason=f"the value depends on the model: for {names}, trained with it as well, the source does not show a need",
    )


def kept(project: Project, setting: Setting, usage: Usage, decision: Decision) -> Answer:
    """A default that a model needs and that goes away with the next major version of Lightning."""
    names = modules_of(decision)
    decided = Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line, asked=Asked.BRANCHES)
    return Answer(
        setting,
        f"{_shown(project, setting, Framework.LIGHTNING)} makes DDP search the graph in every step, and {usage.name} needs it: "
        f"{names} takes no part {left_out_where(decision)}",
        evidence=[decided, *usage.evidence[:8]],
        reason="Lightning 2 leaves it off: write it out before that, or let the module always take part and gate what it returns",
    )


def open_question(
    project: Project, setting: Setting, usages: list[Usage], unknown: str, wrapper: Wrapper, probe: Probed | None = None
) -> Answer:
    decisions = [(usage, d) for usage in usages for d in usage.skipped if d.cause.varies]
    open_questions = {
        known: [
            f"whether {modules_of(d)} of {usage.name} takes part is up to `{d.text}` ({d.path}:{d.line})"
            for usage, d in decisions if known != (d.names <= usage.opaque)
        ]
        for known in (True, False)
    }  # fmt: skip
    # of a module that is not known itself, that is what has to be said first
    reasons = [*([unknown] if unknown else []), *open_questions[True]]
    reasons += [*(reason for usage in usages for reason in usage.reasons), *open_questions[False]]
    text = "; ".join(dict.fromkeys(reasons[:3])) or "the model is not followed to a class"
    if wrapper.framework is Framework.HF and (dropping := layer_drop_family(wrapper.module)):
        text += f"; models of the family {dropping} drop layers at random by default, and need the flag then"
    return Answer(
        setting,
        f"{_shown(project, setting, wrapper.framework)} makes DDP search the graph in every step; the source does not show "
        "whether the model needs it",
        evidence=[*(probe.evidence if probe is not None else ()), *(e for usage in usages for e in usage.evidence)][:ROWS],
        reason=text,
        open=probe is None,
    )


def contradicted(setting: Setting, usages: list[Usage], probe: Probed) -> Answer:
    names = ", ".join(dict.fromkeys(usage.name for usage in usages))
    never = [name for usage in usages for name in usage.never]
    source = f"{named(never)} of {names} never reaches the loss" if never else f"every parameter of {names} reaches the loss"
    seen = f"left {named(probe.left_out)} out" if probe.left_out else f"left nothing out in {probe.steps} steps"
    return Answer(
        setting,
        f"{setting.text} makes DDP search the graph in every step; the evidence for or against it contradicts itself",
        evidence=[*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS],
        reason=f"the source shows that {source}, but the run that was probed {seen}: nothing is changed",
    )


def loose(project: Project, setting: Setting) -> Answer:
    """The flag in data of which nothing in the file is seen to take it."""
    takers = _who_asks(project, setting)
    what = (
        f"{takers[0]} takes it, for every model that comes there" if takers else "what takes this value is not seen in this file"
    )
    reason = f"{what}: which of them needs it is not in the code" if takers else f"{what}, so the model behind it is not known"
    return Answer(
        setting,
        f"{setting.text} switches the search for unused parameters on for whatever model is trained with it",
        evidence=[
            Evidence("static", f"{text} takes it", text.rpartition(":")[0], int(text.rpartition(":")[2])) for text in takers
        ],
        reason=reason,
        open=True,
    )


def _who_asks(project: Project, setting: Setting) -> list[str]:
    """`path:line` of the calls of the method that returns the setting."""
    function = setting.module.function_of(setting.node)
    if function is None or setting.module.class_of(function) is None:
        return []
    if not any(setting.node is n for value in returned(function, setting.module) for n in ast.walk(value)):
        return []
    out = []
    for path in project.files_containing(f".{function.name}(".encode()):
        module = project.module(path) if not is_test_file(path) else None
        out += [f"{path}:{call.lineno}" for call in module.calls_named(function.name)] if module is not None else []
    return out[:4]


def _shown(project: Project, setting: Setting, framework: Framework) -> str:
    """The setting for a message; where nothing is written, what the framework makes of that."""
    if setting.state is State.ON:
        return setting.text
    pin = lightning_pin(project, near=setting.module.path) if framework is Framework.LIGHTNING else None
    by = pin.text if pin is not None else framework.value
    return f"{setting.text if setting.strategy else setting.keyword + ' left out'} (on by default in {by})"


def _off_name(project: Project, setting: Setting) -> str:
    """The strategy's name with the flag off, "" where the pinned Lightning knows none."""
    name = str(ast.literal_eval(setting.node))
    if setting.state is State.ON:
        return ON_NAMES[name]
    pin = lightning_pin(project, near=setting.module.path)
    return FALSE_NAMES.get(name, "") if pin is not None and pin.surely_at_least(LIGHTNING_FALSE_NAME_FROM) else ""


def _is_lightning(framework: Framework) -> bool:
    return framework in (Framework.LIGHTNING, Framework.FABRIC)


def _level(project: Project, setting: Setting, usages: list[Usage], *, trains: bool) -> tuple[Applicability, str]:
    """How sure the proof is, and what it takes for granted."""
    assumptions = [a for usage in usages for a in usage.assumptions] + [setting.overridable] * bool(setting.overridable)
    if place := grad_switch(project, setting.module, *(usage.site.module for usage in usages)):
        assumptions.append(f"{place} does not freeze or release parameters of this model during training")
    if not trains:
        assumptions.append("the output of forward enters the loss")
    if assumptions:
        return Applicability.UNSAFE, "assumes that " + "; ".join(dict.fromkeys(assumptions))
    return Applicability.SAFE, ""


def layer_drop_family(module: SourceModule) -> str:
    """A family of transformers models named in the file that drops layers at random by default, "" if none is."""
    text = module.text.lower()
    found = (re.search(rf"\b{family}(for|model|config|[-_/\"'.]|\b)", text) for family in LAYER_DROP_FAMILIES)
    return next((match.group().strip("-_/\"'.") for match in found if match), "")
