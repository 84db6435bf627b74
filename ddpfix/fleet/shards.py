"""Campaigns without a driver: each job of an array works off its share and writes JSON Lines, which are merged afterwards.

A share's file goes on where a killed job stopped: what it holds is not done again, and a line that was cut off is written anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from ddpfix.fleet.drive import Pace, job_of, rules_of
from ddpfix.fleet.ledger import Ledger, Taken
from ddpfix.fleet.progress import Watch
from ddpfix.fleet.result import Result, of_plain
from ddpfix.fleet.work import work_on


class BadShard(Exception):
    """A share that cannot be, or a file of results that cannot be read, and why."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The share `index` (from 0) of `count`."""

    index: int
    count: int

    def holds(self, taken: Taken) -> bool:
        return crc32(taken.url.encode()) % self.count == self.index


def parse(word: str) -> Shard:
    """`3/10`, counted from 0 as the indices of an array usually are. Raises BadShard."""
    index, slash, count = word.partition("/")
    if not (slash and index.isascii() and index.isdigit() and count.isascii() and count.isdigit()):
        raise BadShard(f"{word!r} is no share: write it as INDEX/COUNT, such as 0/10")
    if not int(index) < int(count):
        raise BadShard(f"there is no share {index} of {count}: they are counted from 0 to {int(count) - 1}")
    return Shard(int(index), int(count))


def run(ledger: Ledger, shard: Shard, results: Path, pace: Pace, watch: Watch) -> None:
    """Work off a share of the plan, in order, and add a line a repository to `results`. Raises BadShard, OSError."""
    campaign = ledger.campaign()
    known = {url for url, _ in _lines(results)} if results.exists() else set()
    handle = os.open(results, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        _begin_a_line(handle)
        for taken in ledger.all():
            if shard.holds(taken) and taken.url not in known:
                watch.began(taken)
                watch.beat()
                plain = dict(work_on(job_of(campaign, taken, pace).plain()))
                line = json.dumps({"url": taken.url, **plain}, ensure_ascii=True)
                os.write(handle, f"{line}\n".encode())
                os.fsync(handle)
                watch.ended(taken, of_plain(plain))
    finally:
        os.close(handle)


def merge(ledger: Ledger, results: Path) -> tuple[int, int]:
    """Take the results of a share into the ledger: how many, and how many were of repositories that it does not know.

    Raises BadShard, also where they were made by other rules than the ledger's and this program's.
    """
    rows, unknown = [], 0
    rules = rules_of(ledger.campaign())
    for url, result in _lines(results):
        if result.rules != rules:
            raise BadShard(f"{results} was made by another version, or for another question: run that share again")
        number = ledger.number_of(url)
        if number is None:
            unknown += 1
        else:
            rows.append((number, result))
    ledger.record(rows)
    return len(rows), unknown


def _begin_a_line(handle: int) -> None:
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        os.write(handle, b"\n")


def _lines(path: Path) -> Iterator[tuple[str, Result]]:
    """(url, result) of each whole line; the last one may have been cut off by whatever ended the job."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadShard(f"{path}: {error.strerror}") from None
    for line in text.splitlines():
        said = _object(line)
        if said is not None:
            try:
                yield str(said.pop("url")), of_plain(said)
            except (KeyError, TypeError, ValueError):
                raise BadShard(f"{path}: a line holds no result: {line[:80]!r}") from None


def _object(line: str) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None
