"""One page about a campaign: what was found where, what became of the pull requests, what failed, and what people refuse most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ddpfix.fleet.ledger import Ledger
from ddpfix.fleet.report_data import MOST, Page, first_words, page
from ddpfix.fleet.result import CAUSES, LEVELS
from ddpfix.summary.markdown import code, prose, table

if TYPE_CHECKING:
    from jinja2 import Environment

WORDS = {"safe": "safe fix", "unsafe": "unsafe fix", "display": "report only"}
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a chart: (kind, from, width) in percent of the longest, one behind the other."""

    label: str
    note: str
    total: int
    parts: tuple[tuple[str, float, float], ...]


def bars(rows: Sequence[tuple[str, str, Sequence[tuple[str, int]]]]) -> tuple[Bar, ...]:
    """(label, note, its numbers by kind) of each row as a chart."""
    longest = max((sum(n for _, n in numbers) for _, _, numbers in rows), default=0) or 1
    out = []
    for label, note, numbers in rows:
        parts, at = [], 0.0
        for kind, number in numbers:
            width = 100 * number / longest
            parts.append((kind, round(at, 2), round(width, 2)))
            at += width
        out.append(Bar(label, note, sum(n for _, n in numbers), tuple(part for part in parts if part[2])))
    return tuple(out)


def _by_codemod(found: Page) -> tuple[Bar, ...]:
    rows = []
    for name in dict.fromkeys(c.code for c in found.status.codes):
        levels = {c.level: c.findings for c in found.status.codes if c.code == name}
        rows.append((name, found.names.get(name, ""), [(level, levels.get(level, 0)) for level in LEVELS]))
    return bars(rows)


def _by_wave(found: Page) -> tuple[Bar, ...]:
    kinds = ("merged", "open", "closed")
    return bars([(f"wave {w.number}", "", [(kind, getattr(w, kind)) for kind in kinds]) for w in found.waves])


def _by_time(found: Page) -> tuple[Bar, ...]:
    return bars([(name, "", [("merged", count)]) for name, count in found.times.items()]) if found.seconds else ()


def html(ledger: Ledger) -> str:
    """A page that loads nothing from anywhere, in the look of the review page."""
    found = page(ledger)
    theme = (HERE.parent / "review" / "static" / "review.css").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=found,
            style=theme + (HERE / "report.css").read_text(encoding="utf-8"),
            first_words=first_words(found),
            words=WORDS,
            causes=CAUSES,
            rows=MOST,
            codemods=_by_codemod(found),
            waves=_by_wave(found),
            times=_by_time(found),
        )
    )


def markdown(ledger: Ledger) -> str:
    found = page(ledger)
    parts = [f"# {prose(found.status.name)}", "", " ".join(first_words(found)), ""]
    for title, heads, rows in _tables(found):
        if rows:
            parts += [f"## {title}", "", *table(heads, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def _tables(found: Page) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """(title, heads, rows) of each table of the Markdown."""
    codes = [
        (c.code, found.names.get(c.code, ""), WORDS[c.level], str(c.findings), str(c.repositories)) for c in found.status.codes
    ]
    yield "Findings", ("code", "what", "level", "findings", "repositories"), codes
    holders = [(code(h.name), str(h.total), *(str(h.codes.get(c, "")) for c in found.columns)) for h in found.holders]
    yield "Repositories with most to repair", ("repository", "findings", *found.columns), holders
    fates = [
        (f.topic, str(f.opened), str(f.merged), str(f.closed), str(f.decisions), f"{f.refused:.0%}") for f in found.fates
    ]
    heads = ("topic", "opened", "merged", "closed unmerged", "rejected in decisions", "refused")
    yield "Pull requests", heads, fates
    waves = [(str(w.number), str(w.total), str(w.merged), str(w.open), str(w.closed)) for w in found.waves]
    yield "Waves", ("wave", "opened", "merged", "open", "closed unmerged"), waves
    times = [(name, str(count)) for name, count in found.times.items()] if found.seconds else []
    yield "From the opening to the merge", ("within", "pull requests"), times
    said = "nothing was said"
    rejected = [(code(r.name), r.code, code(r.place), prose(r.why) or said, r.source, prose(r.url)) for r in found.rejections]
    yield "What people rejected, and why", ("repository", "what", "where", "why", "from a", "address"), rejected
    failed = [(code(f.name), CAUSES.get(f.cause, f.cause), prose(f.error)) for f in found.status.failed[:MOST]]
    yield "Failed", ("repository", "cause", "what was said"), failed
    without = [(code(f.name), f.cause, prose(f.error)) for f in found.status.unpublished[:MOST]]
    yield "Without a pull request", ("repository", "what", "why"), without


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
