"""What the engine itself costs: seconds for a repository on which there is nothing to do, memory for ten thousand of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddpfix.fleet import engines
from ddpfix.fleet.drive import Pace, drive, rules_of
from ddpfix.fleet.ledger import Campaign, Ledger
from ddpfix.fleet.progress import Progress
from ddpfix.fleet.repositories import Target
from ddpfix.fleet.result import Result
from ddpfix.fleet.work import asked_rules

ROOT = Path(__file__).parents[2]


def nothing(said: Mapping[str, Any]) -> dict[str, Any]:
    """The work of a repository with nothing in it, without a look at it."""
    return Result(head="1", rules=asked_rules(said["select"], said["ignore"])).plain()


def through(path: Path, engine: str, count: int, workers: int) -> tuple[float, float]:
    """(seconds of the clock, of this process's processor) for so many repositories through ledger and engine."""
    ledger = Ledger(path, new=True)
    ledger.plan(Campaign("nothing"), [Target(f"a/r{n}", f"https://host/a/r{n}.git") for n in range(count)])
    rules_of(ledger.campaign())  # read once, as every run does before it begins
    with engines.started(engine, workers) as executor:
        began, cpu = time.monotonic(), time.process_time()
        assert drive(ledger, executor, Pace(2 * workers), Progress(ledger.counts()), work=nothing)
        spent = time.monotonic() - began, time.process_time() - cpu
    assert ledger.counts() == {"done": count}
    ledger.close()
    return spent


def main(folder: str, engine: str, count: str) -> None:
    """In a process of its own, whose memory is nobody else's."""
    wall, cpu = through(Path(folder) / f"{engine}-{count}.sqlite", engine, int(count), 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{wall:.3f} {cpu:.3f} {peak:.0f}\n")


def measured(folder: Path, engine: str, count: int) -> tuple[float, float, float]:
    """(seconds of the clock, of the driver's processor, MiB of the driver at most)."""
    command = [sys.executable, "-P", "-m", "tests.fleet.soak_numbers", str(folder), engine, str(count)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    wall, cpu, peak = map(float, said.split())
    return wall, cpu, peak


if __name__ == "__main__":
    main(*sys.argv[1:])
