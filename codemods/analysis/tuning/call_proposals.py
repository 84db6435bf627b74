"""What is proposed for a call of TrainingArguments, and in which layer: its own keywords, or the defaults of its options."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from codemods.analysis.tuning.job_runs import Processes, Run, runs_of
from codemods.analysis.tuning.judgement import (
    Proposal,
    batch_proposal,
    left_alone,
    logging_proposal,
    workers_proposal,
)
from codemods.analysis.tuning.profiles import ACCUMULATION, BATCH, LOGGING, WORKERS, Tuning
from codemods.analysis.tuning.training_calls import Setting, TrainingCall
from codemods.api.findings import Applicability, Edit, Evidence, lowest
from codemods.runtime.record import record, replace


@record
class Proposed:
    """A proposal for a call. layer: option, where it is made in the default of one. node: where to show it."""

    proposal: Proposal
    layer: str
    node: ast.expr
    edits: tuple[Edit, ...]
    evidence: tuple[Evidence, ...]


def proposed(call: TrainingCall, tuning: Tuning) -> Iterator[Proposed]:
    """Everything that is proposed for a call, or told of it."""
    runs = runs_of(call.project, call.module.path)
    processes = processes_for(runs, tuning)
    settings = {name: call.setting(name) for name in (BATCH, ACCUMULATION, LOGGING, WORKERS)}
    project, module, other = call.project, call.module, others(call)
    made = (
        ((LOGGING,), logging_proposal(project, module, settings[LOGGING].value, tuning, other)),
        (
            (BATCH, ACCUMULATION),
            batch_proposal(project, module, settings[BATCH].value, settings[ACCUMULATION].value, processes, tuning),
        ),
        ((WORKERS,), workers_proposal(project, module, settings[WORKERS].value, processes.local, tuning)),
    )
    for names, proposal in made:
        here = [settings[name] for name in names]
        if proposal is None or (WORKERS not in names and all(s.layer == "absent" for s in here)):
            continue
        if (found := _for(call, here, proposal, runs, processes)) is not None:
            yield found
    if told := "; ".join(left_alone(other, processes.local, tuning)):
        proposal = Proposal(f"left as it is in {call.shown}", Applicability.DISPLAY, {}, told)
        yield Proposed(proposal, "keyword", call.call, (), ())


def processes_for(runs: Sequence[Run], tuning: Tuning) -> Processes:
    """What the runs of a script agree on; what is asked for where no job says it."""
    known = {(p.world, p.local): p for run in runs if (p := run.processes()).launched}
    if len(known) == 1:
        return next(iter(known.values()))
    world = tuning.world_size
    return Processes(world, world, f"--world-size {world}" if world else "no job says how many processes there are")


def others(call: TrainingCall) -> Mapping[str, object]:
    """What the call gives by name: constants as they are, anything else as a text."""
    return {k.arg: k.value.value if isinstance(k.value, ast.Constant) else ast.dump(k.value) for k in call.call.keywords if k.arg}


def _for(
    call: TrainingCall, settings: Sequence[Setting], proposal: Proposal, runs: Sequence[Run], processes: Processes
) -> Proposed | None:
    options = [s for s in settings if s.option is not None]
    layer = "option" if options else "keyword"
    if options and runs:
        given = [[s.name for s in options if r.value(s.name).layer in ("flag", "file")] for r in runs]
        if all(given):
            return None  # every job gives it: its own file decides
        half = next((r for r, names in zip(runs, given, strict=True) if 0 < len(names) < len(options)), None)
        if half is not None:
            why = f"{half.place} gives one of the two itself: another default would change what that run trains on"
            proposal = proposal.but(why)
    for setting in options:
        if setting.option is not None and setting.option.read_also and proposal.values:
            why = f"that {setting.option.read_also}, which reads --{setting.option.name} as well, may have the new value"
            reason = f"{proposal.reason}; {why}" if proposal.reason else f"assumes {why}"
            proposal = replace(proposal, level=lowest(proposal.level, Applicability.UNSAFE), reason=reason)
    edits = tuple(call.given(s, proposal.values[s.name]) for s in settings if proposal.values.get(s.name, s.value) != s.value)
    return Proposed(proposal, layer, _anchor(call, settings), edits, tuple(_evidence(call, settings, processes)))


def _anchor(call: TrainingCall, settings: Sequence[Setting]) -> ast.expr:
    for setting in settings:
        if setting.option is not None and setting.option.node is not None and setting.option.module is call.module:
            return setting.option.node
    return next((s.node for s in settings if s.node is not None), call.call)


def _evidence(call: TrainingCall, settings: Sequence[Setting], processes: Processes) -> Iterator[Evidence]:
    for setting in settings:
        if setting.option is not None and setting.option.node is not None:
            text = f"{setting.name} is {setting.value}, the default of --{setting.option.name}"
            yield Evidence("static", text, setting.option.module.path, setting.option.node.lineno)
        elif setting.layer == "keyword" and setting.node is not None:
            yield Evidence("static", f"{setting.name} is {setting.value}", call.module.path, setting.node.lineno)
        elif setting.layer == "absent":
            yield Evidence("static", f"{setting.name} is not given: {setting.value}", call.module.path, call.call.lineno)
    if processes.world:
        yield Evidence("static", f"{processes.world} processes: {processes.text}")
