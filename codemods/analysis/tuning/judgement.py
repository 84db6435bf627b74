"""What is to become of logging, of batch and accumulation, and of the workers; and why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codemods.analysis.importing import imported_files
from codemods.analysis.tuning.batch_meaning import meaning_of_the_batch
from codemods.analysis.tuning.job_runs import Processes
from codemods.analysis.tuning.profiles import (
    ACCUMULATION,
    BATCH,
    LOG_EVERY,
    LOGGING,
    WORKERS,
    Load,
    NoLoad,
    Tuning,
    rebalanced,
    workers_for,
)
from codemods.api.findings import Applicability
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record
from codemods.store.project import Project

_READS_LOGS = lazy(rb"\bdef on_log\b|\blog_history\b|\bdef log\(self")
_LOADER = lazy(rb"\bdef get_train_dataloader\b")
AS_MANY_CORES = "assumes that the machine that trains has as many cores"
MEMORY = "the larger batch fits into the device's memory; where it does not, halve the batch, double the accumulation"


@record
class Proposal:
    """What to change, how sure, and what to say. values: parameter -> its new value; none where there is no change."""

    message: str
    level: Applicability
    values: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    def but(self, why: str) -> Proposal:
        """The same, told only."""
        return Proposal(self.message, Applicability.DISPLAY, {}, why)


def logging_proposal(
    project: Project, module: SourceModule, now: int | None, tuning: Tuning, other: Mapping[str, object]
) -> Proposal | None:
    """For `logging_steps`; other: what else the call or the command gives, as far as it is known."""
    aim = LOG_EVERY[tuning.profile]
    if now is None or now < 1 or now >= aim or other.get("logging_strategy") in ("epoch", "no"):
        return None
    message = (
        f"{LOGGING} {now} logs {'every step' if now == 1 else f'every {now} steps'}: each time costs two collectives and three "
        f"waits for the device; {aim} has {aim // now} times fewer of them"
    )
    asked = other.get("eval_strategy", other.get("evaluation_strategy"))
    if asked == "steps" and "eval_steps" not in other:
        return Proposal(message, Applicability.DISPLAY, {}, "without eval_steps the evaluation, too, comes every logging_steps")
    reads = _first(project, module, _READS_LOGS)
    if reads:
        return Proposal(message, Applicability.UNSAFE, {LOGGING: aim}, f"assumes that {reads} needs no entry for every step")
    return Proposal(message, Applicability.SAFE, {LOGGING: aim})


def batch_proposal(
    project: Project, module: SourceModule, batch: int | None, accumulation: int | None, processes: Processes, tuning: Tuning
) -> Proposal | None:
    """For batch and accumulation. None where there is nothing to gain; the level falls where the product is not all."""
    if not batch or not accumulation:
        return None
    now = Load(batch, accumulation, processes.world)
    then = rebalanced(now, tuning)
    if isinstance(then, NoLoad):
        return Proposal(f"batch x accumulation is {now}", Applicability.DISPLAY, {}, then.why)
    if (then.batch, then.accumulation) == (now.batch, now.accumulation):
        return None
    gain = "; the device works on more at a time" if then.batch > now.batch else ""
    message = (
        f"batch x accumulation: {now} becomes {then}; the effective batch is kept, and with it the learning rate and the number "
        f"of steps{gain}"
    )
    meaning = meaning_of_the_batch(project, module)
    if meaning.unequal:
        return Proposal(message, Applicability.DISPLAY, {}, f"the product is the same, the training is not: {meaning.unequal}")
    assumed = [MEMORY] if then.batch > now.batch else []
    assumed += [meaning.assumes] if meaning.assumes else []
    values = {BATCH: then.batch, ACCUMULATION: then.accumulation}
    why = "assumes that " + "; that ".join(assumed) if assumed else f"assumes that it is run on {then.world} processes"
    return Proposal(message, Applicability.UNSAFE, values, why)


def workers_proposal(project: Project, module: SourceModule, now: int | None, local: int, tuning: Tuning) -> Proposal | None:
    """For the workers of the loader: where there are none, a share of the machine's cores."""
    if now is None or tuning.cores < 2 or not local:
        return None
    wanted = workers_for(tuning.cores, local)
    share = f"{tuning.cores} cores, {local} {'process' if local == 1 else 'processes'} of a machine"
    if now > 0:
        total = now * local
        if total <= tuning.cores:
            return None
        message = f"{WORKERS} {now} makes {total} worker processes on {tuning.cores} cores: they are counted for each process"
        return Proposal(message, Applicability.UNSAFE, {WORKERS: wanted}, AS_MANY_CORES)
    message = f"without workers the training process itself loads each batch; {wanted} for each process ({share})"
    if own := _first(project, module, _LOADER):
        return Proposal(message, Applicability.DISPLAY, {}, f"{own} makes the loader itself")
    why = f"{AS_MANY_CORES}, and that loading takes time at all: tensors in memory need no workers"
    return Proposal(message, Applicability.UNSAFE, {WORKERS: wanted}, why)


def left_alone(given: Mapping[str, object], local: int, tuning: Tuning) -> Iterator[str]:
    """What stands there, or is often added, and is not touched: with the reason."""
    if given.get("ddp_bucket_cap_mb") == 25:
        yield "ddp_bucket_cap_mb=25 is folklore: 25 is the default, which is not even handed on"
    elif "ddp_bucket_cap_mb" in given:
        yield "ddp_bucket_cap_mb is a matter of measuring, for each job"
    if given.get("dataloader_pin_memory") is True:
        yield "dataloader_pin_memory=True is the default"
    workers = given.get(WORKERS)
    fair = workers_for(tuning.cores, local) if tuning.cores and local else 0
    if workers == 4 and type(workers) is int and fair != 4:
        share = f"; an equal share of {tuning.cores} cores is {fair}" if fair else ""
        yield f"{WORKERS}=4 is folklore as a number for all machines: workers are counted for each process{share}"
    limit = given.get("save_total_limit")
    if type(limit) is int:
        yield (
            f"save_total_limit={limit} is neither set nor lowered: it counts every checkpoint in the folder, deletes those of "
            "other runs as well, and saves room, not time"
        )


def _first(project: Project, module: SourceModule, pattern: re.Pattern[bytes]) -> str:
    for path in sorted(imported_files(project, module)):
        data = project.read(path) or b""
        if found := pattern.search(data):
            line = data.count(b"\n", 0, found.start()) + 1
            return f"{path}:{line}"
    return ""
