"""One thread that does one job after the other, so that a forge gets its answer at once and is written to by one hand only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ddpfix.bot.commands import obey
from ddpfix.bot.events import Job
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.repositories import Bot, guarded
from ddpfix.bot.review import review

MOST = 1000  # jobs that wait; what comes beyond is refused, and the forge shows it as not delivered


def do(bot: Bot, job: Job) -> list[Outcome]:
    """One job. Never raises: whatever happens is an outcome."""
    return guarded(bot.forge, job.slug, lambda: _done(bot, job), job.number or None)


def _done(bot: Bot, job: Job) -> list[Outcome]:
    if job.comment:
        outcome = obey(bot, job.slug, job.number, job.comment)
        return [outcome] if outcome else []
    return [review(bot, job.slug, job.number)] if job.number else bot.repository(job.slug)


class Worker:
    """Jobs in the order in which they came. One that waits already is not put there twice."""

    def __init__(self, work: Callable[[Job], list[Outcome]], tell: Callable[[Outcome], None]) -> None:
        self._work, self._tell = work, tell
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopping = self._busy = False
        self._thread = threading.Thread(target=self._loop, name="ddpfix-bot", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> bool:
        """Put a job at the end; False where there is no room, or no time any more."""
        with self._changed:
            if self._stopping or len(self._jobs) >= MOST:
                return False
            if job not in self._jobs:
                self._jobs.append(job)
                self._changed.notify_all()
            return True

    def stop(self) -> int:
        """Finish the job in hand and end; the number of those that were left."""
        with self._changed:
            self._stopping = True
            left = len(self._jobs)
            self._jobs.clear()
            self._changed.notify_all()
        self._thread.join()
        return left

    def wait_until_idle(self, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and not self._busy, timeout)

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._jobs) or self._stopping)
                if not self._jobs:
                    return
                job, self._busy = self._jobs.popleft(), True
            try:
                for outcome in self._work(job):
                    with suppress(OSError, ValueError):  # nobody reads it any more: the work goes on
                        self._tell(outcome)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
