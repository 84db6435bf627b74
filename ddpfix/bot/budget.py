"""How many pull requests may still be opened within an hour: forges slow down whoever opens many."""

from __future__ import annotations

from ddpfix.bot.client import Clock
from ddpfix.bot.state import Database


class Budget:
    """Places for pull requests, shared by all processes with one database.

    Users report that GitHub refuses after some 50 to 70 an hour (lindell/multi-gitter#276, gruntwork-io/git-xargs#59).
    """

    def __init__(self, per_hour: int, clock: Clock, database: Database) -> None:
        self._per_hour, self._clock, self._database = per_hour, clock, database

    def take(self) -> int | None:
        """A place, taken before the pull request is opened, so that two processes never share one; None where all are."""
        now = self._clock.now()
        with self._database.transaction() as tables:
            tables.execute("DELETE FROM opened WHERE at <= ?", (now - 3600,))
            (spent,) = tables.execute("SELECT count(*) FROM opened").fetchone()
            if spent >= self._per_hour:
                return None
            return tables.execute("INSERT INTO opened VALUES (?)", (now,)).lastrowid

    def give_back(self, place: int) -> None:
        """It was not opened after all."""
        with self._database.transaction() as tables:
            tables.execute("DELETE FROM opened WHERE rowid = ?", (place,))
