"""Reading a log: every known message in it, every traceback, every exit that a launcher saw, each by rank.

All words are looked for in one pass over the bytes; only the lines where one stands are looked at closer, so that the time goes
by the size of the log and not by the number of messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from ddpfix.diagnosis import tracebacks
from ddpfix.diagnosis.lines import Line, bare, is_progress
from ddpfix.diagnosis.messages import Message, all_messages
from ddpfix.diagnosis.tracebacks import Crash

MOST_WORDS = 64  # in one automaton: with more it leaves its fast mode (see the gate)
EACH = 400  # of one message so many are looked at, the others counted
TAIL = 12
_LONGEST_LINE = 20_000
_EXIT = re.compile(r"^\s*rank\s*: (?P<rank>\d+) \(local_rank: \d+\)")
_CODE = re.compile(r"^\s*exitcode\s*: (?P<code>-?\d+) ")
_SPAWNED = re.compile(r"-- Process (?P<rank>\d+) terminated with the following error")  # mp.spawn, above a worker's traceback
_EXIT_WORD = b" (local_rank: "


@dataclass(frozen=True, slots=True)
class Hit:
    """A known message in a log. count: how often it stands there, over all ranks; line and words are those of the first.

    file: of a folder of logs, the one that holds it.
    """

    message: Message
    line: int
    rank: int | None
    text: str
    said: tuple[tuple[str, str], ...] = ()
    count: int = 1
    file: str = ""

    def get(self, name: str) -> str:
        return dict(self.said).get(name, "")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a launcher saw a rank end. code: below zero the signal."""

    rank: int
    code: int
    line: int
    root: bool = False


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds. hits: by line, for each message and rank. tail: the last lines, without progress and launchers."""

    file: str
    size: int
    lines: int
    ranks: tuple[int, ...]
    hits: tuple[Hit, ...]
    crashes: tuple[Crash, ...]
    exits: tuple[Exit, ...]
    tail: tuple[Line, ...]


def read(data: bytes, file: str, *, rank: int | None = None) -> Log:
    """What the bytes of a log say. Never fails: what is not understood is left out. rank: whose lines without a label are."""
    text = _Text(data, rank)
    spots = sorted(_spots(data))
    raw = [(word, text.line_at(at)) for word, at in _bounded(spots)]
    hits = _hits(raw, Counter(word for _, word in spots))
    heads = [line for word, line in raw if word == tracebacks.HEAD and line.text.startswith(tracebacks.HEAD)]
    crashes = tracebacks.joined([c for head in heads if (c := _crash(text, head))])
    exits = tuple(_exits(text, [line for word, line in raw if word == _EXIT_WORD.decode()]))
    ranks = {x for x in (rank, *(h.rank for h in hits), *(c.rank for c in crashes), *(e.rank for e in exits)) if x is not None}
    launcher = [h.line for h in hits if h.message.id == "R06"] + [c.line for c in crashes if c.type == "ChildFailedError"]
    tail = tuple(_tail(text, min(launcher, default=text.count + 1)))
    return Log(file, len(data), text.count, tuple(sorted(ranks)), hits, crashes, exits, tail)


def merged(logs: Sequence[Log], file: str) -> Log:
    """The logs of one run, one a rank or a stream, as one; each line is told with its file."""
    hits = tuple(replace(h, file=log.file) for log in logs for h in log.hits)
    crashes = tuple(replace(c, file=log.file) for log in logs for c in log.crashes)
    ranks = tuple(sorted({rank for log in logs for rank in log.ranks}))
    exits = tuple(e for log in logs for e in log.exits)
    tail = next((log.tail for log in logs if log.crashes), logs[-1].tail)
    return Log(file, sum(log.size for log in logs), sum(log.lines for log in logs), ranks, hits, crashes, exits, tail)


class _Text:
    """The bytes of a log by line. rank: whose lines without a label are."""

    def __init__(self, data: bytes, rank: int | None) -> None:
        self.data, self.rank = data, rank
        self.starts = [0, *(m.end() for m in re.finditer(b"\n", data))]
        self.count = len(self.starts) - (1 if data.endswith(b"\n") or not data else 0)

    def line(self, number: int) -> Line:
        """By number, from 1."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.data)
        return self._bare(start, end, number)

    def line_at(self, offset: int) -> Line:
        """The line that holds a byte; where carriage returns drew over it, the part that holds the byte."""
        number = bisect_right(self.starts, offset)
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.data)
        begin = self.data.rfind(b"\r", start, offset) + 1 or start
        stop = self.data.find(b"\r", offset, end)
        end = stop if stop >= 0 else end
        return self._bare(begin, end, number)

    def _bare(self, start: int, end: int, number: int) -> Line:
        line = bare(self.data[start : min(end, start + _LONGEST_LINE)].decode("utf-8", "replace"), number)
        return line if line.rank is not None else Line(number, self.rank, line.text)

    def following(self, number: int, most: int) -> list[Line]:
        return [self.line(n) for n in range(number, min(number + most, self.count + 1))]

    def above(self, number: int, most: int) -> list[Line]:
        return [self.line(n) for n in range(max(1, number - most), number)]


# Words


@cache
def _scans() -> tuple[tuple[BytesAhoCorasick, tuple[str, ...]], ...]:
    words = list(dict.fromkeys([*(w for m in all_messages() for w in m.find), tracebacks.HEAD, _EXIT_WORD.decode()]))
    parts = [tuple(words[i : i + MOST_WORDS]) for i in range(0, len(words), MOST_WORDS)]
    return tuple((BytesAhoCorasick([w.encode() for w in p], matchkind=MatchKind.LeftmostFirst), p) for p in parts)


def _spots(data: bytes) -> Iterator[tuple[int, str]]:
    """(offset, word) of every word."""
    for scan, words in _scans():
        for index, start, _ in scan.find_matches_as_indexes(data):
            yield start, words[index]


def _bounded(spots: list[tuple[int, str]]) -> Iterator[tuple[str, int]]:
    """Of each word the first ones and the last ones."""
    by_word: dict[str, list[int]] = {}
    for at, word in spots:
        by_word.setdefault(word, []).append(at)
    kept = [(at, word) for word, all_at in by_word.items() for at in dict.fromkeys((*all_at[:EACH], *all_at[-EACH:]))]
    return ((word, at) for at, word in sorted(kept))


def _hits(raw: list[tuple[str, Line]], totals: Counter[str]) -> tuple[Hit, ...]:
    """The messages, one for each rank that said it and each thing that it said."""
    owners: dict[str, list[Message]] = {}
    for message in all_messages():
        for word in message.find:
            owners.setdefault(word, []).append(message)
    found: dict[tuple[str, int | None, tuple[tuple[str, str], ...]], Hit] = {}
    for word, line in raw:
        for message in owners.get(word, ()):
            said = message.said(line.text)
            if said is None:
                continue
            rank = int(said["rank"]) if "rank" in said else line.rank
            count = sum(totals[w] for w in message.find)
            hit = Hit(message, line.number, rank, line.text, tuple(said.items()), count)
            found.setdefault((message.id, rank, hit.said), hit)
    return tuple(sorted(found.values(), key=lambda h: h.line))


# Tracebacks, exits, the end


def _crash(text: _Text, head: Line) -> Crash | None:
    first = [head, *text.following(head.number + 1, 60)]
    found = tracebacks.parse(first) or tracebacks.parse([head, *text.following(head.number + 1, tracebacks.LONGEST)])
    if found is None:
        return None
    above = text.above(head.number, 6)
    spawned = next((m for line in above if (m := _SPAWNED.match(line.text))), None)
    rank = int(spawned["rank"]) if spawned and found.rank is None else found.rank
    return Crash(rank, found.line, found.end, found.error, found.frames, tracebacks.chained(above, head.rank))


def _exits(text: _Text, marks: list[Line]) -> Iterator[Exit]:
    """The rows of torchrun's summary; what stands below its “Root Cause” is the first failure that it saw."""
    for mark in marks:
        rank = _EXIT.match(mark.text)
        code = next((c for line in text.following(mark.number + 1, 2) if (c := _CODE.match(line.text))), None)
        if rank and code:
            root = any(line.text.startswith("Root Cause") for line in text.above(mark.number, 5))
            yield Exit(int(rank["rank"]), int(code["code"]), mark.number, root)


def _tail(text: _Text, until: int) -> list[Line]:
    """The last lines above `until`, where the launcher's own words begin, that may say something: no progress, no rulers."""
    out: list[Line] = []
    for number in range(until - 1, max(0, until - 400), -1):
        line = text.line(number)
        words = line.text.strip()
        if words and not is_progress(words) and set(words) - set("=-─_*#~^ "):
            out.append(line)
        if len(out) == TAIL:
            break
    return out[::-1]
