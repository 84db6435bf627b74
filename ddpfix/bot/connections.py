"""How long a connection may take and how many there may be: nobody has shown a signature yet, so all are strangers.

With `MOST` connections open, the one that has kept us waiting longest makes room for the next: who sends at once gets through.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MOST = 256  # well below the 1,024 file handles that a process has by default
BACKLOG = 512  # connections that are accepted in one go, before any of them is looked at
HEADERS = 16 * 1024  # bytes; GitHub sends about one thousand
SECONDS = 20.0  # from the first byte of a request to the last
HELD = 64 * 1024 * 1024  # bytes of long bodies that are held at a time
LAST = 3  # seconds in which a request has to be here, once the service is told to end
ANSWERED = 10  # seconds in which it has to be answered then
SHORT = 256 * 1024  # a body that is not long: `MOST` of them are 64 MiB


class Connection(H11Protocol):
    """uvicorn's own, with an end to waiting."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST:
            waiting = [c for c in self.connections if isinstance(c, Connection) and c._late]
            # the timer of the one that has waited longest is due first
            min(waiting, key=lambda c: c._late.when() if c._late else 0.0).leave()

    def data_received(self, data: bytes) -> None:
        if self._is_between():
            self._wait()
        super().data_received(data)
        if not self._is_between() and not self.cycle.more_body:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _is_between(self) -> bool:
        """Whether no request has its headers yet: before the first one, and after an answer."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def leave(self) -> None:
        """Close it now, without a word: what is in the buffers goes, too."""
        self._wait_no_more()
        self.transport.abort()

    def shutdown(self) -> None:
        """The service ends: who still sends has `LAST` seconds."""
        super().shutdown()
        if self._late:
            self._wait_no_more()
            self._late = self.loop.call_later(LAST, self.leave)

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(SECONDS, self.leave)

    def _wait_no_more(self) -> None:
        if self._late:
            self._late.cancel()
            self._late = None


class Room:
    """Bytes of long bodies that are held before their signature is known."""

    def __init__(self, most: int = HELD) -> None:
        self._left = most

    def take(self, count: int) -> bool:
        """False where there is no room for so many now."""
        if count > self._left:
            return False
        self._left -= count
        return True

    def give_back(self, count: int) -> None:
        self._left += count


class Sparing(logging.Filter):
    """Lets a few lines a minute through, none longer than a line: whoever sends nonsense does not fill the disk."""

    def __init__(self, *, most: int = 20, longest: int = 500) -> None:
        super().__init__()
        self._most, self._longest = most, longest
        self._minute, self._count = 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        message = " ".join(record.getMessage().split())
        record.msg, record.args = message[: self._longest], ()
        if record.levelno < logging.ERROR or record.name == "asyncio":
            record.exc_info = record.exc_text = None
        return self._count <= self._most


def config() -> dict[str, Any]:
    """What uvicorn is told."""
    sparing = Sparing()
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(sparing)
    return {
        "http": Connection, "backlog": BACKLOG, "h11_max_incomplete_event_size": HEADERS, "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": ANSWERED,
    }  # fmt: skip
