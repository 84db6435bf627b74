"""DDP002: find_unused_parameters off although a module is left out in some steps."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.answer import Answer
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.config_judgement import missing
from codemods.analysis.model.dead_inside import dead_in, dead_inside
from codemods.analysis.model.dead_under_devices import dead_under_devices
from codemods.analysis.model.effective_flag import is_on
from codemods.analysis.model.flag_setting import Setting, State, Wrapper, anchor_of, static_graph_of
from codemods.analysis.model.flow_values import Cause
from codemods.analysis.model.implicit_strategy import implicit_setting, kept_to_one
from codemods.analysis.model.missing_answers import (
    LEVELS,
    dead,
    failed,
    seen_by_probe,
    skipping,
    tied_but_needed,
    tied_to_a_test,
)
from codemods.analysis.model.model_usage import Entry, Verdict, needs_flag
from codemods.analysis.model.observed_errors import failure_of, judged
from codemods.analysis.model.observed_usage import Probed, probed
from codemods.analysis.model.plain_accelerators import plain_accelerators
from codemods.analysis.model.trained_model import Trained, seen_training, trained_by
from codemods.analysis.model.unasked_arguments import without_argument
from codemods.analysis.model.unused_flag import settings_in, wrappers
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.data.printed_errors import UNUSED
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project

FLAG = (b"find_unused_parameters", b"find-unused-parameters")


class MissingFindUnusedParameters(DdpCodemod):
    """`find_unused_parameters` is off although a module is left out in some steps.

    ## What it does
    Follows the model from `forward` or `training_step` to the loss. Where a module with parameters is skipped in some steps
    and the flag is off, by what is written or by the default of the pinned version, it is switched on, in the spelling of
    that version. In a conditional expression only the DDP arm changes. A Lightning Trainer that may use several devices and
    names no strategy takes DDP by itself: it is given the strategy's name. Where a LightningModule optimises by hand, each
    `manual_backward` is a backward pass that has to reach every parameter (a critic's loss on a detached picture does not).
    `BertModel` and its kin end in a pooler; where a class reads their hidden states alone, it gets no gradient in any step.

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
    step fails on one process too, and is repaired with it.) Unsafe where an index, the data, the step or the rank decides, or
    where the version of Lightning is not pinned: a model that needs the flag would fail without it in its second step, but the
    branch may never be taken. Unsafe as well for a module that no step uses at all, which is better frozen, and where only a
    probe (`--evidence`) saw a parameter left out. Safe where a log (`--log`) shows that the run stopped for want of the flag,
    one wrapper alone can have said it, and the model is read: no reentrant checkpointing, no output of a class of
    its own.

    ## Refuses
    - a module that one of several outputs leaves out in some steps, where the loss of the training loop has it by another one in
      all of them: nothing is said
    - Lightning below 1.2, 1.2.4 to 1.9 and the Hugging Face Trainer, where leaving the flag out means on: nothing is said
    - a Trainer without a strategy: unsafe, it may never meet several devices; nothing is said where `devices=1` keeps it to one,
      nor of a layer that no step uses where the Trainer names no devices, or a file may freeze the layer or swap the model
    - a model put together from a registry that others may add to, from an annotation or from a configuration, and a variant of
      it that is chosen when it is built: unsafe, with what is assumed
    - the flag among unnamed arguments of DDP: reported where the pinned torch does not say which of them it is
    - `static_graph=True` beside it: reported, the graph is not static
    - reentrant activation checkpointing in the model fails with the flag on: `use_reentrant=False` is written along with it
      (unsafe); reported where that cannot be, or a torch below 1.11 is pinned
    - an output of a class of its own: DDP does not look into it for tensors; unsafe
    - a Lightning version that is not pinned to one side of 2.0: unsafe, with the version it assumes
    - a module that is left out by an argument of forward or by another test: nothing is said, training may never do it; unsafe
      where the argument has a default and no call of the project hands anything else over
    - a layer that never reaches the loss, where a test in the constructor decides whether it is made: nothing is said
    - a module that is left out by a setting: nothing is said, the setting that is trained with may always take it in
    - a value that an expression decides, `True if several else False` too: reported where the model needs the flag; nothing is
      said of a LightningModule's own settings for the sake of another model, nor of a key that its file and the YAML files
      beside it set to True
    - an index that goes over all names of the settings, and what a loop leaves to its next round: nothing is said
    - the default of an option of the command line, a value in a YAML file: unsafe; reported where a job file gives another
    - a configuration that models with and without the need may be trained with: reported
    - a model that is only evaluated (no backward pass near the wrapper): nothing is said
    - a probe that left a parameter out although the source shows that all take part: reported, with both sides
    - a log's error where the source shows that all take part, or that another message in the log contradicts: reported, with both
    - a log's error that several wrappers can have said, or of a model that is not read: unsafe
    - a module that never takes part: unsafe, and said that freezing it would do without the flag
    - a pooler of transformers where an answer goes whole to other code, where a file may freeze, take or replace it, or where
      nothing shows that the checkpoint has one: nothing is said
    - a layer of which a part of the model makes nothing, where that part may be frozen, swapped or hooked: nothing is said
    - an `Accelerator()` that is given handlers or a plugin: nothing is said; without, what never takes part is reported
    - a left-out module that is made outside the project, it may be frozen: unsafe
    - a strategy name that cannot be turned round in Lightning 1: reported
    - a repository's own tests: nothing is said
    - layer drop written as a multiplication by a mask, `torch.where`: nothing is said, the graph stays whole

    ## References
    Lightning-AI/pytorch-lightning#16611 (the default became False in 2.0); two-process runs on torch 2.13, Lightning 1.6.5,
    1.9.5 and 2.6.6.
    """

    code = "DDP002"
    severity = "crash"
    subject = "Let DDP look for unused parameters"
    must_show = "Training goes on past the step that failed, for enough steps to take the rare branch."
    printed = (*UNUSED, "Expected to mark a variable ready only once")
    TRIGGERS = (
        (b"lightning", b"DistributedDataParallel", b"Accelerator(", *FLAG),
        (b"DistributedDataParallel", b"Accelerator(", b"Trainer", b"Fabric", b"DDPStrategy", b"DDPPlugin", *FLAG),
        (
            b"DistributedDataParallel(",
            b"DDP(",
            b"ddp",
            b"DDPStrategy",
            b"DDPPlugin",
            b"DistributedDataParallelKwargs",
            b"Trainer(",
            b"Accelerator(",
            *FLAG,
        ),
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
            tied = [s for s in here if s.state is State.UNKNOWN] + list(filter(None, map(tied_to_a_test, here)))
            yield from map(self._say, tied_but_needed(project, wrapper, tied))
            settings = [s for s in here if s.state in (State.OFF, State.DEFAULT) and tied_to_a_test(s) is None]
            settings = [s for s in settings if not is_on(project, wrapper, s) and id(s.node) not in seen]
            seen |= {id(s.node) for s in settings}
            if settings:
                yield from map(self._say, self._weighed(project, wrapper, settings))
        for wrapper in wrappers(project, module):
            yield from map(self._say, self._unnamed(project, wrapper))
        for wrapper, sites in plain_accelerators(project, module):
            found = (u for site in sites if (u := dead_in(project, site, Entry.FORWARD)) is not None)
            if (usage := next(found, None)) is not None:
                yield self._say(dead(project, wrapper, wrapper.settings[0], usage, Trained(), None))

    def _weighed(self, project: Project, wrapper: Wrapper, settings: list[Setting]) -> Iterator[Answer]:
        """What the source, a probe and a log say of the settings of one wrapper."""
        trained = trained_by(project, wrapper)
        probe = probed(project, [wrapper], (usage.name for usage in trained.usages))
        failure = failure_of(project, wrapper)
        if probe is None and failure is None and not seen_training(project, wrapper, trained):
            left(wrapper.module, settings[0].node, "no backward pass is seen near the wrapper, which may only evaluate")
            return
        for setting in settings:
            found = list(self._judge(project, wrapper, setting, trained, probe, alone=len(settings) == 1))
            if not found and probe is not None and probe.left_out and not _was_on(setting, probe):
                found.append(seen_by_probe(project, wrapper, setting, trained, probe))
            if failure is not None:
                level = judged(failure, setting, wrapper, trained, probe, alone=len(settings) == 1)
                found = [failed(wrapper, setting, trained, failure, found, level)]
            yield from found

    def _unnamed(self, project: Project, wrapper: Wrapper) -> Iterator[Answer]:
        """A Trainer without a strategy, which may never meet several devices: what differs by step, or is surely left out."""
        setting = implicit_setting(wrapper)
        if setting is None or kept_to_one(project, wrapper) is not None or is_on(project, wrapper, setting):
            return
        trained = trained_by(project, wrapper)
        if (unused := dead_under_devices(project, wrapper, trained)) is not None:
            yield dead(project, wrapper, setting, unused, trained, None)
            return
        usage = next((u for u in trained.usages if needs_flag(u)), None)
        decision = next((d for d in usage.skipped if d.cause in LEVELS and d.cause is not Cause.SHAPE), None) if usage else None
        if usage is None or decision is None or not decision.names - usage.opaque:
            return
        probe = probed(project, [wrapper], (u.name for u in trained.usages))
        yield skipping(project, wrapper, setting, usage, decision, trained, probe, alone=True)

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
    ) -> Iterator[Answer]:
        ordered = sorted(trained.usages, key=lambda usage: not needs_flag(usage))
        for usage in ordered:
            if usage.verdict is Verdict.SOMETIMES:
                decision = next((d for d in usage.skipped if d.cause in LEVELS), None)
                sure = usage.dead and not trained.unknown and static_graph_of(setting) is None and probe is None
                if decision is not None and sure and decision.cause is not Cause.RANDOM:
                    yield dead(project, wrapper, setting, usage, trained, probe)
                    return
                if decision is not None:
                    yield skipping(project, wrapper, setting, usage, decision, trained, probe, alone=alone)
                    return
                unasked = without_argument(project, wrapper, usage) if static_graph_of(setting) is None else None
                if unasked is not None and not trained.unknown:
                    yield dead(project, wrapper, setting, unasked, trained, probe)
                    return
                why = ", ".join(dict.fromkeys(d.cause.value for d in usage.skipped))
                left(wrapper.module, setting.node, "a part of {} is left out by {}: training may never do it", usage.name, why)
                continue
            if usage.verdict is Verdict.NEVER and not trained.unknown and static_graph_of(setting) is None:
                if probe is None or not any(row.sometimes for row in probe.rows):
                    yield dead(project, wrapper, setting, usage, trained, probe)
                return
            if trained.unknown or usage.verdict is Verdict.UNKNOWN:
                which = "which model it is" if trained.unknown else f"what {usage.name} makes use of"
                left(wrapper.module, setting.node, "it is not known {}: what never takes part is not reported then", which)
            if usage.verdict is Verdict.UNKNOWN and not trained.unknown and static_graph_of(setting) is None and probe is None:
                if (part := dead_inside(project, usage.site)) is not None:
                    yield dead(project, wrapper, setting, part, trained, probe)
                    return


def _was_on(setting: Setting, probe: Probed) -> bool:
    """True where nothing is written and the run that was probed had the flag on, by the default of its version."""
    return setting.state is State.DEFAULT and any(row.flag for row in probe.rows)
