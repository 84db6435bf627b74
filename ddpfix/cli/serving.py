"""A port with numbers for Prometheus, for as long as a command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack

from ddpfix.cli.ends import CommandError
from ddpfix.cli.showing import note
from ddpfix.metrics import Metric, served


def numbers(address: str, collect: Callable[[], Iterable[Metric]]) -> AbstractContextManager[object]:
    """Serve them at HOST:PORT from now on, until it is left; with "" nothing is served."""
    stack = ExitStack()
    if address:
        try:
            url = stack.enter_context(served(address, collect))
        except (ValueError, OSError) as error:
            raise CommandError("--metrics cannot be used", str(error)) from None
        note(f"ddpfix: numbers at {url}")
    return stack
