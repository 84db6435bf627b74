"""How far to tune: what a profile asks for, and batch and accumulation that keep the effective batch."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.runtime.record import record

BATCH = "per_device_train_batch_size"
ACCUMULATION = "gradient_accumulation_steps"
LOGGING = "logging_steps"
WORKERS = "dataloader_num_workers"
DEFAULTS: Mapping[str, int] = {BATCH: 8, ACCUMULATION: 1, LOGGING: 500, WORKERS: 0}  # TrainingArguments, 3.3 to 5.23
NAMES = frozenset(DEFAULTS)

PROFILES = ("standard", "fast")
LOG_EVERY: Mapping[str, int] = {"standard": 5, "fast": 10}
ACCUMULATE: Mapping[str, int] = {"standard": 2, "fast": 1}
MOST_GROWTH = 4  # a batch that grows by more than this is hardly one that fits
MOST_WORKERS = 8  # more than these for one process seldom feed it faster


@record
class Tuning:
    """What is asked for. world_size: the processes that it will run on, 0: as its job says. cores: of the machine that trains,
    0 where that is not known."""

    profile: str = "standard"
    world_size: int = 0
    cores: int = 0


@record
class Load:
    """What one optimizer step takes. world: processes, 0 where that is not known."""

    batch: int
    accumulation: int
    world: int = 0

    @property
    def share(self) -> int:
        """Samples that one process takes for one step."""
        return self.batch * self.accumulation

    @property
    def effective(self) -> int:
        return self.share * (self.world or 1)

    def __str__(self) -> str:
        if not self.world:
            return f"{self.batch} x {self.accumulation} = {self.share} on each process"
        processes = "process" if self.world == 1 else "processes"
        return f"{self.batch} x {self.accumulation} x {self.world} {processes} = {self.effective}"


@record
class NoLoad:
    """Why batch and accumulation stay as they are."""

    why: str


def rebalanced(now: Load, tuning: Tuning) -> Load | NoLoad:
    """The same effective batch with a larger batch and less accumulation; the same load where there is nothing to gain.

    It says the same of what it made, so that a second run changes nothing.
    """
    world = tuning.world_size or now.world
    share = now.share
    if now.world and world != now.world:
        if now.effective % world:
            return NoLoad(
                f"the effective batch of {now.effective} cannot be kept on {world} processes: it is no multiple of them; with "
                "another one the learning rate has to follow it"
            )
        share = now.effective // world
    batch = max(d for d in range(1, now.batch + 1) if share % d == 0)
    accumulation = share // batch
    aim = next(n for n in range(ACCUMULATE[tuning.profile], 0, -1) if accumulation % n == 0)
    if accumulation <= aim:
        return Load(batch, accumulation, world)
    if accumulation // aim > MOST_GROWTH:
        return NoLoad(
            f"an accumulation of {accumulation} stands there for want of memory: a batch {accumulation // aim} times as large is "
            "not proposed unseen"
        )
    return Load(share // aim, aim, world)


def workers_for(cores: int, processes: int) -> int:
    """Worker processes for each training process of a machine: an equal share of its cores, no more than eight."""
    return max(1, min(MOST_WORKERS, cores // max(processes, 1)))
