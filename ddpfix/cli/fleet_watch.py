"""What is seen of `ddpfix fleet run`: one live table on a terminal, one line of JSON a repository otherwise."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ddpfix.cli.showing import plain
from ddpfix.fleet.ledger import DONE, FAILED, RUNNING, WAITING, Taken
from ddpfix.fleet.progress import Progress
from ddpfix.fleet.result import LEVELS, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.live import Live
    from rich.table import Table

SHOWN = 5  # repositories at work that are named
APART = 0.25  # seconds between two pictures


class Shown(Progress):
    """A run as people and programs see it. live: the table, None where there is no terminal. lines: whether stdout gets JSON."""

    def __init__(self, states: Mapping[str, int], name: str, live: Live | None, *, lines: bool) -> None:
        super().__init__(states)
        self._name, self._live, self._lines = name, live, lines
        self._next = 0.0

    def ended(self, taken: Taken, result: Result | None) -> None:
        super().ended(taken, result)
        if self._lines and result:
            sys.stdout.write(json.dumps(_line(taken, result), ensure_ascii=True) + "\n")
            sys.stdout.flush()

    def beat(self) -> None:
        if self._live and (now := time.monotonic()) >= self._next:
            self._next = now + APART
            self._live.update(picture(self, self._name), refresh=True)


def _line(taken: Taken, result: Result) -> dict[str, object]:
    levels = [row[1] for row in result.findings]
    return {
        "repository": taken.name, "cause": result.cause, "error": result.error, "unchanged": result.unchanged,
        **{level: levels.count(level) for level in LEVELS}, "seconds": result.seconds,
    }  # fmt: skip


def picture(found: Progress, name: str) -> Table:
    """The table at one moment."""
    from rich.table import Table

    table = Table(title=plain(name), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column()
    for state in (WAITING, RUNNING, DONE, FAILED):
        table.add_row(str(found.states[state]), "at work" if state == RUNNING else state)
    for cause, count in found.causes.most_common():
        table.add_row(str(count), f"  failed: {cause}", style="red")
    for level, word in zip(LEVELS, ("safe fixes", "unsafe fixes", "report only"), strict=True):
        table.add_row(str(found.findings[level]), f"findings: {word}")
    left = "" if found.left is None else f", about {spoken(found.left)} left"
    table.add_row(f"{found.per_hour:.0f}", f"repositories an hour{left}")
    for repository, seconds in found.longest(SHOWN):
        table.add_row(f"{seconds:.0f} s", plain(repository), style="dim")
    return table


def spoken(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def shown(states: Mapping[str, int], name: str) -> Iterator[Shown]:
    """Whoever watches a run, for as long as it goes on."""
    has_table = sys.stderr.isatty() and not os.environ.get("CI")
    lines = not (has_table and sys.stdout.isatty())
    if not has_table:
        yield Shown(states, name, None, lines=lines)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
        watch = Shown(states, name, live, lines=lines)
        yield watch
        live.update(picture(watch, name), refresh=True)
