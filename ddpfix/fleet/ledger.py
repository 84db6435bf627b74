"""The state of every repository of a campaign: one SQLite file, on the driver's own disk, with the driver as its only writer.

WAL needs one machine (sqlite.org/wal.html): not a network file system. Whatever ends the driver, what it had in hand waits again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ddpfix.fleet.repositories import Target
from ddpfix.fleet.result import Result

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
_TABLES = """
CREATE TABLE IF NOT EXISTS campaign (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS repository (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, url TEXT NOT NULL UNIQUE, state TEXT NOT NULL DEFAULT 'waiting',
    attempt INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0, head TEXT NOT NULL DEFAULT '',
    rules TEXT NOT NULL DEFAULT '', cause TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0, files INTEGER NOT NULL DEFAULT 0, unread INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_state ON repository (state, not_before, number);
CREATE TABLE IF NOT EXISTS finding (
    repository INTEGER NOT NULL, code TEXT NOT NULL, level TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL,
    message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_repository ON finding (repository);
CREATE TABLE IF NOT EXISTS pull (
    repository INTEGER NOT NULL, topic TEXT NOT NULL, action TEXT NOT NULL, why TEXT NOT NULL, number INTEGER,
    url TEXT NOT NULL, wave INTEGER NOT NULL, state TEXT NOT NULL DEFAULT '', opened REAL NOT NULL,
    PRIMARY KEY (repository, topic)
);
CREATE TABLE IF NOT EXISTS decided (
    repository INTEGER NOT NULL, topic TEXT NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (repository, topic)
);
CREATE TABLE IF NOT EXISTS unpublished (repository INTEGER PRIMARY KEY, action TEXT NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rejection (
    repository INTEGER NOT NULL, source TEXT NOT NULL, code TEXT NOT NULL, place TEXT NOT NULL, why TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_source ON rejection (repository, source);
"""
DECISION, COMMENT = "decision", "comment"  # where a rejection was written down


class NoLedger(Exception):
    """A ledger that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is asked of every repository. select, ignore: as on the command line. cover: Markdown for each pull request.

    forge, server, api_url: the forge on which those lie that are named as OWNER/NAME (`forges.Place`).
    """

    name: str
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    cover: str = ""
    forge: str = "github"
    server: str = ""
    api_url: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A repository in hand. head, rules: the commit and the rules of its last result, "" without one."""

    number: int
    name: str
    url: str
    attempt: int
    head: str
    rules: str


class Ledger:
    """Every method is one transaction. Raises NoLedger, sqlite3.Error where the disk does not take it."""

    def __init__(self, path: Path, *, new: bool = False, read_only: bool = False) -> None:
        if not new and not path.is_file():
            raise NoLedger(f"there is no ledger {path}")
        try:
            # `immutable`: a shard reads a plan that nobody writes, on whatever file system it lies
            self._db = (
                sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None)
                if read_only
                else sqlite3.connect(path, timeout=60, isolation_level=None)
            )
            if not read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")  # what is lost with the power is made again
                self._db.executescript(_TABLES)
            self._db.execute("SELECT 1 FROM campaign")
        except sqlite3.Error as error:
            raise NoLedger(f"{path} cannot be used: {error}") from None

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def plan(self, campaign: Campaign, targets: Iterable[Target]) -> int:
        """Keep a campaign and its repositories; those that are in it already stay as they are. How many are new."""
        asked = [(key, json.dumps(value)) for key, value in asdict(campaign).items()]
        with self._transaction() as tables:
            tables.executemany("INSERT OR REPLACE INTO campaign VALUES (?, ?)", asked)
            before = self._count()
            rows = [(target.name, target.url) for target in targets]
            tables.executemany("INSERT OR IGNORE INTO repository (name, url) VALUES (?, ?)", rows)
            return self._count() - before

    def campaign(self) -> Campaign:
        said = {key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM campaign")}
        if "name" not in said:
            raise NoLedger("the ledger holds no campaign: `ddpfix fleet plan` makes one")
        known = {field.name: said[field.name] for field in fields(Campaign) if field.name in said}
        asked: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in known.items()}
        return Campaign(**asked)

    # Work

    def resume(self, *, again: bool = False) -> None:
        """At the start of a driver: what an ended one had in hand waits again, no pause holds. again: so does what is done."""
        with self._transaction() as tables:
            # the driver's end is no failure of theirs
            tables.execute(
                f"UPDATE repository SET state = '{WAITING}', attempt = max(0, attempt - 1) WHERE state = '{RUNNING}'"
            )
            if again:
                tables.execute(f"UPDATE repository SET state = '{WAITING}', attempt = 0 WHERE state = '{DONE}'")
            tables.execute("DELETE FROM campaign WHERE key = 'paused'")

    def pause(self) -> None:
        with self._transaction() as tables:
            tables.execute("INSERT OR REPLACE INTO campaign VALUES ('paused', 'true')")

    def is_paused(self) -> bool:
        return self._db.execute("SELECT 1 FROM campaign WHERE key = 'paused'").fetchone() is not None

    def take(self, most: int, now: float) -> list[Taken]:
        """Repositories that wait, now in hand."""
        if most <= 0:
            return []
        with self._transaction() as tables:
            rows = tables.execute(
                f"UPDATE repository SET state = '{RUNNING}', attempt = attempt + 1 WHERE number IN (SELECT number FROM repository"
                f" WHERE state = '{WAITING}' AND not_before <= ? ORDER BY not_before, number LIMIT ?)"
                " RETURNING number, name, url, attempt, head, rules",
                (now, most),
            ).fetchall()
        return [Taken(*row) for row in sorted(rows)]

    def waiting(self) -> list[Taken]:
        """Those that wait; they go on waiting."""
        rows = self._db.execute(
            f"SELECT number, name, url, attempt, head, rules FROM repository WHERE state = '{WAITING}' ORDER BY number"
        )
        return [Taken(*row) for row in rows]

    def all(self) -> list[Taken]:
        """Every repository of the plan, for a shard that writes its results elsewhere."""
        rows = self._db.execute("SELECT number, name, url, attempt, head, rules FROM repository ORDER BY number")
        return [Taken(*row) for row in rows]

    def put_back(self, number: int, not_before: float) -> None:
        """Let a repository whose worker was lost wait for its next attempt."""
        with self._transaction() as tables:
            tables.execute(f"UPDATE repository SET state = '{WAITING}', not_before = ? WHERE number = ?", (not_before, number))

    def record(self, results: Sequence[tuple[int, Result]]) -> None:
        """Keep what came of repositories; the last result counts, however often it comes."""
        with self._transaction() as tables:
            for number, result in results:
                _record(tables, number, result)

    def retry(self, cause: str) -> int:
        """Let the failed of one cause ("" for all) wait again. How many."""
        with self._transaction() as tables:
            return tables.execute(
                f"UPDATE repository SET state = '{WAITING}', attempt = 0, not_before = 0"
                f" WHERE state = '{FAILED}' AND ? IN ('', cause)",
                (cause,),
            ).rowcount

    def next_at(self) -> float | None:
        """When the first waiting repository may be taken; None where none waits."""
        (at,) = self._db.execute(f"SELECT min(not_before) FROM repository WHERE state = '{WAITING}'").fetchone()
        return None if at is None else float(at)

    # Questions

    def _count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM repository").fetchone()[0])

    def counts(self) -> Mapping[str, int]:
        return dict(self._db.execute("SELECT state, count(*) FROM repository GROUP BY state"))

    def rows(self, question: str, *given: object) -> list[tuple[Any, ...]]:
        """Rows of a question that reads, for status and report."""
        return self._db.execute(question, given).fetchall()

    def to_publish(self) -> list[tuple[int, str]]:
        """(number, name) of the repositories with a safe fix and without a pull request so far."""
        return self.rows(
            "SELECT number, name FROM repository WHERE state = ? AND number IN (SELECT repository FROM finding"
            " WHERE level = 'safe') AND number NOT IN (SELECT repository FROM pull) ORDER BY number",
            DONE,
        )

    def number_of(self, url: str) -> int | None:
        row = self._db.execute("SELECT number FROM repository WHERE url = ?", (url,)).fetchone()
        return None if row is None else int(row[0])

    def keep_pull(self, row: Sequence[object]) -> None:
        """(repository, topic, action, why, number, url, wave, state, opened) of a topic, as the bot left it."""
        with self._transaction() as tables:
            tables.execute("INSERT OR REPLACE INTO pull VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", tuple(row))

    def keep_unpublished(self, repository: int, action: str, why: str) -> None:
        """Why a repository has no pull request; with "" it is no longer so."""
        with self._transaction() as tables:
            tables.execute("DELETE FROM unpublished WHERE repository = ?", (repository,))
            if action:
                tables.execute("INSERT INTO unpublished VALUES (?, ?, ?)", (repository, action, why))

    def keep_wave_left(self, numbers: Collection[int]) -> None:
        """The repositories of the wave at hand that had no turn yet."""
        with self._transaction() as tables:
            tables.execute("INSERT OR REPLACE INTO campaign VALUES ('wave left', ?)", (json.dumps(sorted(numbers)),))

    def wave_left(self) -> frozenset[int]:
        row = self._db.execute("SELECT value FROM campaign WHERE key = 'wave left'").fetchone()
        return frozenset(json.loads(row[0])) if row else frozenset()

    def set_pull_state(self, repository: int, topic: str, state: str, *, at: float = 0.0, seconds: float = 0.0) -> None:
        """at: when it was decided, seconds: after how long, 0 where nobody knows."""
        with self._transaction() as tables:
            tables.execute("UPDATE pull SET state = ? WHERE repository = ? AND topic = ?", (state, repository, topic))
            if at:
                tables.execute("INSERT OR REPLACE INTO decided VALUES (?, ?, ?, ?)", (repository, topic, at, seconds))

    def keep_rejections(self, repository: int, source: str, rows: Iterable[tuple[str, str, str]]) -> None:
        """(code or topic, where it stands, why) of what people rejected, in place of what was known from that source."""
        with self._transaction() as tables:
            _reject(tables, repository, source, rows)


def _record(tables: sqlite3.Connection, number: int, result: Result) -> None:
    state = FAILED if result.cause else DONE
    if result.unchanged:
        tables.execute("UPDATE repository SET state = ?, seconds = ? WHERE number = ?", (state, result.seconds, number))
        return
    tables.execute(
        "UPDATE repository SET state = ?, head = ?, rules = ?, cause = ?, error = ?, seconds = ?, files = ?, unread = ?"
        " WHERE number = ?",
        (
            state, result.head, result.rules, result.cause, result.error, result.seconds, result.files, result.unread, number,
        ),
    )  # fmt: skip
    tables.execute("DELETE FROM finding WHERE repository = ?", (number,))
    tables.executemany("INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?)", [(number, *row) for row in result.findings])
    _reject(tables, number, DECISION, result.rejected)


def _reject(tables: sqlite3.Connection, repository: int, source: str, rows: Iterable[tuple[str, str, str]]) -> None:
    tables.execute("DELETE FROM rejection WHERE repository = ? AND source = ?", (repository, source))
    tables.executemany("INSERT INTO rejection VALUES (?, ?, ?, ?, ?)", [(repository, source, *row) for row in rows])
