"""One thread that does one job after the other, so that a forge gets its answer at once and is written to by one hand only."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from ddpfix.bot.client import Clock, Stopped, SystemClock
from ddpfix.bot.commands import obey
from ddpfix.bot.events import Job
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.queue import Queue, Taken
from ddpfix.bot.repositories import Bot, guarded
from ddpfix.bot.review import review
from ddpfix.bot.state import passing

# seconds after which a job that failed is tried again: a forge may be away for an hour
AGAIN = (60.0, 600.0, 3600.0)
MOST = 12  # beginnings of one job, with those that ended together with the service: it may be what ends it
PATIENCE = 10.0  # seconds that a stop waits for the job in hand; then it is left for the next start


def do(bot: Bot, job: Job) -> list[Outcome]:
    """One job. Never raises (but `Stopped`): whatever happens is an outcome."""
    return guarded(bot.forge, job.slug, lambda: _done(bot, job), job.number or None)


def _done(bot: Bot, job: Job) -> list[Outcome]:
    if job.comment:
        outcome = obey(bot, job.slug, job.number, job.comment)
        return [outcome] if outcome else []
    return [review(bot, job.slug, job.number)] if job.number else bot.repository(job.slug)


class Worker:
    """Does what is in a queue. queue: without one, the work lasts as long as the process. stop: ends the waits of a job."""

    def __init__(
        self,
        work: Callable[[Job], list[Outcome]],
        tell: Callable[[Outcome], None],
        queue: Queue | None = None,
        *,
        clock: Clock | None = None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._tell, self._end_waits = work, tell, stop
        self._queue = queue or Queue(passing().database())
        self._clock = clock or SystemClock()
        self._changed = threading.Condition()
        self._stopping = self._busy = False
        self._thread = threading.Thread(target=self._loop, name="ddpfix-bot", daemon=True)

    def start(self) -> None:
        self._queue.take_up()
        self._thread.start()

    def accept(self, delivery: str, jobs: Sequence[Job]) -> bool:
        """Keep what a delivery asks for; False where it was accepted before. When this returns it is on the disk.

        Raises sqlite3.Error where the disk does not take it: nothing of it is accepted then.
        """
        is_new = self._queue.accept(delivery, jobs)
        with self._changed:
            self._changed.notify_all()
        return is_new

    def stop(self) -> int:
        """End the waits and the job in hand; the number of jobs that are left for the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._end_waits()
        self._thread.join(PATIENCE)
        return self._queue.waiting()

    def wait_until_idle(self, timeout: float) -> bool:
        """Whether nothing is in hand and nothing waits, but for what is tried again later."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout)

    def _is_idle(self) -> bool:
        at = self._queue.next_at()
        return not self._busy and (at is None or at > self._clock.now())

    def _loop(self) -> None:
        while (taken := self._next()) is not None:
            try:
                self._do(taken)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _next(self) -> Taken | None:
        """The next job, waited for; None at the end."""
        while True:
            with self._changed:
                if self._stopping:
                    return None
                try:
                    if taken := self._queue.take(self._clock.now()):
                        self._busy = True
                        return taken
                except sqlite3.Error as error:  # the disk is full, say: what waits there waits
                    self._say(Outcome("the queue", "", "failed", str(error)))
                self._changed.wait(self._pause())

    def _pause(self) -> float | None:
        try:
            at = self._queue.next_at()
        except sqlite3.Error:
            return 60.0
        return None if at is None else max(0.1, min(at - self._clock.now(), 60.0))

    def _do(self, taken: Taken) -> None:
        job = taken.job
        try:
            outcomes = self._work(job) if taken.attempts <= MOST else [_given_up(job)]
        except Stopped:
            with suppress(sqlite3.Error):  # it is taken up at the next start all the same
                self._queue.put_back(taken, begun=False)
            return
        for outcome in outcomes:
            self._say(outcome)
        with suppress(sqlite3.Error):  # it is done once more at the next start, which changes nothing
            if taken.attempts <= len(AGAIN) and any(o.action == "failed" for o in outcomes):
                self._queue.put_back(taken, not_before=self._clock.now() + AGAIN[taken.attempts - 1])
            else:
                self._queue.done(taken)


    def _say(self, outcome: Outcome) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more: the work goes on
            self._tell(outcome)


def _given_up(job: Job) -> Outcome:
    why = f"given up: the service ended {MOST} times while it worked on this"
    return Outcome(job.slug, "", "failed", why, job.number or None)
