"""One thread that does all the work, so that the server answers meanwhile. What is urgent goes first, and ends what is not."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from codemods.runtime.deep_stack import with_deep_stack
from codemods.store.live_project import Interrupted

Job = Callable[[], None]


class Worker:
    """failed: called with an error that a job has not foreseen; the thread goes on.

    outdated: says of the job in hand, while that runs, whether its answer is of use to nobody by now.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._urgent: deque[Job] = deque()
        self._later: deque[Job] = deque()
        self._news = threading.Condition()
        self._ends = False
        self._may_wait = False  # the job in hand
        self.outdated: Callable[[], bool] = _never
        threading.Thread(target=lambda: with_deep_stack(self._run), daemon=True, name="ddpfix").start()

    def do(self, job: Job) -> None:
        with self._news:
            self._urgent.append(job)
            self._news.notify()

    def do_later(self, job: Job) -> None:
        """Once nothing urgent is left. It ends with Interrupted when that comes, and is begun again."""
        with self._news:
            if job not in self._later:
                self._later.append(job)
                self._news.notify()

    def is_wanted_elsewhere(self) -> bool:
        return (self._may_wait and bool(self._urgent)) or self._ends or self.outdated()

    def end(self) -> None:
        with self._news:
            self._ends = True
            self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                while not (self._urgent or self._later or self._ends):
                    self._news.wait()
                if self._ends:
                    return
                self._may_wait, self.outdated = not self._urgent, _never
                job = (self._urgent or self._later).popleft()
            try:
                job()
            except Interrupted:
                if self._may_wait:
                    self.do_later(job)
            except Exception as error:
                self._failed(error)


def _never() -> bool:
    return False
