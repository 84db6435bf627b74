"""DDP902: the same as DDP901 where the value comes from a job file, a command, or the default of an option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.flag_edits import NoEdit, add_flag, set_value
from codemods.analysis.trainer.argument_files import Keyed, keys_in
from codemods.analysis.tuning.call_proposals import processes_for, proposed
from codemods.analysis.tuning.job_runs import Processes, Run, Value, runs_in, runs_with_file
from codemods.analysis.tuning.judgement import (
    Proposal,
    batch_proposal,
    left_alone,
    logging_proposal,
    workers_proposal,
)
from codemods.analysis.tuning.profiles import ACCUMULATION, BATCH, DEFAULTS, LOGGING, NAMES, WORKERS, Tuning
from codemods.analysis.tuning.training_calls import training_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import AddEntry, Applicability, Edit, Evidence, Finding, ReplaceExpression, Span
from codemods.files.source import SourceModule
from codemods.files.text_entries import Table
from codemods.files.text_file import TEXT_KINDS, TextFile
from codemods.store.project import Project

_OTHERS = ("ddp_bucket_cap_mb", "dataloader_pin_memory", "save_total_limit", WORKERS)


class JobFileTuning(DdpCodemod):
    """A job file, a command or an option's default that makes several processes wait for each other, or for their data.

    ## What it does
    What DDP901 does in keywords, in the layer that really decides: a flag in a `command:` text, a shell script or a Makefile; a
    key of the YAML or JSON file that the script's parser reads; the default of the option, where no job gives it. A flag wins
    over a file, a file over a default: what another layer overrides is left alone. Comments, quotes, folded texts and line
    continuations stay as they are.

    With `ddpfix tune --world-size N` the batch is split for N processes, and the launcher's own number follows.

    ## Why it matters
    A job of which each process takes a batch of 2, four times before each step, and logs every step, waits more than it works:
    two such processes were seen to be 1.2 times as fast as one.

    ## Example
    ```python
    import argparse

    from transformers import Trainer, TrainingArguments


    def train(model, train_set):
        parser = argparse.ArgumentParser()
        parser.add_argument("--logging_steps", type=int, default=1)
        options = parser.parse_args()
        args = TrainingArguments("out", logging_steps=options.logging_steps)
        Trainer(model=model, args=args, train_dataset=train_set).train()
    ```

    ## Use instead
    ```python
    import argparse

    from transformers import Trainer, TrainingArguments


    def train(model, train_set):
        parser = argparse.ArgumentParser()
        parser.add_argument("--logging_steps", type=int, default=5)
        options = parser.parse_args()
        args = TrainingArguments("out", logging_steps=options.logging_steps)
        Trainer(model=model, args=args, train_dataset=train_set).train()
    ```

    ## Safety
    As for [DDP901](training-arguments-tuning.md): never unless asked for; safe for the log, unsafe for batch,
    accumulation and workers. The effective batch is shown before and after, with the number of processes that the launcher is
    reported. Unsafe, too, where it is assumed which mapping of a file the training arguments are made of.

    ## Refuses
    - all that DDP901 refuses, for the script that the command starts
    - a value that the shell decides (`$BATCH`)
    - a key of a file that a command overrides by a flag
    - a default of an option where one job gives the batch and leaves the accumulation to it
    - a DeepSpeed or Accelerate file of the command fixes the same number
    - a command that starts one process: its batch is nobody's business here, only its log
    - a script that is not in the repository: nothing is said

    ## References
    `HfArgumentParser` and TRL's `TrlParser`: flags win over the file. The figures are those of DDP901.
    """

    code = "DDP902"
    severity = "noise"
    subject = "Tune the job where its values are decided"
    must_show = (
        "The arguments that the job prints hold the new values, the first step fits into the device's memory, and the loss after "
        "as many steps is the same."
    )
    printed = ("CUDA out of memory",)
    TRIGGERS = ((b"Arguments(", b"Config("), (b"add_argument", b"dataclass", b"HfArgumentParser"))
    READS_TESTS = False
    TEXT = (b"batch", b"accum", b"logging", b"python", b"torchrun", b"accelerate", b"deepspeed")
    TEXT_KINDS = TEXT_KINDS
    opt_in = True

    def __init__(self, tuning: Tuning | None = None, *, jobs: Tuning | None = None) -> None:
        """jobs: what is asked for in job files, where that is not what is asked for in the defaults of options."""
        self.tuning = tuning or Tuning()
        self.jobs = jobs or self.tuning

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        if isinstance(module, TextFile):
            for run in runs_in(project, module):
                yield from self._in_command(module, project, run)
            yield from self._in_mappings(module, project)
            return
        for call in training_calls(project, module):
            for found in proposed(call, self.tuning):
                if found.layer == "option":
                    yield self._made(module, module.span(found.node), found.proposal, found.edits, found.evidence)

    # Commands

    def _in_command(self, file: TextFile, project: Project, run: Run) -> Iterator[Finding]:
        script = project.module(run.script)
        if script is None:
            return
        processes = run.processes()
        values = {name: run.value(name) for name in NAMES}
        flags = {f.field: f.value for f in run.command.flags}
        log = values[LOGGING]
        if log.flag is not None:
            given = {k: v for k, v in flags.items() if v is not None}
            if (proposal := logging_proposal(project, script, log.value, self.jobs, given)) is not None:
                yield self._command(file, run, (LOGGING,), values, proposal, processes)
        yield from self._batch(file, project, script, run, values, processes)
        workers = values[WORKERS]
        if workers.flag is not None or (run.parses and workers.layer == "script"):
            proposal = workers_proposal(project, script, workers.value, processes.local, self.jobs)
            if proposal is not None:
                yield self._command(file, run, (WORKERS,), values, proposal, processes)
        yield from self._left_in_command(file, run, processes)

    def _batch(
        self, file: TextFile, project: Project, script: SourceModule, run: Run, values: Mapping[str, Value], processes: Processes
    ) -> Iterator[Finding]:
        two = (values[BATCH], values[ACCUMULATION])
        if not processes.launched or not any(v.flag for v in two):
            return
        if unknown := next((v for v in two if v.value is None and v.why), None):
            why = f"{unknown.why}: what batch x accumulation comes to is not shown"
            proposal: Proposal | None = Proposal("batch x accumulation", Applicability.DISPLAY, {}, why)
        else:
            proposal = batch_proposal(project, script, two[0].value, two[1].value, processes, self.jobs)
        if proposal is not None:
            if proposal.values and (fixed := _fixed_elsewhere(run)):
                proposal = proposal.but(fixed)
            yield self._command(file, run, (BATCH, ACCUMULATION), values, proposal, processes)

    def _command(
        self, file: TextFile, run: Run, names: Sequence[str], values: Mapping[str, Value], proposal: Proposal,
        processes: Processes,
    ) -> Finding:  # fmt: skip
        edits: list[Edit] = []
        changed = [n for n in names if proposal.values.get(n, values[n].value) != values[n].value]
        made = [_flag_edit(run, n, values[n], proposal.values[n]) for n in changed]
        wanted = self.jobs.world_size
        if changed and BATCH in names and wanted and processes.world and wanted != processes.world:
            made.append(
                set_value(run.command, processes.flag, str(wanted)) if processes.flag else NoEdit(f"{processes.text} stays")
            )
        for edit in made:
            if isinstance(edit, NoEdit):
                proposal, edits = proposal.but(edit.why), []
                break
            edits.append(edit)
        at = next((values[n].flag for n in names if values[n].flag), None)
        first = run.command.words[0]
        span = run.command.span_of(at) if at else run.command.span(first.start, first.end)
        evidence = [Evidence("static", f"{n} is {values[n].value}: {values[n].text}") for n in names]
        if processes.world:
            evidence.append(Evidence("static", f"{processes.world} processes: {processes.text}", file.path, span.line))
        return self._made(file, span, proposal, edits, evidence)

    def _left_in_command(self, file: TextFile, run: Run, processes: Processes) -> Iterator[Finding]:
        given: dict[str, object] = {}
        for name in _OTHERS:
            flag = run.command.flag(run.flag_name(name) or name)
            if flag is not None and flag.value is not None:
                given[name] = int(flag.value) if flag.value.isdigit() else flag.value.lower() == "true" or flag.value
        if told := "; ".join(left_alone(given, processes.local, self.jobs)):
            first = next(f for f in run.command.flags if f.field in given)
            yield self._made(file, run.command.span_of(first), Proposal("left as it is", Applicability.DISPLAY, {}, told))

    # Mappings

    def _in_mappings(self, file: TextFile, project: Project) -> Iterator[Finding]:
        by_table: dict[int, list[Keyed]] = {}
        for keyed in keys_in(project, file, NAMES):
            by_table.setdefault(id(keyed.table), []).append(keyed)
        for group in by_table.values():
            yield from self._in_mapping(file, project, group)

    def _in_mapping(self, file: TextFile, project: Project, group: Sequence[Keyed]) -> Iterator[Finding]:
        table, runs = group[0].table, runs_with_file(project, file)
        script = next((m for r in runs if (m := project.module(r.script))), file)
        processes = processes_for(runs, self.jobs)
        numbers = {n: _number(table, n) for n in NAMES}
        here = {k.entry.key for k in group}
        given: dict[str, object] = {e.key: _plain(e.value, e.kind) for e in table.entries}
        if LOGGING in here:
            proposal = logging_proposal(project, script, numbers[LOGGING], self.jobs, given)
            if proposal is not None:
                yield self._key(file, group, (LOGGING,), numbers, proposal, runs)
        if here & {BATCH, ACCUMULATION}:
            proposal = batch_proposal(project, script, numbers[BATCH], numbers[ACCUMULATION], processes, self.jobs)
            if proposal is not None:
                yield self._key(file, group, (BATCH, ACCUMULATION), numbers, proposal, runs)
        if told := "; ".join(left_alone(given, processes.local, self.jobs)):
            first = next(e for e in table.entries if e.key in _OTHERS)
            yield self._made(file, first.span, Proposal("left as it is", Applicability.DISPLAY, {}, told))

    def _key(
        self, file: TextFile, group: Sequence[Keyed], names: Sequence[str], numbers: Mapping[str, int | None], proposal: Proposal,
        runs: Sequence[Run],
    ) -> Finding:  # fmt: skip
        table = group[0].table
        keyed = next(k for k in group if k.entry.key in names)
        over = next((r.value(n) for r in runs for n in names if r.value(n).layer == "flag"), None)
        if over is not None:
            proposal = proposal.but(f"{over.text} wins over this file")
        elif keyed.assumes and proposal.values:
            reason = "; ".join(p for p in (proposal.reason, keyed.assumes) if p)
            proposal = Proposal(proposal.message, Applicability.UNSAFE, proposal.values, reason)
        edits: list[Edit] = []
        for name in names:
            if name not in proposal.values or proposal.values[name] == numbers[name]:
                continue
            entry = table.entry(name)
            text = str(proposal.values[name])
            if entry is not None:
                edits.append(ReplaceExpression(file.path, entry.value_span, text))
            else:
                edits.append(AddEntry(file.path, keyed.entry.span, name, text))
        evidence = [Evidence("static", f"{n} is {numbers[n]}", file.path, e.span.line) for n in names if (e := table.entry(n))]
        return self._made(file, keyed.entry.span, proposal, edits, evidence)

    def _made(
        self, module: SourceModule, span: Span, proposal: Proposal, edits: Sequence[Edit] = (), evidence: Sequence[Evidence] = ()
    ) -> Finding:
        return self.finding(
            module, span, proposal.message, level=proposal.level, edits=edits, evidence=evidence, reason=proposal.reason
        )


def _flag_edit(run: Run, name: str, value: Value, new: int) -> Edit | NoEdit:
    if value.flag is not None:
        return set_value(run.command, value.flag, str(new))
    flag_name = run.flag_name(name)
    if not value.may_be_flag or not flag_name:
        return NoEdit(f"{value.text} decides over {name}, and the command cannot")
    return add_flag(run.command, flag_name, str(new))


def _fixed_elsewhere(run: Run) -> str:
    """The file of the command that holds the same number, which would then contradict it; "" for none."""
    for file in run.engine_files():
        for line, text in enumerate(file.lines, 1):
            for key in ("train_micro_batch_size_per_gpu", ACCUMULATION):
                if key in text and any(c.isdigit() for c in text.partition(key)[2].partition("#")[0]):
                    return f"{file.path}:{line} fixes {key} as well: both have to say the same"
    return ""


def _number(table: Table, name: str) -> int | None:
    entry = table.entry(name)
    if entry is None:
        return DEFAULTS[name]
    return int(entry.value) if entry.kind == "number" and entry.value.isdigit() else None


def _plain(text: str, kind: str) -> object:
    if kind == "number" and text.isdigit():
        return int(text)
    return text.lower() == "true" if kind == "bool" else text
