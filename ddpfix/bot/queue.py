"""Work that was accepted: on the disk before the forge hears so, and there until it is done."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment
from ddpfix.bot.state import Database

# whose turn it is first: people who wait for an answer, then what programs sent, then those who may turn out to be strangers
COMMAND, ORDINARY, PERHAPS = 0, 1, 2
REMEMBERED = 1_000_000  # deliveries; a signature holds no time, so one that was overheard would be good for ever


@dataclass(frozen=True, slots=True)
class Taken:
    """A job in hand. id: in the queue. attempts: how often it was begun, this time included."""

    id: int
    job: Job
    attempts: int


class Queue:
    """Jobs in one database. One that waits already is not put there twice; one that is in hand may be.

    Every method is a transaction of its own, and raises sqlite3.Error where the disk does not take it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_up(self) -> int:
        """At the start: what a service that ended had in hand waits again. How many jobs wait."""
        with self._database.transaction() as tables:
            tables.execute("UPDATE OR IGNORE job SET running = 0 WHERE running")
            tables.execute("DELETE FROM job WHERE running")  # the same waits already
            tables.execute("DELETE FROM delivery WHERE rowid <= (SELECT max(rowid) FROM delivery) - ?", (REMEMBERED,))
        return self.waiting()

    def accept(self, delivery: str, jobs: Sequence[Job]) -> bool:
        """Keep what a delivery asks for, all or nothing; False where the delivery was accepted before."""
        with self._database.transaction() as tables:
            if not tables.execute("INSERT OR IGNORE INTO delivery VALUES (?)", (delivery,)).rowcount:
                return False
            _put(tables, jobs)
        return True

    def take(self, now: float) -> Taken | None:
        """The next job, now in hand: commands of people first, then the owner who has waited longest for a turn."""
        with self._database.transaction() as tables:
            row = tables.execute(
                "SELECT id, slug, number, said, attempts, owner FROM job LEFT JOIN served USING (owner)"
                " WHERE NOT running AND not_before <= ? ORDER BY rank, coalesce(turn, 0), id LIMIT 1",
                (now,),
            ).fetchone()
            if row is None:
                return None
            number, slug, pull, said, attempts, owner = row
            known = json.loads(said) if said else {}
            tables.execute("UPDATE job SET running = 1, attempts = attempts + 1 WHERE id = ?", (number,))
            tables.execute(
                "INSERT OR REPLACE INTO served VALUES (?, (SELECT coalesce(max(turn), 0) + 1 FROM served))", (owner,)
            )
        # a later version may have written more
        names = {f.name for f in fields(Comment)}
        comment = Comment(**{name: value for name, value in known.items() if name in names}) if known else None
        return Taken(number, Job(slug, pull, comment), attempts + 1)

    def done(self, taken: Taken) -> None:
        with self._database.transaction() as tables:
            tables.execute("DELETE FROM job WHERE id = ?", (taken.id,))

    def put_back(self, taken: Taken, *, not_before: float = 0.0, begun: bool = True) -> None:
        """Let it wait again. begun: False where the attempt does not count."""
        with self._database.transaction() as tables:
            attempts = taken.attempts if begun else taken.attempts - 1
            tables.execute(
                "UPDATE OR IGNORE job SET running = 0, not_before = ?, attempts = ? WHERE id = ?",
                (not_before, attempts, taken.id),
            )
            tables.execute("DELETE FROM job WHERE id = ? AND running", (taken.id,))  # the same waits already

    def next_at(self) -> float | None:
        """When the first waiting job may be taken; None where none waits."""
        with self._database.transaction() as tables:
            (at,) = tables.execute("SELECT min(not_before) FROM job WHERE NOT running").fetchone()
        return None if at is None else float(at)

    def waiting(self) -> int:
        with self._database.transaction() as tables:
            return int(tables.execute("SELECT count(*) FROM job WHERE NOT running").fetchone()[0])

    def delivered(self) -> int:
        with self._database.transaction() as tables:
            return int(tables.execute("SELECT count(*) FROM delivery").fetchone()[0])


def _put(tables: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    rows = [(j.slug, j.slug.partition("/")[0].lower(), j.number, _comment(j), _said(j), _rank(j)) for j in jobs]
    # what waits for a later attempt is wanted now: something has changed
    tables.executemany(
        "INSERT INTO job (slug, owner, number, comment, said, rank) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (slug, number, comment) WHERE NOT running DO UPDATE SET not_before = 0",
        rows,
    )


def _comment(job: Job) -> int:
    return job.comment.id if job.comment else 0


def _said(job: Job) -> str:
    return json.dumps(asdict(job.comment)) if job.comment else ""


def _rank(job: Job) -> int:
    if job.comment is None:
        return ORDINARY
    return COMMAND if job.comment.belongs else PERHAPS
