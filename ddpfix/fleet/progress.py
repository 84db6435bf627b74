"""How a run goes on: counted as results come, shown by whoever watches (a table, lines of JSON, Prometheus)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ddpfix.fleet.ledger import DONE, FAILED, RUNNING, WAITING, Taken
from ddpfix.fleet.result import LEVELS, Result
from ddpfix.metrics import Metric, by, one


class Watch(Protocol):
    """Is told what a driver does. beat: about once a second."""

    def began(self, taken: Taken) -> None: ...

    def ended(self, taken: Taken, result: Result | None) -> None:
        """result: None where the repository waits for another attempt."""

    def beat(self) -> None: ...


class Progress:
    """What a run has done so far. states: of the ledger when it began. clock: seconds that only go forward."""

    def __init__(self, states: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self.states: Counter[str] = Counter({state: states.get(state, 0) for state in (WAITING, RUNNING, DONE, FAILED)})
        self.causes: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        self.seconds = 0.0
        self.ready = self.unchanged = 0
        self.at_work: dict[int, tuple[str, float]] = {}
        self._clock = clock
        self._began = clock()

    def began(self, taken: Taken) -> None:
        self.states[WAITING] -= 1
        self.states[RUNNING] += 1
        self.at_work[taken.number] = taken.name, self._clock()

    def ended(self, taken: Taken, result: Result | None) -> None:
        was = RUNNING if self.at_work.pop(taken.number, None) else WAITING
        self.states[was] -= 1
        if result is None:
            self.states[WAITING] += 1
            return
        self.states[FAILED if result.cause else DONE] += 1
        if result.cause:
            self.causes[result.cause] += 1
        self.findings.update(row[1] for row in result.findings)
        self.seconds += result.seconds
        self.ready += 1
        self.unchanged += result.unchanged

    def beat(self) -> None:
        """Nothing is to be shown here."""

    @property
    def passed(self) -> float:
        return self._clock() - self._began

    @property
    def per_hour(self) -> float:
        return 3600 * self.ready / self.passed if self.passed else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at this pace, None where nothing is ready yet."""
        waiting = self.states[WAITING] + self.states[RUNNING]
        return waiting * self.passed / self.ready if self.ready else None

    def longest(self, most: int) -> list[tuple[str, float]]:
        """Those at work for the longest time, and for how many seconds."""
        now = self._clock()
        return sorted(((name, now - since) for name, since in self.at_work.values()), key=lambda row: -row[1])[:most]


def metrics(found: Progress) -> Iterable[Metric]:
    """The same for Prometheus."""
    yield by("ddpfix_fleet_repositories", "gauge", "Repositories by state.", "state", dict(found.states))
    yield by("ddpfix_fleet_failed_total", "counter", "Repositories that failed, by cause.", "cause", dict(found.causes))
    levels = {level: found.findings[level] for level in LEVELS}
    yield by("ddpfix_fleet_findings_total", "counter", "Findings by level.", "level", levels)
    yield one("ddpfix_fleet_results_total", "counter", "Repositories with a result of this run.", found.ready)
    yield one("ddpfix_fleet_unchanged_total", "counter", "Those of them that stood as they stood.", found.unchanged)
    yield one("ddpfix_fleet_work_seconds_total", "counter", "Seconds of work, all repositories together.", found.seconds)
    longest = max((seconds for _, seconds in found.longest(1)), default=0.0)
    yield one("ddpfix_fleet_longest_at_work_seconds", "gauge", "For how long one has been at work.", longest)
