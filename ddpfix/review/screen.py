"""One finding on a terminal: reason and evidence, then its change, in any width, with and without colour. Text in, text out."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddpfix.decisions import Decision
from ddpfix.review.items import Hunk, ReviewItem, Row

NARROWEST, WIDEST = 20, 110
_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36",
    "red-mark": "31;7", "green-mark": "32;7",
}
_LEVELS = {"safe": "green", "unsafe": "yellow", "display": "cyan"}
_SHOWN_LEVEL = {"safe": "safe", "unsafe": "unsafe", "display": "reported, no fix"}


@dataclass(frozen=True, slots=True)
class Look:
    """How wide the terminal is, whether it has colours, and whether it can show more than ASCII."""

    width: int
    color: bool
    ascii: bool = False

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[m" if self.color and text else text

    @property
    def columns(self) -> int:
        return max(NARROWEST, self.width)


def item_screen(
    item: ReviewItem,
    look: Look,
    *,
    place: str = "",
    decision: Decision | None = None,
    mates: Sequence[str] = (),
    hunks: Sequence[Hunk] | None = None,
) -> str:
    """A whole finding. place: `3/24`. mates: where those stand that go with it. hunks: in the place of the fix's own."""
    finding = item.finding
    out = [_rule(look, f"{place} {printable(finding.place)}".strip())]
    where = f" in {printable(finding.symbol)}" if finding.symbol else ""
    title, level = f"{finding.code} {finding.name}", _SHOWN_LEVEL[item.level]
    if cells(f"{title} ({level}){where}") <= look.columns:
        out.append(f"{look.paint(title, 'bold')} ({look.paint(level, _LEVELS[item.level])}){where}")
    else:
        out += [*(look.paint(line, "bold") for line in wrapped(title, look)), *wrapped(f"({level}){where}", look)]
    out += wrapped(finding.message, look)
    if item.reason:
        out += _labelled("Assumes" if item.level == "unsafe" else "No fix" if not item.acceptable else "Note", item.reason, look)
    elif not item.acceptable:
        out += _labelled("No fix", item.why_not, look)
    for evidence in item.evidence:
        at = f" ({evidence.place})" if evidence.path else ""
        out += _labelled("Evidence", evidence.text + at, look)
    if mates:
        out += _labelled("Together with", ", ".join(mates), look)
    if decision is not None:
        edited = ", edited by hand" if decision.edited else ""
        why = f": {decision.reason}" if decision.reason else ""
        out += _labelled("Decided", f"{decision.verdict}{edited}{why}", look)
    shown = item.hunks if hunks is None else hunks
    if shown:
        out += ["", *hunk_lines(shown, look)]
    return "\n".join(out) + "\n"


def hunk_lines(hunks: Sequence[Hunk], look: Look) -> Iterator[str]:
    """The change, with line numbers; a line that is too long goes on below itself."""
    several = len({h.path for h in hunks}) > 1
    path = ""
    for hunk in hunks:
        if several and hunk.path != path:
            yield look.paint(printable(hunk.path), "bold")
        path = hunk.path
        yield look.paint(hunk.header, "cyan")
        gutter = len(str(max((r.old or r.new for r in hunk.rows), default=0)))
        for row, marked in _with_marks(hunk.rows):
            yield from _row(row, marked, gutter, look)


def _row(row: Row, marked: tuple[int, int] | None, gutter: int, look: Look) -> Iterator[str]:
    number = str(row.new if row.mark == "+" else row.old).rjust(gutter)
    head = f"{number} {row.mark}"
    style = {"-": "red", "+": "green"}.get(row.mark, "")
    text, room = printable(row.text), max(8, look.columns - len(head))
    start = 0
    for k, piece in enumerate(_pieces(text, room)):
        lead = head if k == 0 else " " * (gutter + 1) + row.mark
        yield look.paint(lead, style or "dim") + _inked(piece, style, marked, start, look)
        start += len(piece)


def _inked(piece: str, style: str, marked: tuple[int, int] | None, start: int, look: Look) -> str:
    if not style or marked is None or not look.color:
        return look.paint(piece, style) if style else piece
    first, last = (min(max(n - start, 0), len(piece)) for n in marked)
    return look.paint(piece[:first], style) + look.paint(piece[first:last], f"{style}-mark") + look.paint(piece[last:], style)


def _with_marks(rows: Sequence[Row]) -> Iterator[tuple[Row, tuple[int, int] | None]]:
    """Rows, with the part that differs (in printable characters) where as many lines were put as were taken out."""
    i = 0
    while i < len(rows):
        j = i
        while j < len(rows) and rows[j].mark == "-":
            j += 1
        k = j
        while k < len(rows) and rows[k].mark == "+":
            k += 1
        if j > i and k - j == j - i:
            spans = [_difference(printable(a.text), printable(b.text)) for a, b in zip(rows[i:j], rows[j:k], strict=True)]
            yield from zip(rows[i:j], (old for old, _ in spans), strict=True)
            yield from zip(rows[j:k], (new for _, new in spans), strict=True)
        else:
            k = max(k, i + 1)
            yield from ((row, None) for row in rows[i:k])
        i = k


def _difference(old: str, new: str) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Where two lines differ; None where hardly anything is the same."""
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
    if len(old[:head].strip()) + tail < 4:
        return None, None
    return (head, len(old) - tail), (head, len(new) - tail)


# Words and cells


def _rule(look: Look, text: str) -> str:
    line = "-" if look.ascii else "─"
    shown = f"{line * 2} {text} "
    if cells(shown) > look.columns:
        shown = f"{line * 2} {_end_of(text, look.columns - 4)} "
    return look.paint(shown + line * max(0, min(look.columns, WIDEST) - cells(shown)), "bold")


def _end_of(text: str, room: int) -> str:
    return text if len(text) <= room else "..." + text[len(text) - room + 3 :]


def wrapped(text: str, look: Look, indent: str = "", below: str = "") -> list[str]:
    """Lines of whole words, as wide as the terminal; nothing in them but what can be shown."""
    width = min(look.columns, WIDEST)
    flat = " ".join(printable(text).split())
    return textwrap.wrap(flat, width, initial_indent=indent, subsequent_indent=below, break_on_hyphens=False) or [""]


def _labelled(label: str, text: str, look: Look) -> list[str]:
    first, *rest = wrapped(f"{label}: {text}", look, "  ", "    ")
    name = f"  {label}:"
    return [look.paint(name, "dim") + first.removeprefix(name), *rest]


def printable(text: str) -> str:
    """Text that a terminal only shows: no escape sequence, no control character of a file gets through."""
    expanded = text.expandtabs(4)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in expanded)


def cells(text: str) -> int:
    """How many columns a text takes."""
    return sum(_width(c) for c in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pieces(text: str, room: int) -> Iterator[str]:
    """The text in pieces of at most `room` columns, at least one."""
    piece, used = "", 0
    for character in text:
        width = _width(character)
        if used + width > room:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + width
    yield piece
