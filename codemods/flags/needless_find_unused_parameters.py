"""DDP001: find_unused_parameters on although every parameter takes part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.loading.same_program import comes_to_training
from codemods.analysis.model.answer import Answer
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.config_judgement import needless
from codemods.analysis.model.effective_flag import effect_of
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper, anchor_of, is_on, static_graph_of
from codemods.analysis.model.flow_values import Cause
from codemods.analysis.model.loose_flags import loose_settings
from codemods.analysis.model.model_usage import Usage, Verdict, deciding, needs_flag
from codemods.analysis.model.needless_answers import (
    ROWS,
    contradicted,
    kept,
    layer_drop_family,
    loose,
    needed_anyway,
    needed_by_dead,
    off,
    off_by_line,
    off_by_probe,
    open_question,
    shared,
    tied,
)
from codemods.analysis.model.observed_errors import contradicting, needless_line, without_a_sign
from codemods.analysis.model.observed_usage import Probed, named, probed
from codemods.analysis.model.trained_model import Trained, trained_by
from codemods.analysis.model.unused_flag import settings_in
from codemods.analysis.wrapped.doubled_wraps import doubled_wraps
from codemods.analysis.wrapped.unrun_wraps import is_only_kept
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.data.printed_errors import UNUSED
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.runtime.record import replace
from codemods.store.project import Project

FLAG = (b"find_unused_parameters", b"find-unused-parameters")
DEFAULT_ON = (b"TrainingArguments(", b"strategy", b"plugins")  # where leaving the flag out may mean on


class NeedlessFindUnusedParameters(DdpCodemod):
    """`find_unused_parameters` is on although every parameter reaches the loss.

    ## What it does
    Finds the flag switched on (`DistributedDataParallel`, `DDPStrategy`, `DDPPlugin`, `DistributedDataParallelKwargs`,
    `ddp_find_unused_parameters`, `'ddp_find_unused_parameters_true'`; as a keyword, a name, in a dict, in a conditional
    expression, as the default of an option or a field, in YAML) and follows the model it is for from `forward` or
    `training_step` to the loss. Where every parameter gets there on every path the argument goes, if leaving it out is off
    (`DistributedDataParallel`, `DistributedDataParallelKwargs`, `DDPStrategy` of Lightning 2). Elsewhere the flag is switched
    off, with a comment that says why, how to see it if that changes, and how to roll back.

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
        model = DDP(model, device_ids=[device])
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
    ```

    ## Safety
    The model is followed through helpers, tables of classes, registries, constructor arguments and the classes that YAML names;
    a test on a setting is answered where the project's code, configurations and job files give it no other value.

    Safe where the whole way from each parameter to the loss stands in the project and no test, index, random number or
    unknown function lies on it. Unsafe where the proof takes something for granted, which the finding names: a loop that runs
    at least once, a freeze elsewhere in the project, a setting that keeps its value, a registry to which no other package
    adds; and where the source does not show it, but `ddpfix probe` watched at least 20 steps and saw no parameter left out
    (`--evidence`), or torch's own line in a log (`--log`) says so and the source has no sign against it. The Hugging Face
    Trainer and Lightning 1.2.4 to 1.9 take nothing for on: there `False` is written.

    ## Refuses
    - says nothing where the source does not show whether the flag is needed (a model class that is not part of the project, a
      function on the way whose effect on gradients is not known, reentrant checkpointing, a module that takes part only by a
      setting, several outputs of which nothing shows which enter the loss, a Trainer that makes the loss in its own way): only
      beside what a log or a probe says of the same model it gets a report of what the source leaves open
    - says nothing of a model that is wrapped a second time: that is what has to be put right there
    - says nothing of a script whose program makes no backward pass, one that evaluates: no step searches a graph there
    - says nothing where a module is left out in some steps: there the flag is needed; reported where it is on by the default of
      Lightning 1 alone, which version 2 takes back, and where another model is trained with the same configuration
    - says nothing where a parameter never reaches the loss and more is not known: the flag is needed as it stands
    - a parameter that never reaches the loss, where all others do: reported, with what to freeze or delete
    - `static_graph=True` beside it: left to DDP003
    - a probe that left a parameter out although the source shows that all take part, or the other way round: reported, with both
    - several outputs of which the training loop round the wrapper shows which enter the loss: unsafe
    - a value that an expression decides: reported where the model does without the flag, else nothing is said
    - the default of an option of the command line or of a dataclass: unsafe, another value may be given; reported where a job
      file gives one
    - the parameter of a helper to which its callers give different values: reported
    - a value in a YAML file: unsafe, another configuration may be put beside it
    - Lightning 1.2.4 to 1.9 and the Hugging Face Trainer, which take nothing for on: nothing is said, unless the model is shown
      to do without it
    - a flag in a dict that no wrapper of the file takes: nothing is said
    - a name that is read in several places: left to it, as an expression

    ## References
    torch 2.13 `nn/parallel/distributed.py` and `reducer.cpp`; the warning "did not find any unused parameters" is no proof
    (pytorch/pytorch#97030, huggingface/transformers#9802): it is decided in the first iteration, and an unused output
    counts as used. Two-process runs on torch 2.13, Lightning 1.9.5 and 2.6.6.
    """

    code = "DDP001"
    severity = "noise"
    subject = "Turn needless unused-parameter detection off"
    must_show = (
        "Training goes on for as many steps as it takes to meet every branch of the model, never fewer than two: the error "
        "comes in the forward pass after a step that left a parameter without a gradient."
    )
    printed = UNUSED
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
    TELLS_OPEN = False  # what the source leaves open helps nobody, unless a log or a probe says something of the same model

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if isinstance(module, TextFile):
            yield from self._configuration(module, project)
            return
        taken: dict[int, tuple[Setting, list[Wrapper]]] = {}
        doubled = {id(call) for d in doubled_wraps(project, module) for call in (d.first, d.again)}
        tests = any(part.startswith("test") for part in module.path.split("/"))
        for wrapper, here in settings_in(project, module):
            for setting in here if id(wrapper.call) not in doubled else ():
                given = setting.state is State.ON or not tests
                if given and (setting.state is State.UNKNOWN or effect_of(project, wrapper, setting) is State.ON):
                    taken.setdefault(id(setting.node), (setting, []))[1].append(wrapper)
        for setting, takers in taken.values():
            yield from self._weighed(project, setting, takers, self._judge(project, setting, takers))
        for setting in loose_settings(project, module) if self.TELLS_OPEN and not tests else ():
            yield self._say(loose(project, setting))

    def _judge(self, project: Project, setting: Setting, takers: list[Wrapper]) -> Iterator[Answer]:
        if all(is_only_kept(project, w.module, w.call) and left(w.module, w.call, "nobody runs this wrapper") for w in takers):
            return
        if all(_is_never_trained(project, w) and left(w.module, w.call, "this script makes no backward pass") for w in takers):
            return
        trained = [trained_by(project, wrapper) for wrapper in takers]
        usages = [usage for one in trained for usage in one.usages]
        static = static_graph_of(setting)
        if static is not None and is_on(static):
            return  # DDP003's: beside it the flag does nothing
        if any(needs_flag(usage) for usage in usages):
            yield from self._needed(project, setting, takers, usages)
            return
        unknown = next((one.unknown for one in trained if one.unknown), "")
        proved = bool(usages) and not unknown and all(usage.verdict is Verdict.ALL for usage in usages)
        ever = bool(usages) and not unknown and all(usage.verdict in (Verdict.ALL, Verdict.NEVER) for usage in usages)
        probe = probed(project, takers, (usage.name for usage in usages))
        if setting.state is State.UNKNOWN:
            if proved:
                yield tied(setting, usages)
        elif setting.state is State.DEFAULT:
            pinned = takers[0].framework is Framework.LIGHTNING
            if proved and not (probe is not None and probe.left_out):
                yield off(project, setting, takers, trained, probe)
            elif pinned and not ever:
                yield open_question(project, setting, usages, unknown, takers[0], probe)
        elif probe is not None and (probe.left_out or (probe.clean and not proved)):
            yield from self._probed(project, setting, takers, trained, probe, proved=proved, ever=ever)
        elif proved:
            yield off(project, setting, takers, trained, probe)
        elif ever:
            yield needed_by_dead(setting, usages)
        elif usages and not unknown and all(usage.dead for usage in usages):
            yield needed_anyway(setting, usages)
        else:
            yield open_question(project, setting, usages, unknown, takers[0], probe)

    def _needed(self, project: Project, setting: Setting, takers: list[Wrapper], usages: list[Usage]) -> Iterator[Answer]:
        """A model that needs the flag: nothing to say of one that is written, unless shapes alone decide."""
        usage = next(usage for usage in usages if needs_flag(usage))
        decision = deciding(usage)
        if decision is None or setting.state is State.UNKNOWN:
            return
        if setting.state is State.DEFAULT:
            if takers[0].framework is Framework.LIGHTNING:
                yield kept(project, setting, usage, decision)
        elif (others := [u for u in usages if not _strongly(u)]) and any(trained_by(project, t).assumed for t in takers):
            needy = next((u for u in usages if _strongly(u)), None)
            strong = deciding(needy) if needy is not None else None
            yield (
                shared(setting, needy, strong, others)
                if needy is not None and strong is not None
                else open_question(project, setting, usages, "", takers[0])
            )
        elif all(d.cause is Cause.SHAPE for u in usages if needs_flag(u) for d in [deciding(u)] if d is not None):
            yield open_question(project, setting, usages, "", takers[0])

    def _weighed(self, project: Project, setting: Setting, takers: list[Wrapper], answers: Iterator[Answer]) -> Iterator[Finding]:
        """What the source and a probe say, beside what a log says."""
        failed = contradicting(project, takers)
        lines, alone = needless_line(project, takers)
        rows = [row.row() for row in (*failed, *lines)]
        for answer in answers:
            if not rows and self._is_left_open(anchor_of(answer.setting), answer.open):
                continue
            finding = self._say(answer)
            known = replace(finding, evidence=tuple(dict.fromkeys([*rows, *finding.evidence])))
            if failed and finding.fix is not None:
                what = f"a parameter went without a gradient in the run of {failed[0].file}"
                both = f"{what}, but {_other_side(finding)}"
                yield replace(known, fix=None, reason=f"the evidence contradicts itself, nothing is changed: {both}")
            elif lines and alone and not failed and finding.fix is None and self._is_open(project, setting, takers):
                yield self._say(off_by_line(project, setting, takers, known.evidence, known.reason))
            else:
                yield known

    def _is_left_open(self, at: object, is_open: bool) -> bool:
        """True where the source leaves open whether a model needs the flag: without a log or a probe that helps nobody."""
        return is_open and not self.TELLS_OPEN

    def _is_open(self, project: Project, setting: Setting, takers: list[Wrapper]) -> bool:
        """True where neither the source nor a probe nor the family of the model has a sign that a parameter may be left out."""
        trained = [trained_by(project, wrapper) for wrapper in takers]
        probe = probed(project, takers, (usage.name for one in trained for usage in one.usages))
        if setting.state is not State.ON or (probe is not None and probe.left_out):
            return False
        homes = {wrapper.module for wrapper in takers} | {u.site.module for one in trained for u in one.usages}
        return without_a_sign(trained) and not any(layer_drop_family(home) for home in homes)

    def _say(self, answer: Answer) -> Finding:
        return self.finding(
            answer.setting.module,
            anchor_of(answer.setting),
            answer.message,
            level=answer.level,
            edits=answer.edits,
            evidence=answer.evidence,
            reason=answer.reason,
        )

    def _configuration(self, file: TextFile, project: Project) -> Iterator[Finding]:
        for setting in config_settings(file):
            judged = needless(project, setting)
            if judged is not None and not self._is_left_open(setting, judged.open):
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
    ) -> Iterator[Answer]:  # fmt: skip
        """Where a probe says more than the source, or something else."""
        usages = [usage for one in trained for usage in one.usages]
        if proved or (probe.clean and ever):
            yield contradicted(setting, usages, probe)
        elif probe.only_never:
            yield Answer(
                setting,
                f"{setting.text} is needed only because {named(probe.left_out)} of {probe.models} never reached the loss in "
                f"{probe.steps} steps of a probe",
                evidence=[*probe.evidence, *(e for usage in usages for e in usage.evidence)][:ROWS],
                reason="freeze it with requires_grad_(False) before the model is wrapped, or delete it; then the flag can go",
            )
        elif probe.clean:
            family = takers[0].framework is Framework.HF and layer_drop_family(takers[0].module)
            unknown = next((one.unknown for one in trained if one.unknown), "")
            if family:
                yield open_question(project, setting, usages, unknown, takers[0], probe)
            else:
                yield off_by_probe(project, setting, takers[0].framework, trained, probe)


def _other_side(finding: Finding) -> str:
    by_probe = any(e.kind == "probe" for e in finding.evidence)
    return "a probe left nothing out" if by_probe else "the source shows that every parameter takes part"


def _strongly(usage: Usage) -> bool:
    """True where more than the shape of what is given leaves a module out."""
    decision = deciding(usage)
    return needs_flag(usage) and decision is not None and decision.cause is not Cause.SHAPE


def _is_never_trained(project: Project, wrapper: Wrapper) -> bool:
    """True in a script of which no file makes a step; of a file without a main block other programs may train what it wraps."""
    home = wrapper.module
    script = any(is_main_block(node) for node in home.tree.body)
    return wrapper.framework is Framework.TORCH and script and not comes_to_training(project, home.path)
