"""What the bot keeps on its own machine: accepted work, the pull requests of the last hour, and the key of its marks.

All of it lies in one folder. The forge stays the memory of what was done; this is the memory of what is still to be done.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ddpfix import user_folders
from ddpfix.bot.login import NoLogin, from_file_or_environment

KEY_NAMES = ("DDPFIX_MARKS_KEY",)
SHORTEST_KEY = 16
_LONGEST_WAIT = 60.0  # seconds, for another process

_TABLES = """
CREATE TABLE IF NOT EXISTS delivery (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT NOT NULL, owner TEXT NOT NULL, number INTEGER NOT NULL,
    comment INTEGER NOT NULL, said TEXT NOT NULL, rank INTEGER NOT NULL, running INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX IF NOT EXISTS waiting ON job (slug, number, comment) WHERE NOT running;
CREATE INDEX IF NOT EXISTS turn ON job (rank, owner, id) WHERE NOT running;
CREATE TABLE IF NOT EXISTS served (owner TEXT PRIMARY KEY, turn INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS opened (at REAL NOT NULL);
"""


class Database:
    """One SQLite file, or with "" one in memory. Threads take turns, processes wait for each other.

    `synchronous=FULL`: a transaction is on the disk before it returns, so what was answered with 202 outlives the machine's
    power, too (sqlite.org/pragma.html: in WAL mode NORMAL may lose the last ones).
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.RLock()
        if path:  # it holds what people said: for its owner alone, and SQLite's other files are made like it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        file = path or ":memory:"
        self._connection = sqlite3.connect(file, timeout=_LONGEST_WAIT, isolation_level=None, check_same_thread=False)
        self._begin()

    def _begin(self) -> None:
        """SQLite does not wait for the others with the switch of a new file to WAL (sqlite.org/wal.html, SQLITE_BUSY)."""
        until = time.monotonic() + _LONGEST_WAIT
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_TABLES)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing of what is done inside. Raises sqlite3.Error."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk rolls back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@dataclass(frozen=True)
class State:
    """folder: None for a run that keeps nothing. key: of the marks (`ddpfix.bot.marks`)."""

    folder: Path | None
    key: bytes = field(repr=False)

    def database(self) -> Database:
        """Raises NoLogin where the folder cannot be written."""
        try:
            return Database(self.folder / "bot.sqlite" if self.folder else None)
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self.folder, error) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A hold on the folder as the one service that works off its queue; it ends with the process, however that ends.

        Raises NoLogin where another one has it.
        """
        if self.folder is None:
            yield
            return
        hold = sqlite3.connect(self.folder / "serve.lock", timeout=0, isolation_level=None, check_same_thread=False)
        try:
            hold.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            hold.close()
            todo = "Stop it, or give this one a folder of its own with --state."
            raise NoLogin(f"the state in {self.folder} is in use", "another `ddpfix bot serve` works with it", todo) from None
        try:
            yield
        finally:
            hold.close()


def passing() -> State:
    """A state that ends with the process."""
    return State(None, secrets.token_bytes(32))


def kept(folder: Path | None = None, key_file: Path | None = None) -> State:
    """The state on this machine; what is missing is made. Raises NoLogin where that cannot be.

    folder: `--state`; else DDPFIX_STATE, systemd's STATE_DIRECTORY, the user's state folder.
    key_file: `--marks-key-file`; else DDPFIX_MARKS_KEY; else a key of the folder's own.
    """
    given = from_file_or_environment(key_file, KEY_NAMES, "the key of the marks")
    if given and len(given) < SHORTEST_KEY:
        why = f"it has fewer than {SHORTEST_KEY} characters"
        raise NoLogin("the key of the marks cannot be used", why, "Make one with `openssl rand -hex 32`.")
    place = folder or _usual_folder()
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return State(place, given.encode() if given else _own_key(place / "marks.key"))
    except OSError as error:
        raise _unusable(place, error) from None


def _usual_folder() -> Path:
    for name in ("DDPFIX_STATE", "STATE_DIRECTORY"):
        if given := os.environ.get(name, "").partition(":")[0]:
            return Path(given)
    return Path(user_folders.state()) / "bot"


def _own_key(path: Path) -> bytes:
    """The key in a file that only its owner reads; the first process makes it, whole or not at all."""
    if not path.exists():
        new = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(32))
                file.flush()
                os.fsync(file.fileno())
            os.link(new, path)
        except FileExistsError:
            pass  # another process was faster
        finally:
            new.unlink()
    key = path.read_bytes().strip()
    if len(key) < SHORTEST_KEY:
        raise OSError(f"{path.name} holds no key")
    return key


def _unusable(folder: Path | None, error: Exception) -> NoLogin:
    why = getattr(error, "strerror", None) or str(error)
    return NoLogin(f"the bot cannot keep its state in {folder}", why, "Give a folder of its own with --state or DDPFIX_STATE.")
