"""What the tracer wrote in each rank, read into plain values."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = struct.Struct("<QQQQ")  # the same as in the tracer, which can import nothing of this package


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's: `file` relative to the folder the program ran in where it lies there; text: the line itself."""

    file: str
    line: int
    function: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Call:
    """A collective that a rank issued. at: the user's line, None where no code of theirs led to it. raised: how it failed."""

    number: int
    op: str
    at: Place | None
    via: str = ""
    what: str = ""
    raised: str = ""


@dataclass(frozen=True, slots=True)
class Weights:
    """Digests of a wrapped model's parameters and buffers, by name, after so many optimizer steps."""

    model: str
    steps: int
    weights: Mapping[str, str]
    buffers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unused:
    """Parameters of a wrapped model without a gradient: in every backward pass that was looked at, and in some of them."""

    model: str
    never: tuple[str, ...]
    sometimes: tuple[str, ...]
    passes: int


@dataclass(frozen=True, slots=True)
class Round:
    """One pass over a sampler that shuffles. order: a digest of what it gave. training: a wrapped model was in training mode.

    steps: the optimizer steps made before it.
    """

    sampler: int
    order: str
    samples: int
    training: bool
    steps: int
    at: Place | None


@dataclass(frozen=True, slots=True)
class Meeting:
    """A group that a rank asked to be in: of how many processes and as which one of them, None where it left that open."""

    at: Place | None
    size: int | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that ended a rank. kind: its class by its full name. at: the innermost line of the user's."""

    kind: str
    text: str
    at: Place | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


@dataclass(frozen=True, slots=True)
class Trace:
    """What one rank did. `started` is False where the tracer was not loaded, and everything else is then empty.

    stopped: the optimizer steps after which it was made to stop, 0 where it ended by itself.
    """

    rank: int
    started: bool = False
    main_thread: int = 0
    library: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    weights: Mapping[str, Weights] = field(default_factory=dict)
    unused: Mapping[str, Unused] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stopped: int = 0
    steps: int = 0
    waiting: bool = False  # it was in a collective when it ended
    rounds: tuple[Round, ...] = ()
    spawns: Place | None = None  # where the program was about to start ranks of its own, and how many
    asked: int = 0
    pace: tuple[tuple[float, int], ...] = ()  # at each optimizer step: the clock in seconds, the collectives so far
    meetings: tuple[Meeting, ...] = ()
    answered: bool = False  # the CPU has answered for CUDA
    failed: Failure | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The counters of a rank at this moment."""

    entered: int = 0
    left: int = 0
    steps: int = 0
    forwards: int = 0

    @property
    def waiting(self) -> bool:
        return self.entered > self.left


def read_page(folder: Path, rank: int) -> Page:
    """The counters of a rank; zeros where there are none yet."""
    try:
        data = (folder / f"page-{rank}").read_bytes()
    except OSError:
        return Page()
    return Page(*PAGE.unpack(data)) if len(data) == PAGE.size else Page()


def read_trace(folder: Path, rank: int) -> Trace:
    """The trace of a rank, as far as it was written before its end."""
    rows = _rows(folder / f"trace-{rank}.jsonl")
    start = next((r for r in rows if r["t"] == "start"), None)
    if start is None:
        return Trace(rank)
    raised = {r["n"]: r["error"] for r in rows if r["t"] == "raised"}
    calls = tuple(
        Call(r["n"], r["op"], _place(r["at"]), r["via"], r["what"], raised.get(r["n"], "")) for r in rows if r["t"] == "call"
    )
    metrics: dict[str, float] = {}
    for row in rows:
        if row["t"] == "metrics":
            metrics |= {k: float(v) for k, v in row["values"].items()}
    page = read_page(folder, rank)
    return Trace(
        rank,
        True,
        start["main_thread"],
        tuple(start["library"]),
        calls,
        {r["model"]: Weights(r["model"], r["steps"], r["weights"], r["buffers"]) for r in rows if r["t"] == "weights"},
        {
            r["model"]: Unused(r["model"], tuple(r["never"]), tuple(r["sometimes"]), r["passes"])
            for r in rows
            if r["t"] == "unused"
        },
        metrics,
        tuple(dict.fromkeys(r["text"] for r in rows if r["t"] == "note")),
        next((r["steps"] for r in rows if r["t"] == "stopped"), 0),
        page.steps,
        page.waiting,
        tuple(
            Round(r["sampler"], r["order"], r["samples"], r["training"], r["steps"], _place(r["at"]))
            for r in rows
            if r["t"] == "round"
        ),
        next((_place(r["at"]) for r in rows if r["t"] == "spawns"), None),
        next((r["asked"] for r in rows if r["t"] == "spawns"), 0),
        _pace(rows),
        tuple(Meeting(_place(r["at"]), r["size"], r["rank"]) for r in rows if r["t"] == "meets"),
        any(r["t"] == "answered" for r in rows),
        next((Failure(r["error"], r["text"], _place(r["at"])) for r in rows if r["t"] == "failed"), None),
    )


def _pace(rows: list[dict[str, Any]]) -> tuple[tuple[float, int], ...]:
    out: list[tuple[float, int]] = []
    calls = 0
    for row in rows:
        calls += row["t"] == "call"
        if row["t"] == "step":
            out.append((row["at"], calls))
    return tuple(out)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    out = []
    for line in lines:
        try:
            out.append(json.loads(line))
        except ValueError:  # the last line of a rank that was killed
            continue
    return out


def _place(at: list[Any] | None) -> Place | None:
    return Place(at[0], at[1], at[2]) if at else None


# Stacks

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def read_stack(folder: Path, trace: Trace, cwd: Path) -> tuple[Place, ...]:
    """Where the main thread of a rank stood when it was last asked: the user's own frames, innermost first.

    The form is that of the standard library's faulthandler.
    """
    try:
        text = (folder / f"stacks-{trace.rank}.txt").read_text(errors="replace")
    except OSError:
        return ()
    threads: dict[int, list[Place]] = {}
    now: list[Place] = []
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            now = threads[int(thread[1], 16)] = []
        elif frame := _FRAME.match(line):
            if shown := _of_user(frame[1], trace.library, cwd):
                now.append(with_text(Place(shown, int(frame[2]), frame[3]), cwd))
    return tuple(threads.get(trace.main_thread, ()))


def _of_user(name: str, library: tuple[str, ...], cwd: Path) -> str:
    """The file as it is shown, "" for what is installed, Python's own or the tracer's."""
    if name.startswith("<") or "site-packages" in name or "dist-packages" in name or "_ddpfix_tracer" in name:
        return ""
    full = name if Path(name).is_absolute() else str(cwd / name)
    if full.startswith(tuple(folder + "/" for folder in library)):
        return ""
    for base in (str(cwd), str(cwd.resolve())):
        if full.startswith(base + "/"):
            return full[len(base) + 1 :]
    return full


def with_text(place: Place, cwd: Path) -> Place:
    """The place with the text of its line, as the file has it now."""
    try:
        lines = (cwd / place.file).read_text(errors="replace").splitlines()
    except OSError:
        return place
    text = lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
    return Place(place.file, place.line, place.function, text)
