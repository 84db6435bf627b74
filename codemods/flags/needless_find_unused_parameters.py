"""DDP001: find_unused_parameters on although every parameter takes part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.config_judgement import needless
from codemods.analysis.model.effective_flag import effect_of
from codemods.analysis.model.flag_comment import off_comment
from codemods.analysis.model.grad_switches import grad_switch
from codemods.analysis.model.model_usage import Usage, Verdict, modules_of, needs_flag
from codemods.analysis.model.observed_errors import contradicting, needless_line, without_a_sign
from codemods.analysis.model.observed_usage import Probed, named, probed
from codemods.analysis.model.trained_model import Trained, seen_training, trained_by
from codemods.analysis.model.unused_flag import (
    Framework,
    Setting,
    State,
    Wrapper,
    anchor_of,
    comment_at,
    comment_column,
    is_on,
    loose_settings,
    settings_in,
    static_graph_of,
    switched,
)
from codemods.codemod import DdpCodemod
from codemods.data.find_unused_parameters import FALSE_NAMES, LAYER_DROP_FAMILIES, LIGHTNING_FALSE_NAME_FROM, ON_NAMES
from codemods.findings import Applicability, Finding
from codemods.project import Project
from codemods.source import SourceModule
from codemods.text_file import TextFile

ROWS = 30
FLAG = (b"find_unused_parameters", b"find-unused-parameters")
DEFAULT_ON = (b"TrainingArguments(", b"strategy", b"plugins")  # where leaving the flag out may mean on


class NeedlessFindUnusedParameters(DdpCodemod):
    """`find_unused_parameters` is on although every parameter reaches the loss.

    ## What it does
    Finds the flag switched on (`DistributedDataParallel`, `DDPStrategy`, `DDPPlugin`, `DistributedDataParallelKwargs`,
    `ddp_find_unused_parameters`, `'ddp_find_unused_parameters_true'`; as a keyword, a name, in a dict, in a conditional
    expression, as the default of an option or a field, in YAML) and follows the model it is for from `forward` or
    `training_step` to the loss. Where every parameter gets there on every path the flag is switched off, with a comment that
    says why, how to see it if that changes, and how to roll back.

    ## Why it matters
    With the flag on DDP walks the whole autograd graph in every step, clones the model's outputs, reduces a map of used
    parameters, and never rebuilds its buckets in the order in which gradients arrive. Measured on the CPU: 4 to 10 % of a
    step, 27 % with a large output.

    ## Example
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.relu(self.body(x)))


    def train(loader, device):
        model = Net().to(device)
        model = DDP(model, device_ids=[device], find_unused_parameters=True)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.relu(self.body(x)))


    def train(loader, device):
        model = Net().to(device)
        # Off: every parameter of Net reaches the loss in every step (module.py).
        # If that changes, TORCH_DISTRIBUTED_DEBUG=INFO names the parameters behind
        # "Expected to have finished reduction in the prior iteration". To roll back: True.
        model = DDP(model, device_ids=[device], find_unused_parameters=False)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
    ```

    ## Safety
    Safe where the whole way from each parameter to the loss stands in the project and no test, index, random number or
    unknown function lies on it. Unsafe where the proof takes something for granted, which the
    finding names: a loop that runs at least once, a freeze elsewhere in the project; and where the source does not show it,
    but `ddpfix probe` watched at least 20 steps and saw no parameter left out (`--evidence`), or torch's own line in a log
    (`--log`) says so and the source has no sign against it. `False` is written rather than
    nothing because the Hugging Face Trainer and Lightning 1.2.4 to 1.9 take nothing for on.

    ## Refuses
    - says nothing where a module is left out in some steps: there the flag is needed
    - `static_graph=True` beside it: left to DDP003
    - a model class that is not part of the project (hub models, third-party bases): told
    - a parameter that never reaches the loss: told, with what to freeze or delete
    - a probe that left a parameter out although the source shows that all take part, or the other way round: told, with both
    - a function on the way whose effect on gradients is not known: told
    - reentrant activation checkpointing: told
    - a model that takes part only by a setting: told
    - several outputs of which it is not seen which enter the loss: told
    - a Trainer that makes the loss in its own way: told
    - a value that an expression decides: told where the model does without the flag, else nothing is said
    - the default of an option of the command line or of a dataclass: unsafe, another value may be given
    - a value in a YAML file: unsafe, another configuration may be put beside it
    - Lightning 1.2.4 to 1.9 and the Hugging Face Trainer, which take nothing for on: told for the first where the version is
      pinned, nothing is said for the second, unless the model is shown to do without it
    - a flag in a dict that no wrapper of the file takes: told
    - a name that is read in several places: left to it, as an expression

    ## References
    torch 2.13 `nn/parallel/distributed.py` and `reducer.cpp`; the warning "did not find any unused parameters" is no proof
    (pytorch/pytorch#97030, huggingface/transformers#9802): it is decided in the first iteration, and an unused output
    counts as used. Two-process runs on torch 2.13, Lightning 1.9.5 and 2.6.6.
    """

    code = "DDP001"
    TRIGGERS = ((*FLAG, *DEFAULT_ON), (*FLAG, b"ightning", b"TrainingArguments("))
    # the flag, or a call that takes it as on where it is left out
    SITES = (
        re.compile(
            rb"find[_-]unused[_-]parameters|TrainingArguments\(|"
            rb"Trainer(?:\.from_argparse_args)?\([^()]*(?:\([^()]*\)[^()]*){0,6}(?:strategy|plugins)[ \t]*="
        ),
    )
    READS_TESTS = False
    TEXT = (b"find_unused_parameters",)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if isinstance(module, TextFile):
            yield from self._configuration(module, project)
            return
        taken: dict[int, tuple[Setting, list[Wrapper]]] = {}
        tests = any(part.startswith("test") for part in module.path.split("/"))
        for wrapper, here in settings_in(project, module):
            for setting in here:
                given = setting.state is State.ON or not tests
                if given and (setting.state is State.UNKNOWN or effect_of(project, wrapper, setting) is State.ON):
                    taken.setdefault(id(setting.node), (setting, []))[1].append(wrapper)
        for setting, takers in taken.values():
            yield from self._weighed(project, setting, takers, self._judge(project, setting, takers))
        for setting in () if tests else loose_settings(project, module):
            yield from self._loose(setting)

    def _judge(self, project: Project, setting: Setting, takers: list[Wrapper]) -> Iterator[Finding]:
        trained = [trained_by(project, wrapper) for wrapper in takers]
        usages = [usage for one in trained for usage in one.usages]
        static = static_graph_of(setting)
        if static is not None and is_on(static):
            return  # DDP003's: beside it the flag does nothing
        if any(needs_flag(usage) for usage in usages):
            return
        unknown = next((one.unknown for one in trained if one.unknown), "")
        proved = bool(usages) and not unknown and all(usage.verdict is Verdict.ALL for usage in usages)
        ever = bool(usages) and not unknown and all(usage.verdict in (Verdict.ALL, Verdict.NEVER) for usage in usages)
        probe = probed(project, takers, (usage.name for usage in usages))
        if setting.state is State.UNKNOWN:
            if proved:
                yield self._tied(setting, usages)
        elif setting.state is State.DEFAULT:
            pinned = takers[0].framework is Framework.LIGHTNING
            if proved and not (probe is not None and probe.left_out):
                yield self._off(project, setting, takers, trained, probe)
            elif pinned and not ever:
                yield self._told(project, setting, usages, unknown, takers[0], probe)
        elif probe is not None and (probe.left_out or (probe.clean and not proved)):
            yield from self._probed(project, setting, takers, trained, probe, proved=proved, ever=ever)
        elif proved:
            yield self._off(project, setting, takers, trained, probe)
        elif ever:
            yield self._never(setting, usages)
        else:
            yield self._told(project, setting, usages, unknown, takers[0], probe)

    def _tied(self, setting: Setting, usages: list[Usage]) -> Finding:
        """An expression decides: it may know of models that this reading does not."""
        names = ", ".join(dict.fromkeys(usage.name for usage in usages))
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} decides whether DDP searches the graph in every step; every parameter of {names} reaches the loss "
            "without it",
            evidence=[e for usage in usages for e in usage.evidence][:ROWS],
            reason="the flag is left to the expression it is tied to: where that comes to True for this model, it can be off",
        )

    def _weighed(
        self, project: Project, setting: Setting, takers: list[Wrapper], found: Iterator[Finding]
    ) -> Iterator[Finding]:
        """What the source and a probe say, beside what a log says."""
        failed = contradicting(project, takers)
        lines, alone = needless_line(project, takers)
        rows = [row.row() for row in (*failed, *lines)]
        for finding in found:
            known = replace(finding, evidence=tuple(dict.fromkeys([*rows, *finding.evidence])))
            if failed and finding.fix is not None:
                what = f"a parameter went without a gradient in the run of {failed[0].file}"
                both = f"{what}, but {_other_side(finding)}"
                yield replace(known, fix=None, reason=f"the evidence contradicts itself, nothing is changed: {both}")
            elif lines and alone and not failed and finding.fix is None and self._is_open(project, setting, takers):
                yield self._off_by_line(project, setting, takers, known)
            else:
                yield known

    def _is_open(self, project: Project, setting: Setting, takers: list[Wrapper]) -> bool:
        """True where neither the source nor a probe nor the family of the model has a sign that a parameter may be left out."""
        trained = [trained_by(project, wrapper) for wrapper in takers]
        probe = probed(project, takers, (usage.name for one in trained for usage in one.usages))
        if setting.state is not State.ON or (probe is not None and probe.left_out):
            return False
        homes = {wrapper.module for wrapper in takers} | {u.site.module for one in trained for u in one.usages}
        return without_a_sign(trained) and not any(_layer_drop_family(home) for home in homes)

    def _off_by_line(self, project: Project, setting: Setting, takers: list[Wrapper], known: Finding) -> Finding:
        """The flag off because torch's line and a source without a sign agree; both together are no proof."""
        edit = switched(setting, ON_NAMES[ast.literal_eval(setting.node)] if setting.strategy else "False")
        why = "Off: a run said that no parameter goes unused, and nothing in the source speaks against it."
        comment = off_comment(project, setting, takers[0].framework, why, column=comment_column(setting))
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} makes DDP search the graph in every step; a run said in its first step that it finds nothing",
            level=Applicability.UNSAFE,
            edits=[edit, comment_at(setting, comment)] if edit is not None else [],
            evidence=known.evidence,
            reason=f"assumes that the first step of the logged run is like all others; the source leaves it open: {known.reason}",
        )

    def _configuration(self, file: TextFile, project: Project) -> Iterator[Finding]:
        for setting in config_settings(file):
            if (judged := needless(project, setting)) is not None:
                yield self.finding(
                    file,
                    setting.span,
                    judged.message,
                    level=judged.level,
                    edits=judged.edits,
                    evidence=judged.evidence,
                    reason=judged.reason,
                )

    def _probed(
        self, project: Project, setting: Setting, takers: list[Wrapper], trained: list[Trained], probe: Probed,
        *, proved: bool, ever: bool,
    ) -> Iterator[Finding]:  # fmt: skip
        """Where a probe says more than the source, or something else."""
        usages = [usage for one in trained for usage in one.usages]
        if proved or (probe.clean and ever):
            yield self._contradicted(setting, usages, probe)
        elif probe.only_never:
            yield self.finding(
                setting.module,
                anchor_of(setting),
                f"{setting.text} is needed only because {named(probe.left_out)} of {probe.models} never reached the loss in "
                f"{probe.steps} steps of a probe",
                evidence=[*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS],
                reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; then the flag can go",
            )
        elif probe.clean:
            family = takers[0].framework is Framework.HF and _layer_drop_family(takers[0].module)
            unknown = next((one.unknown for one in trained if one.unknown), "")
            if family:
                yield self._told(project, setting, usages, unknown, takers[0], probe)
            else:
                yield self._off_by_probe(project, setting, takers[0].framework, trained, probe)

    def _contradicted(self, setting: Setting, usages: list[Usage], probe: Probed) -> Finding:
        names = ", ".join(dict.fromkeys(usage.name for usage in usages))
        never = [name for usage in usages for name in usage.never]
        source = f"{named(never)} of {names} never reaches the loss" if never else f"every parameter of {names} reaches the loss"
        seen = f"left {named(probe.left_out)} out" if probe.left_out else f"left nothing out in {probe.steps} steps"
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} makes DDP search the graph in every step; the evidence for or against it contradicts itself",
            evidence=[*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS],
            reason=f"the source shows that {source}, but the run that was probed {seen}: nothing is changed",
        )

    def _off(
        self, project: Project, setting: Setting, takers: list[Wrapper], trained: list[Trained], probe: Probed | None
    ) -> Finding:
        framework = takers[0].framework
        trains = all(seen_training(project, wrapper, one) for wrapper, one in zip(takers, trained, strict=True))
        usages = [usage for one in trained for usage in one.usages]
        level, reason = _level(project, setting, usages, trains=trains)
        to = _off_name(project, setting) if setting.strategy else "False"
        edit = switched(setting, to) if to else None
        names = ", ".join(dict.fromkeys(usage.name for usage in usages))
        message = (
            f"{_shown(project, setting, framework)} makes DDP search the graph in every step, and every parameter of {names} "
            "reaches the loss without it"
        )
        where = "reaches the loss of training_step" if _is_lightning(framework) else "reaches the loss in every step"
        why = f"Off: every parameter of {usages[0].name} {where} ({usages[0].site.module.path})."
        comment = off_comment(project, setting, framework, why, column=comment_column(setting))
        evidence = [e for one in trained for e in one.evidence] + [e for usage in usages for e in usage.evidence]
        evidence = [*(probe.evidence if probe is not None else ()), *evidence]
        edits = [edit, comment_at(setting, comment)] if edit is not None else []
        return self.finding(
            setting.module,
            anchor_of(setting),
            message,
            level=level,
            edits=edits,
            evidence=dict.fromkeys(evidence[:ROWS]),
            reason=reason,
        )

    def _off_by_probe(
        self, project: Project, setting: Setting, framework: Framework, trained: list[Trained], probe: Probed
    ) -> Finding:
        edit = switched(setting, ON_NAMES[ast.literal_eval(setting.node)] if setting.strategy else "False")
        why = f"Off: in {probe.steps} steps of a probe every parameter of {probe.models} had a path to the loss."
        comment = off_comment(project, setting, framework, why, column=comment_column(setting))
        usages = [usage for one in trained for usage in one.usages]
        open_questions = [one.unknown for one in trained if one.unknown] + [r for usage in usages for r in usage.reasons]
        doubt = f"; the source alone does not show it ({open_questions[0]})" if open_questions else ""
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} makes DDP search the graph in every step, and in {probe.steps} steps of a probe no parameter of "
            f"{probe.models} was left out",
            level=Applicability.UNSAFE,
            edits=[edit, comment_at(setting, comment)] if edit is not None else [],
            evidence=dict.fromkeys([*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS]),
            reason=f"assumes that what was probed is what is trained: {probe.chance()}{doubt}",
        )

    def _never(self, setting: Setting, usages: list[Usage]) -> Finding:
        usage = next(u for u in usages if u.verdict is Verdict.NEVER)
        names = ", ".join(usage.never[:4]) + (" …" if len(usage.never) > 4 else "")
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} is needed only because {names} of {usage.name} never reaches the loss",
            evidence=usage.evidence,
            reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; then the flag can go",
        )

    def _told(
        self, project: Project, setting: Setting, usages: list[Usage], unknown: str, wrapper: Wrapper, probe: Probed | None = None
    ) -> Finding:
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
        if wrapper.framework is Framework.HF and (dropping := _layer_drop_family(wrapper.module)):
            text += f"; models of the family {dropping} drop layers at random by default, and need the flag then"
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{_shown(project, setting, wrapper.framework)} makes DDP search the graph in every step; the source does not show "
            "whether the model needs it",
            evidence=[*(probe.evidence if probe is not None else ()), *(e for usage in usages for e in usage.evidence)][:ROWS],
            reason=text,
        )

    def _loose(self, setting: Setting) -> Iterator[Finding]:
        yield self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} switches the search for unused parameters on for whatever model is trained with it",
            reason="what takes this value is not seen in this file, so the model behind it is not known",
        )


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


def _layer_drop_family(module: SourceModule) -> str:
    """A family of transformers models named in the file that drops layers at random by default, "" if none is."""
    text = module.text.lower()
    found = (re.search(rf"\b{family}(for|model|config|[-_/\"'.]|\b)", text) for family in LAYER_DROP_FAMILIES)
    return next((match.group().strip("-_/\"'.") for match in found if match), "")


def _other_side(finding: Finding) -> str:
    by_probe = "steps of a probe" in finding.message
    return "a probe left nothing out" if by_probe else "the source shows that every parameter takes part"
