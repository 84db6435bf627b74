"""What a service has done, counted for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ddpfix.bot.outcome import Outcome
from ddpfix.bot.queue import Queue
from ddpfix.metrics import Metric, by, one


class Numbers:
    """Hears of every outcome on its way to `tell`."""

    def __init__(self, queue: Queue, tell: Callable[[Outcome], None]) -> None:
        self._queue, self._tell = queue, tell
        self._actions: Counter[str] = Counter()

    def tell(self, outcome: Outcome) -> None:
        self._actions[outcome.action] += 1
        self._tell(outcome)

    def metrics(self) -> Iterable[Metric]:
        yield one("ddpfix_bot_jobs_waiting", "gauge", "Jobs that were accepted and wait.", self._queue.waiting())
        yield one("ddpfix_bot_deliveries", "gauge", "Deliveries that are remembered.", self._queue.delivered())
        counts = dict(self._actions)
        yield by("ddpfix_bot_outcomes_total", "counter", "What came of the work, by action.", "action", counts)
