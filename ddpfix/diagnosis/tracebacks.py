"""Tracebacks in a log, each by the rank that printed it, although the ranks' lines may alternate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ddpfix.diagnosis.lines import Line

HEAD = "Traceback (most recent call last):"
LONGEST = 600  # lines; an endless recursion prints a thousand frames, which Python itself folds
_FRAME = re.compile(r'\s*(?:\| )?File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_CHAIN = ("During handling of the above exception, another", "The above exception was the direct cause of")
_ERROR = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: |:?$)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a traceback."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Crash:
    """An exception that ended a rank, or was printed. line, end: its first and last line. error: its last words, in one line.

    chained: it came about while another one was handled. file: of a folder of logs, the one that holds it.
    """

    rank: int | None
    line: int
    end: int
    error: str
    frames: tuple[Frame, ...]
    chained: bool = False
    file: str = ""

    @property
    def type(self) -> str:
        found = _ERROR.match(self.error)
        return found["type"].rpartition(".")[2] if found else ""


def parse(lines: Sequence[Line]) -> Crash | None:
    """The traceback that begins with the first of these lines; of the rest, lines of other ranks are passed over."""
    head = lines[0]
    frames: list[Frame] = []
    end, error = head.number, ""
    for line in lines[1:]:
        if line.rank != head.rank:
            continue
        text = line.text
        if found := _FRAME.match(text):
            frames.append(Frame(found["path"], int(found["line"]), found["function"] or ""))
        elif not text.startswith(" ") and text.strip() and (_ERROR.match(text) or not frames):
            error, end = " ".join(text.split()), line.number
            break
        elif text.strip() and not text.startswith(" "):
            return None
        end = line.number
    return Crash(head.rank, head.number, end, error, tuple(frames)) if error else None


def chained(lines: Iterable[Line], rank: int | None) -> bool:
    """True where the lines above a traceback say that it came about while another one was handled."""
    return any(line.rank == rank and line.text.startswith(_CHAIN) for line in lines)


def joined(crashes: Sequence[Crash]) -> tuple[Crash, ...]:
    """Chains made one: the last error of a chain, with the frames of all of it."""
    out: list[Crash] = []
    for crash in crashes:
        before = next((i for i in range(len(out) - 1, -1, -1) if out[i].rank == crash.rank), None)
        if crash.chained and before is not None:
            first = out[before]
            out[before] = replace(first, end=crash.end, error=crash.error, frames=(*first.frames, *crash.frames))
        else:
            out.append(crash)
    return tuple(out)
