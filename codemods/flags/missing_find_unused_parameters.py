"""DDP002: find_unused_parameters off although a module is left out in some steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import Pin, lightning_pin
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.config_judgement import missing
from codemods.analysis.model.effective_flag import effect_of
from codemods.analysis.model.flow_values import Cause, Decision
from codemods.analysis.model.model_usage import Usage, Verdict, modules_of, needs_flag
from codemods.analysis.model.observed_errors import Failure, failure_of, judged
from codemods.analysis.model.observed_usage import Probed, named, probed
from codemods.analysis.model.trained_model import Trained, seen_training, trained_by
from codemods.analysis.model.unused_flag import (
    Framework,
    Setting,
    State,
    Wrapper,
    anchor_of,
    settings_in,
    static_graph_of,
    switched,
)
from codemods.codemod import DdpCodemod
from codemods.data.find_unused_parameters import (
    LIGHTNING_ERROR,
    LIGHTNING_TRUE_NAME_FROM,
    OFF_NAMES,
    TORCH_ERROR,
)
from codemods.findings import Applicability, Evidence, Finding, lowest
from codemods.project import Project
from codemods.source import SourceModule
from codemods.text_file import TextFile

FLAG = (b"find_unused_parameters", b"find-unused-parameters")

# What decides whether a module takes part, and how far that may be trusted.
_LEVELS = {
    Cause.RANDOM: Applicability.SAFE,
    Cause.INDEX: Applicability.UNSAFE,
    Cause.DATA: Applicability.UNSAFE,
    Cause.SCHEDULE: Applicability.UNSAFE,
    Cause.RANK: Applicability.UNSAFE,
}


class MissingFindUnusedParameters(DdpCodemod):
    """`find_unused_parameters` is off although a module is left out in some steps.

    ## What it does
    Follows the model from `forward` or `training_step` to the loss. Where a module with parameters is skipped in some steps
    and the flag is off, by what is written or by the default of the pinned version, it is switched on, in the spelling of
    that version. In a conditional expression only the DDP arm changes.

    ## Why it matters
    A parameter without a gradient leaves DDP waiting for it: the first such step trains on gradients that were not averaged,
    and the next forward raises "Expected to have finished reduction in the prior iteration" (Lightning 2: "parameters that
    were not used in producing the loss"), or hangs where the ranks skip different modules.

    ## Example
    ```python
    import random

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.text = nn.Linear(4, 8)

        def forward(self, x, tokens):
            h = self.body(x)
            if random.random() > 0.1:
                h = h + self.text(tokens)
            return h


    def train(loader, device):
        model = DDP(Net().to(device), device_ids=[device])
        for x, tokens in loader:
            model(x, tokens).mean().backward()
    ```

    ## Use instead
    ```python
    import random

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.text = nn.Linear(4, 8)

        def forward(self, x, tokens):
            h = self.body(x)
            if random.random() > 0.1:
                h = h + self.text(tokens)
            return h


    def train(loader, device):
        model = DDP(Net().to(device), device_ids=[device], find_unused_parameters=True)
        for x, tokens in loader:
            model(x, tokens).mean().backward()
    ```

    ## Safety
    Safe where a random number drawn in the model's own code decides whether a registered module takes part, the class and
    the wrapper are both plain, and the default of the framework's version is known. With one process nothing changes: the
    flag acts in DDP only. (Lightning wraps the model on one device as well where `strategy="ddp"` asks for it: there the same
    step fails on one process too, and is mended with it.) Unsafe where an index, the data, the step or the rank decides, or
    where the version of Lightning is not pinned: a model that needs the flag would fail without it in its second step, but the
    branch may never be taken. Unsafe as well where only a probe (`--evidence`) saw a parameter left out. Safe where a log
    (`--log`) shows that the run stopped for want of the flag, one wrapper alone can have said it, and the model is read: no
    reentrant checkpointing, no output of a class of its own.

    ## Refuses
    - Lightning 1.2.4 to 1.9 and the Hugging Face Trainer, where leaving the flag out means on: nothing is said
    - `static_graph=True` beside it: told, the graph is not static
    - reentrant activation checkpointing in the model: told, it fails with the flag on
    - an output of a class of its own: DDP does not look into it for tensors; unsafe
    - a Lightning version that is not pinned to one side of 2.0: unsafe, with the version it assumes
    - a module that is left out by an argument of forward or by another test: nothing is said, training may never do it
    - a module that is left out by a setting: told where the flag is written as off, else nothing is said
    - a value that an expression decides: told where the model needs the flag
    - the default of an option of the command line, a value in a YAML file: unsafe
    - a configuration that models with and without the need may be trained with: told
    - a model that is only evaluated (no backward pass near the wrapper): nothing is said
    - a probe that left a parameter out although the source shows that all take part: told, with both sides
    - a log's error where the source shows that all take part, or that another message in the log contradicts: told, with both
    - a log's error that several wrappers can have said, or of a model that is not read: unsafe
    - a module that never takes part: told, freezing it is better
    - a left-out module that is made outside the project, it may be frozen: unsafe
    - a strategy name that cannot be turned round in Lightning 1: told
    - a repository's own tests: nothing is said
    - layer drop written as a multiplication by a mask, `torch.where`: nothing is said, the graph stays whole

    ## References
    Lightning-AI/pytorch-lightning#16611 (the default became False in 2.0); two-process runs on torch 2.13, Lightning 1.6.5,
    1.9.5 and 2.6.6.
    """

    code = "DDP002"
    TRIGGERS = (
        (b"lightning", b"DistributedDataParallel", *FLAG),
        (b"DistributedDataParallel", b"Trainer", b"Fabric", b"DDPStrategy", b"DDPPlugin", *FLAG),
        (b"DistributedDataParallel(", b"DDP(", b"ddp", b"DDPStrategy", b"DDPPlugin", b"DistributedDataParallelKwargs", *FLAG),
    )
    READS_TESTS = False
    TEXT = (b"find_unused_parameters", b"strategy")

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        if isinstance(module, TextFile):
            yield from self._configuration(module, project)
            return
        seen: set[int] = set()
        for wrapper, here in settings_in(project, module):
            yield from self._tied(project, wrapper, [s for s in here if s.state is State.UNKNOWN])
            settings = [s for s in here if s.state in (State.OFF, State.DEFAULT)]
            settings = [s for s in settings if effect_of(project, wrapper, s) is not State.ON and id(s.node) not in seen]
            seen |= {id(s.node) for s in settings}
            if settings:
                trained = trained_by(project, wrapper)
                probe = probed(project, [wrapper], (usage.name for usage in trained.usages))
                failure = failure_of(project, wrapper)
                if probe is None and failure is None and not seen_training(project, wrapper, trained):
                    continue
                for setting in settings:
                    found = list(self._judge(project, wrapper, setting, trained, probe, alone=len(settings) == 1))
                    if not found and probe is not None and probe.left_out and not _was_on(setting, probe):
                        found.append(self._probed(project, wrapper, setting, trained, probe))
                    if failure is not None:
                        level = judged(failure, setting, wrapper, trained, probe, alone=len(settings) == 1)
                        found = [self._failed(wrapper, setting, trained, failure, found, level)]
                    yield from found

    def _configuration(self, file: TextFile, project: Project) -> Iterator[Finding]:
        for setting in config_settings(file):
            if (judged := missing(project, setting)) is not None:
                yield self.finding(
                    file,
                    setting.span,
                    judged.message,
                    level=judged.level,
                    edits=judged.edits,
                    evidence=judged.evidence,
                    reason=judged.reason,
                )

    def _judge(
        self, project: Project, wrapper: Wrapper, setting: Setting, trained: Trained, probe: Probed | None, *, alone: bool
    ) -> Iterator[Finding]:
        for usage in trained.usages:
            if usage.verdict is Verdict.SOMETIMES:
                decision = next((d for d in usage.skipped if d.cause in _LEVELS), None)
                if decision is not None:
                    yield self._skipping(project, wrapper, setting, usage, decision, trained, probe, alone=alone)
                return
            if usage.verdict is Verdict.NEVER and not trained.unknown and static_graph_of(setting) is None:
                if probe is None or not any(row.sometimes for row in probe.rows):
                    yield self._never(setting, usage, probe)
                return
        if setting.state is State.OFF and not trained.assumed:
            by_setting = ((u, d) for u in trained.usages for d in u.skipped if d.cause is Cause.CONFIG)
            yield from (self._by_setting(setting, *found) for found in islice(by_setting, 1))

    def _by_setting(self, setting: Setting, usage: Usage, decision: Decision) -> Finding:
        names = modules_of(decision)
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} holds for every configuration, and {names} of {usage.name} takes part only where `{decision.text}` "
            f"({decision.path}:{decision.line}): with a configuration that leaves it out DDP stops in the second step",
            evidence=[Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line)],
            reason="make the module only where it is used, freeze it before the wrap, or let the setting decide over the flag",
        )

    def _tied(self, project: Project, wrapper: Wrapper, settings: list[Setting]) -> Iterator[Finding]:
        """An expression decides over the flag of a model that needs it."""
        trained = trained_by(project, wrapper) if settings else Trained()
        usage = next((u for u in trained.usages if needs_flag(u)), None)
        decision = next((d for d in usage.skipped if d.cause in _LEVELS), None) if usage is not None else None
        if usage is None or decision is None or not seen_training(project, wrapper, trained):
            return
        for setting in settings:
            yield self.finding(
                setting.module,
                anchor_of(setting),
                f"{modules_of(decision)} of {usage.name} takes no part in steps that `{decision.text}` decides "
                f"({decision.path}:{decision.line}), and {setting.text} decides whether DDP looks for it",
                evidence=[Evidence("static", f"`{decision.text}` decides", decision.path, decision.line), *usage.evidence[:8]],
                reason="the flag is left to the expression it is tied to: for this model it has to come to True",
            )

    def _skipping(
        self, project: Project, wrapper: Wrapper, setting: Setting, usage: Usage, decision: Decision, trained: Trained,
        probe: Probed | None, *, alone: bool,
    ) -> Finding:  # fmt: skip
        level, reason = _level(project, wrapper, setting, usage, decision, trained, alone=alone)
        to = OFF_NAMES.get(str(ast.literal_eval(setting.node)), "") if setting.strategy else "True"
        edit = switched(setting, to) if to and level is not Applicability.DISPLAY else None
        if edit is None and level is not Applicability.DISPLAY:
            level, reason = Applicability.DISPLAY, "there is no plain place to write the flag here"
        lightning = wrapper.framework is Framework.LIGHTNING
        error = LIGHTNING_ERROR if lightning else TORCH_ERROR
        names = modules_of(decision)
        message = (
            f"{names} of {usage.name} takes no part in steps that `{decision.text}` decides "
            f"({decision.path}:{decision.line}): with the flag off DDP stops there (“{error}”)"
        )
        evidence = [Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line)]
        evidence += probe.evidence if probe is not None else ()
        evidence += [*trained.evidence, *usage.evidence[:8], *_version(project, wrapper)]
        return self.finding(
            setting.module,
            anchor_of(setting),
            message,
            level=level,
            edits=[edit] if edit is not None else [],
            evidence=evidence,
            reason=reason,
        )

    def _probed(self, project: Project, wrapper: Wrapper, setting: Setting, trained: Trained, probe: Probed) -> Finding:
        """The flag for parameters that a probe saw left out, unless the source shows that all take part."""
        all_used = bool(trained.usages) and not trained.unknown and all(u.verdict is Verdict.ALL for u in trained.usages)
        to = OFF_NAMES.get(str(ast.literal_eval(setting.node)), "") if setting.strategy else "True"
        edit = switched(setting, to) if to else None
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
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{named(probe.left_out)} of {probe.models} had no path to the loss in steps of a probe: with the flag off DDP stops "
            f"in the step after (“{error}”)",
            level=level,
            edits=[edit] if edit is not None else [],
            evidence=[*probe.evidence, *(e for u in trained.usages for e in u.evidence[:8]), *_version(project, wrapper)],
            reason=reason,
        )

    def _failed(
        self, wrapper: Wrapper, setting: Setting, trained: Trained, failure: Failure, found: list[Finding],
        judgement: tuple[Applicability, str],
    ) -> Finding:  # fmt: skip
        """The flag for a run that stopped for want of it; `found`: what the source and a probe say of the same setting."""
        level, reason = judgement
        to = OFF_NAMES.get(str(ast.literal_eval(setting.node)), "") if setting.strategy else "True"
        edit = switched(setting, to) if to else None
        if edit is None and level is not Applicability.DISPLAY:
            level, reason = Applicability.DISPLAY, "there is no plain place to write the flag here"
        error = LIGHTNING_ERROR if wrapper.framework is Framework.LIGHTNING else TORCH_ERROR
        who = failure.parameters or "a parameter"
        message = f"the run of {failure.files} stopped with “{error}”: {who} went without a gradient, and the flag is off"
        own = [f"{u.name}: {', '.join(u.never[:4])} never reaches the loss" for u in trained.usages if u.verdict is Verdict.NEVER]
        if own and level is not Applicability.DISPLAY:
            reason = "; ".join(r for r in (reason, f"{own[0]}: freezing it before the wrap would do without the flag") if r)
        said = [e for finding in found for e in finding.evidence] or [e for u in trained.usages for e in u.evidence[:8]]
        return self.finding(
            setting.module,
            anchor_of(setting),
            message if not found else f"{found[0].message}; {message}",
            level=level,
            edits=[edit] if edit is not None else [],
            evidence=dict.fromkeys([*failure.evidence, *said]),
            reason=reason,
        )

    def _never(self, setting: Setting, usage: Usage, probe: Probed | None) -> Finding:
        names = ", ".join(usage.never[:4]) + (" …" if len(usage.never) > 4 else "")
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{names} of {usage.name} never reaches the loss: with the flag off DDP stops in the second step",
            evidence=[*(probe.evidence if probe is not None else ()), *usage.evidence],
            reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; the flag would only hide it",
        )


def _was_on(setting: Setting, probe: Probed) -> bool:
    """True where nothing is written and the run that was probed had the flag on, by the default of its version."""
    return setting.state is State.DEFAULT and any(row.flag for row in probe.rows)


def _level(
    project: Project, wrapper: Wrapper, setting: Setting, usage: Usage, decision: Decision, trained: Trained, *, alone: bool
) -> tuple[Applicability, str]:
    """How far the fix may be trusted, and the first thing that lowers it."""
    if static := static_graph_of(setting):
        text = setting.module.text_of(static)
        return Applicability.DISPLAY, f"{text} stands beside it, and this graph is not static: take that out first"
    if usage.checkpoints:
        text = f"reentrant checkpointing ({usage.checkpoints[0]}) fails with the flag on: use_reentrant=False first"
        return Applicability.DISPLAY, text
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    if setting.strategy and pin is not None and pin.surely_below(LIGHTNING_TRUE_NAME_FROM):
        return Applicability.DISPLAY, "write DDPStrategy(find_unused_parameters=True): Lightning 1 knows no name for it"
    doubts: list[tuple[Applicability, str]] = [(_LEVELS[decision.cause], _decided_by(decision))]
    if setting.overridable:
        doubts.append((Applicability.UNSAFE, f"assumes that {setting.overridable}"))
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
    return level, next((text for at, text in doubts if at is level), "") if level is not Applicability.SAFE else ""


def _surely_two(pin: Pin | None) -> bool:
    return pin is not None and pin.surely_at_least(LIGHTNING_TRUE_NAME_FROM)


def _decided_by(decision: Decision) -> str:
    return f"assumes that {decision.cause.value} leaves the module out in some training step"


def _version(project: Project, wrapper: Wrapper) -> list[Evidence]:
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    if pin is None or not _surely_two(pin):
        return []
    return [Evidence("version", f"{pin.text}: the flag is off by default", pin.path, pin.line)]
