"""A campaign over ten thousand repositories, simulated: `python -m benchmarks.fleet_scale` prints the tables of fleet-scale.md.

Recorded: the seconds of a processor of each repository (fleet_times.json), the requests of each step (counted at the stand-in of
the forge that the tests have), the milliseconds of the engine. Published by the forges: `LIMITS`. All else is in `ASSUMED`.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COUNT = 10_000
WORKERS = (8, 32, 128)
TIMES = Path(__file__).with_name("fleet_times.json")
HOUR = 3600.0
# what one repository costs in requests: of git when it is looked at, of git and of the interface when its pull request is opened
GIT_LOOK, GIT_OPEN, API_OPEN, WRITES_OPEN = 7, 9, 4, 1
ENGINE = 0.007  # seconds of the driver for a repository on Dask, one after the other


@dataclass(frozen=True)
class Limits:
    """git: requests of git a minute, 0 where nothing is published. api: requests an hour. writes: of content an hour.

    at_once: repositories or pull requests of one GraphQL request.
    """

    name: str
    git: float
    api: float
    writes: float
    at_once: int = 100


LIMITS = (
    # docs.github.com: 5,000 requests and 5,000 GraphQL points an hour, 500 content-generating requests an hour, 80 a minute
    Limits("github.com", 0, 5_000, 500),
    # docs.gitlab.com, GitLab.com-specific rate limits: 2,000 requests a minute for a user, git over HTTP among them
    Limits("gitlab.com", 2_000, 120_000, 120_000, at_once=50),
    Limits("a server of one's own", 0, float("inf"), float("inf")),
)
# seconds that a request is on its way, bytes a second of a worker, the share of repositories that change until the next run, the
# share with a safe fix, pull requests an hour (`--per-hour`), hours between two waves, in which people decide
ASSUMED: dict[str, float] = {"latency": 0.15, "bytes": 20e6, "changed": 0.05, "safe": 0.2, "per_hour": 50, "between": 48}
WAVES = (10, 100)


@dataclass(frozen=True)
class Looked:
    """A run over many repositories: hours, requests of git and of the interface, the share of the time that workers worked."""

    hours: float
    git: int
    api: int
    busy: float


def drawn(count: int, seed: int = 23) -> list[float]:
    """Seconds of so many repositories, drawn from the recorded ones."""
    rows: list[dict[str, Any]] = json.loads(TIMES.read_text(encoding="utf-8"))
    chosen = random.Random(seed).choices(rows, k=count)
    return [row["seconds"] + GIT_LOOK * ASSUMED["latency"] + row["bytes"] / ASSUMED["bytes"] for row in chosen]


def looked(seconds: Sequence[float], workers: int, limits: Limits, api: int = 0) -> Looked:
    """Each repository to the first free worker, no earlier than the driver and the forge's limit let it begin."""
    free = [0.0] * workers
    apart = max(ENGINE, 60 * GIT_LOOK / limits.git if limits.git else 0.0)
    last = 0.0
    for number, length in enumerate(seconds):
        begins = max(heapq.heappop(free), number * apart)
        heapq.heappush(free, begins + length)
        last = max(last, begins + length)
    return Looked(last / HOUR, GIT_LOOK * len(seconds), api, sum(seconds) / (last * workers))


def again(seconds: Sequence[float], workers: int, limits: Limits) -> Looked:
    """The next run: a request for many tells which changed, and only those are looked at."""
    asked = -(-len(seconds) // limits.at_once)
    changed = seconds[: int(len(seconds) * ASSUMED["changed"])]
    found = looked(changed, workers, limits, asked)
    return Looked(found.hours + asked * ASSUMED["latency"] / HOUR, found.git, asked, found.busy)


@dataclass(frozen=True)
class Wave:
    """The pull requests of a wave: when the first and the last are opened, in hours from the beginning, and the requests."""

    number: int
    pulls: int
    begins: float
    ends: float
    requests: int


def published(pulls: int, each: float, limits: Limits, per_hour: float) -> Iterator[Wave]:
    """One bot writes one pull request after the other, as many an hour as it and the forge allow. each: seconds of one."""
    pace = min(per_hour, limits.writes / WRITES_OPEN, limits.api / API_OPEN, HOUR / each)
    left, at = pulls, 0.0
    for number in range(1, len(WAVES) + 2):
        size = min(WAVES[number - 1], left) if number <= len(WAVES) else left
        if size:
            ends = at + size / pace
            states = -(-size // limits.at_once)  # what became of them, once before the next wave
            yield Wave(number, size, at, ends, size * (API_OPEN + GIT_OPEN) + states)
            left, at = left - size, ends + ASSUMED["between"]


def tables() -> str:
    """The tables of the docs."""
    seconds = drawn(COUNT)
    each = sum(seconds) / len(seconds) + (GIT_OPEN + API_OPEN) * ASSUMED["latency"] + 2.0
    pulls = int(COUNT * ASSUMED["safe"])
    out = ["| forge | workers | first run | at work | requests of git | next run | its requests |", "| --- |" + " ---: |" * 6]
    for limits in LIMITS:
        for workers in WORKERS:
            first, second = looked(seconds, workers, limits), again(seconds, workers, limits)
            row = (
                limits.name, str(workers), spoken(first.hours), f"{first.busy:.0%}", f"{first.git:,}", spoken(second.hours),
                f"{second.api} of GraphQL, {second.git:,} of git",
            )  # fmt: skip
            out.append(f"| {' | '.join(row)} |")
    out += ["", "| `--per-hour` | wave | pull requests | begins | ends | requests |", "|" + " ---: |" * 6]
    for per_hour in (ASSUMED["per_hour"], 200.0):
        for wave in published(pulls, each, LIMITS[0], per_hour):
            times = spoken(wave.begins), spoken(wave.ends)
            cells = (f"{per_hour:.0f}", str(wave.number), f"{wave.pulls:,}", *times, f"{wave.requests:,}")
            out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def spoken(hours: float) -> str:
    if hours < 1.5:
        return f"{60 * hours:.0f} min" if 60 * hours >= 1 or not hours else f"{HOUR * hours:.0f} s"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


if __name__ == "__main__":
    sys.stdout.write(tables())
