"""What a generated program is made of: the shape of its skeleton, and what stands in its holes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from string import Template

from codemods.runtime.record import record

Holes = Mapping[str, str]
MARK = "  #!"


@record
class Shape:
    """How a program is written that has nothing wrong. `frame`: raw, accelerate, lightning or trainer (Hugging Face)."""

    frame: str
    start: str
    setup: str
    rank: str
    place: str

    def __str__(self) -> str:
        return f"{self.frame}/{self.start}/{self.setup}/{self.rank}/{self.place}"


@record
class Program:
    """Its files, and the lines of its fault. Every such line is a fair place for the finding."""

    files: Mapping[str, str]
    marked: frozenset[tuple[str, int]]


@record
class Fault:
    """One class of errors: the same holes filled wrongly and rightly. Any of the codes is a fair answer to it.

    `frames` are those that it applies to. `not_in` gives parts of shapes in which it is none, or is rightly not told, with the
    reason: a key is a value of any part of the shape, or `frame/value`.
    """

    codes: tuple[str, ...]
    frames: tuple[str, ...]
    wrong: tuple[Holes, ...]
    right: tuple[Holes, ...]
    not_in: Mapping[str, str]

    def applies(self, shape: Shape) -> bool:
        parts = (shape.start, shape.setup, shape.rank, shape.place)
        keys = {*parts, *(f"{shape.frame}/{part}" for part in parts)}
        return shape.frame in self.frames and not keys & self.not_in.keys()


def fault(codes: str, frames: str, *, wrong: tuple[Holes, ...], right: tuple[Holes, ...], not_in: Holes | None = None) -> Fault:
    return Fault(tuple(codes.split()), tuple(frames.split()), wrong, right, not_in or {})


def way(**holes: str) -> Holes:
    """Texts by the hole they stand in; `#!` marks the lines of the fault."""
    return {name: textwrap.dedent(text).strip("\n") for name, text in holes.items()}


def filled(skeleton: str, holes: Holes, words: Mapping[str, str]) -> str:
    """The skeleton with each line `<name>` replaced by that hole's lines, indented as it stands; an empty hole is no line."""
    lines: list[str] = []
    for line in skeleton.splitlines():
        name = line.strip()
        if not (name.startswith("<") and name.endswith(">")):
            lines.append(Template(line).safe_substitute(words))
            continue
        indent = line[: len(line) - len(line.lstrip())]
        text = Template(holes.get(name[1:-1], "")).safe_substitute(words)
        lines += [indent + part if part else part for part in text.splitlines()]
    return "\n".join(lines) + "\n"


def marked(files: Mapping[str, str]) -> Program:
    """The files without their marks."""
    marks = {(path, n) for path, text in files.items() for n, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)}
    clean = {path: "\n".join(line.removesuffix(MARK) for line in text.splitlines()) + "\n" for path, text in files.items()}
    return Program(clean, frozenset(marks))
