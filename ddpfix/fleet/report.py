"""One page about a campaign: what was found where, what became of the pull requests, what failed, and what people refuse most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ddpfix import catalog
from ddpfix.fleet.ledger import Ledger
from ddpfix.fleet.result import CAUSES
from ddpfix.fleet.status import Status, status
from ddpfix.summary.markdown import code, prose

if TYPE_CHECKING:
    from jinja2 import Environment

MOST = 50  # rows of a table
LEVELS = {"safe": "safe fix", "unsafe": "unsafe fix", "display": "report only"}
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Holder:
    """A repository and how many findings of each level it has."""

    name: str
    safe: int
    unsafe: int
    told: int


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one topic's pull requests. refused: the share of the decided ones that were closed unmerged."""

    topic: str
    opened: int
    merged: int
    closed: int

    @property
    def refused(self) -> float:
        return self.closed / (self.merged + self.closed) if self.merged + self.closed else 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page shows. rejected: (repository, topic, address) of what was closed unmerged."""

    status: Status
    names: dict[str, str]
    holders: tuple[Holder, ...]
    fates: tuple[Fate, ...]
    rejected: tuple[tuple[str, str, str], ...]

    @property
    def worst(self) -> Fate | None:
        """The topic that people refuse most, None where nothing was refused."""
        refused = [fate for fate in self.fates if fate.closed]
        return max(refused, key=lambda fate: (fate.refused, fate.closed)) if refused else None


def page(ledger: Ledger) -> Page:
    holders = ledger.rows(
        "SELECT name, sum(level = 'safe'), sum(level = 'unsafe'), sum(level = 'display') FROM finding"
        " JOIN repository ON repository.number = repository GROUP BY repository.number ORDER BY 2 DESC, 3 DESC, name LIMIT ?",
        MOST,
    )
    fates = ledger.rows(
        "SELECT topic, count(*), sum(state = 'merged'), sum(state = 'closed') FROM pull WHERE state != ''"
        " GROUP BY topic ORDER BY topic"
    )
    rejected = ledger.rows(
        "SELECT name, topic, pull.url FROM pull JOIN repository ON repository.number = repository WHERE pull.state = 'closed'"
        " ORDER BY opened DESC LIMIT ?",
        MOST,
    )
    names = {codemod.code: codemod.rule_name() for codemod in catalog.all_codemods()}
    return Page(
        status(ledger), names, tuple(Holder(*row) for row in holders), tuple(Fate(*row) for row in fates),
        tuple((str(n), str(t), str(u)) for n, t, u in rejected),
    )  # fmt: skip


def markdown(ledger: Ledger) -> str:
    found = page(ledger)
    parts = [f"# {prose(found.status.name)}", "", _first_words(found), ""]
    parts += _table(
        "Findings", ("code", "what", "level", "findings", "repositories"),
        [
            (c.code, found.names.get(c.code, ""), LEVELS[c.level], str(c.findings), str(c.repositories))
            for c in found.status.codes
        ],
    )  # fmt: skip
    parts += _table(
        "Repositories with most to repair", ("repository", "safe fixes", "unsafe fixes", "report only"),
        [(code(h.name), str(h.safe), str(h.unsafe), str(h.told)) for h in found.holders],
    )  # fmt: skip
    parts += _table(
        "Pull requests", ("topic", "opened", "merged", "closed unmerged"),
        [(f.topic, str(f.opened), str(f.merged), str(f.closed)) for f in found.fates],
    )  # fmt: skip
    rejected = [(code(name), topic, prose(url)) for name, topic, url in found.rejected]
    parts += _table("Closed unmerged", ("repository", "topic", "address"), rejected)
    parts += _table(
        "Failed", ("repository", "cause", "what was said"),
        [(code(f.name), CAUSES.get(f.cause, f.cause), prose(f.error)) for f in found.status.failed[:MOST]],
    )  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def html(ledger: Ledger) -> str:
    """The same as a page that loads nothing from anywhere."""
    found = page(ledger)
    most = max((c.repositories for c in found.status.codes), default=1)
    template = _environment().get_template("report.html.j2")
    return template.render(page=found, first_words=_first_words(found), levels=LEVELS, causes=CAUSES, most=most, rows=MOST)


def _first_words(found: Page) -> str:
    states = found.status.states
    done, failed, waiting = (states.get(name, 0) for name in ("done", "failed", "waiting"))
    out = [f"{found.status.total} repositories: {done} done, {failed} failed, {waiting} waiting."]
    if found.worst:
        share = f"{found.worst.refused:.0%}"
        out.append(f"People refuse {found.worst.topic} most: {found.worst.closed} closed unmerged, {share} of those decided.")
    return " ".join(out)


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"## {title}", "", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines, ""]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
