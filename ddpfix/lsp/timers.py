"""Things to be done a while after the last time they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """Of one event loop, and used in its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def after(self, seconds: float, name: str, do: Callable[[], None]) -> None:
        """Asked for again under the same name, it is done once, after the last time."""
        self.cancel(name)
        self._waiting[name] = self._loop.call_later(seconds, do)

    def cancel(self, name: str) -> None:
        if waiting := self._waiting.pop(name, None):
            waiting.cancel()
