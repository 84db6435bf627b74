"""A hunk as rows for the eye: old beside new, coloured by Pygments, with the words that differ marked. Pure functions.

Only the lines of a hunk are read by the lexer, not their files: a file of 2,000 lines takes it a tenth of a second. What it must
know of the lines above is whether the hunk begins inside a string of several lines.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from codemods.files.text_file import PYTHON_KINDS
from ddpfix.review.items import Hunk, Row

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Run = tuple[str, str]  # (class of the token with "!" behind it where the text is marked, text)
MARK = "!"
PREFIX = "p-"  # Pygments' own names are letters like n and c, which a page has for other things
LONGEST = 400  # characters of a line that are shown
ALIKE = 0.5  # from here on two lines are one line that was changed
MOST_PAIRS = 900
_STRINGS = re.compile(
    r"#[^\n]*|(\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z)|'''(?:[^\\']|\\.|'(?!''))*(?:'''|\Z))"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?",
    re.S,
)
_WORDS = re.compile(r"\w+|\s|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Side:
    """One line of the old or the new file: its number and its coloured text."""

    number: int
    runs: tuple[Run, ...]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.runs)


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of a side-by-side view. A line that is the same on both sides, or was changed, has both; else one is None."""

    old: Side | None
    new: Side | None
    same: bool = False


class Source:
    """A file as far as colours need it: where its strings of several lines begin and end."""

    def __init__(self, path: str, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.path, self.lines = path, self._text.removesuffix("\n").split("\n")
        self._strings: list[tuple[int, int]] | None = None if path.endswith(PYTHON_KINDS) else []

    def begin(self, line: int) -> int:
        """The line from which `line` can be read: its own, or that in which a string begins which is still open above it."""
        if self._strings is None:
            starts = [0, *(m.end() for m in re.finditer("\n", self._text))]
            found = [m.span(1) for m in _STRINGS.finditer(self._text) if m[1] and "\n" in m[1]]
            self._strings = [(bisect_right(starts, a), bisect_right(starts, b - 1)) for a, b in found]
        at = bisect_right(self._strings, (line, 0)) - 1
        return self._strings[at][0] if at >= 0 and self._strings[at][1] >= line else line


def pairs(hunk: Hunk, source: Source) -> tuple[Pair, ...]:
    """The rows of a hunk, old beside new."""
    old = _coloured(source, [r for r in hunk.rows if r.old], lambda r: r.old)
    new = _coloured(source, [r for r in hunk.rows if r.new], lambda r: r.new)
    out: list[Pair] = []
    gone: list[Side] = []
    came: list[Side] = []
    for row in hunk.rows:
        if row.mark == " ":
            out += _block(gone, came)
            gone, came = [], []
            out.append(Pair(Side(row.old, old[row.old]), Side(row.new, new[row.new]), True))
        elif row.mark == "-":
            gone.append(Side(row.old, old[row.old]))
        else:
            came.append(Side(row.new, new[row.new]))
    return (*out, *_block(gone, came))


def excerpt(source: Source, first: int, last: int) -> tuple[Pair, ...]:
    """Lines of a file that does not change, as rows."""
    rows = [Row(" ", n, n, source.lines[n - 1]) for n in range(max(first, 1), min(last, len(source.lines)) + 1)]
    runs = _coloured(source, rows, lambda r: r.old)
    return tuple(Pair(Side(n, shown), Side(n, shown), True) for n, shown in runs.items())


# Colours


def _coloured(source: Source, rows: Sequence[Row], number: Callable[[Row], int]) -> dict[int, tuple[Run, ...]]:
    """Line number -> runs, for neighbouring lines of one file."""
    if not rows:
        return {}
    top = source.begin(rows[0].old or rows[0].new)
    above = source.lines[top - 1 : (rows[0].old or rows[0].new) - 1]
    text = "".join(f"{line}\n" for line in (*above, *(_shown(r.text) for r in rows)))
    lines = list(_lines(_lexer(source.path), text))[len(above) :]
    return {number(row): tuple(line) for row, line in zip(rows, lines, strict=True)}


def _lines(lexer: Lexer, text: str) -> Iterator[list[Run]]:
    line: list[Run] = []
    for kind, value in lexer.get_tokens(text):
        name = _name(kind)
        for i, part in enumerate(value.split("\n")):
            if i:
                yield line
                line = []
            if part and line and line[-1][0] == name:
                line[-1] = (name, line[-1][1] + part)
            elif part:
                line.append((name, part))


@cache
def _lexer(path: str) -> Lexer:
    from pygments.lexers import PythonLexer, YamlLexer
    from pygments.lexers.special import TextLexer

    kind = PythonLexer if path.endswith(PYTHON_KINDS) else YamlLexer if path.endswith((".yaml", ".yml")) else TextLexer
    return kind(stripnl=False, ensurenl=True)


@cache
def _name(kind: _TokenType) -> str:
    """The class of a token: one of few, since a page needs few colours."""
    from pygments.token import Comment, Keyword, Literal, Name, Number, String

    groups: tuple[tuple[_TokenType, str], ...] = (
        (Comment, "c"), (String.Doc, "s"), (String, "s"), (Number, "m"), (Literal.Scalar, "s"), (Name.Decorator, "d"),
        (Name.Function, "f"), (Name.Class, "f"), (Name.Tag, "f"), (Name.Builtin, "b"), (Name.Exception, "b"), (Keyword, "k"),
    )  # fmt: skip
    found: tuple[str, ...] = tuple(name for group, name in groups if kind[: len(group)] == group)
    return found[0] if found else ""


def _shown(text: str) -> str:
    """A line without what a screen would not show, or would show at another place than it stands: a review must see it."""
    if text.isascii() and text.isprintable():
        return text if len(text) <= LONGEST else text[:LONGEST] + " …"
    seen = "".join(c if c == "\t" or unicodedata.category(c)[0] not in "C" else f"\\u{ord(c):04x}" for c in text)
    return seen if len(seen) <= LONGEST else seen[:LONGEST] + " …"


# Pairs


def _block(gone: Sequence[Side], came: Sequence[Side]) -> Iterator[Pair]:
    """Lines that went and lines that came, those that are alike beside each other."""
    i = j = 0
    for a, b in [*_aligned(gone, came), (len(gone), len(came))]:
        yield from (Pair(side, None) for side in gone[i:a])
        yield from (Pair(None, side) for side in came[j:b])
        if a < len(gone):
            yield Pair(*_marked(gone[a], came[b]))
        i, j = a + 1, b + 1


def _aligned(gone: Sequence[Side], came: Sequence[Side]) -> list[tuple[int, int]]:
    """The heaviest pairing in order, by likeness."""
    if not gone or not came or len(gone) * len(came) > MOST_PAIRS:
        return []
    like = [[_likeness(a.text.strip(), b.text.strip()) for b in came] for a in gone]
    best = [[0.0] * (len(came) + 1) for _ in range(len(gone) + 1)]
    for i in range(len(gone) - 1, -1, -1):
        for j in range(len(came) - 1, -1, -1):
            paired = best[i + 1][j + 1] + like[i][j] if like[i][j] >= ALIKE else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    out = []
    i = j = 0
    while i < len(gone) and j < len(came):
        if like[i][j] >= ALIKE and best[i][j] == best[i + 1][j + 1] + like[i][j]:
            out.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return out


def _likeness(a: str, b: str) -> float:
    if a == b:
        return 1.0
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE else 0.0


def _marked(old: Side, new: Side) -> tuple[Side, Side]:
    """A changed line with the words that differ marked, on both sides."""
    a, b = _WORDS.findall(old.text), _WORDS.findall(new.text)
    gone: list[tuple[int, int]] = []
    came: list[tuple[int, int]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            gone.append((_length(a[:i1]), _length(a[:i2])))
            came.append((_length(b[:j1]), _length(b[:j2])))
    return Side(old.number, _cut(old.runs, gone)), Side(new.number, _cut(new.runs, came))


def _length(words: Sequence[str]) -> int:
    return sum(map(len, words))


def _cut(runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> tuple[Run, ...]:
    """The runs with those parts marked that lie in `marks`."""
    out: list[Run] = []
    at = 0
    for name, text in runs:
        edges = sorted({at, at + len(text), *(x for mark in marks for x in mark if at < x < at + len(text))})
        for start, end in pairwise(edges):
            inside = any(a <= start and end <= b for a, b in marks)
            out.append((name + MARK if inside else name, text[start - at : end - at]))
        at += len(text)
    return tuple(out)
