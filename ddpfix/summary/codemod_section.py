"""What one codemod did here: what happens, where, why it may be changed, and what a test must show. Nothing in general."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codemods.api.findings import Applicability, Evidence, Finding
from ddpfix.project_renames import renamed
from ddpfix.results import Fixed
from ddpfix.summary import checks, safe_here
from ddpfix.summary.commit_messages import said_of
from ddpfix.summary.excerpts import Hunk
from ddpfix.summary.markdown import code, fence, folded_up, numbers, plural, prose, sentence
from ddpfix.summary.must_show import must_show
from ddpfix.summary.places import by_reason, codemod_of, origin_of, where
from ddpfix.summary.rank_flow import drawn, flow_of
from ddpfix.summary.remaining_lines import remaining
from ddpfix.summary.told_alike import alike

MOST_KINDS = 6  # of messages
_TABLE = "Safe by what was checked of the model, in the table below."


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told. items: hunks for each codemod; files, groups: rows of the lists of those names; pictures: of the ways of
    the ranks, for each codemod. kinds, facts: messages and facts of a codemod."""

    items: int = 10**9
    files: int = 10**9
    groups: int = 40
    pictures: int = 3
    kinds: int = MOST_KINDS
    facts: int = safe_here.MOST_FACTS


def section(key: str, findings: Sequence[Finding], hunks: Sequence[Hunk], fixed: Fixed, detail: Detail) -> list[str]:
    """The block of the codemod with the code `key`. `hunks` are those of the whole change."""
    origin = origin_of(key)
    out = [f"### {prose(said_of(key, findings[0].name, findings))} ({key}): {plural(len(findings), 'place')}", ""]
    if origin == "project":
        out += [f"- {code(old)} → {code(new)}" for old, new in renamed(findings)[: detail.groups]]
        out += [f"- Places: {where(findings, detail.files)}."]
    else:
        out += _told(findings, detail)
        out += [f"- {text}" for text in _why(key, findings, detail)]
        out += [f"- {text}" for text in remaining(findings)]
        out += [f"- Test: {must_show(key, fixed)}"]
    out += ["", *_tables(key, findings, fixed, detail), *pictures(findings, detail.pictures)]
    return [*out, *_changed_lines(key, hunks, detail)]


def _told(findings: Sequence[Finding], detail: Detail) -> list[str]:
    kinds = alike(findings)
    out = [
        f"- {code(kind.first.place)}: {sentence(kind.first.message)} {kind.others(detail.files)}".rstrip()
        for kind in kinds[: detail.kinds]
    ]
    rest = [f for kind in kinds[detail.kinds :] for f in kind.findings]
    return [*out, *([f"- And {plural(len(rest), 'more place')} of it: {where(rest, detail.files)}."] if rest else [])]


def _why(key: str, findings: Sequence[Finding], detail: Detail) -> list[str]:
    """Why it may be changed: what makes it safe, what was seen here, and what was assumed."""
    unsafe = [f for f in findings if f.applicability is Applicability.UNSAFE]
    out = [" ".join(part for part in _safe(key, findings, detail, some=len(unsafe) < len(findings)) if part)]
    for group in by_reason(unsafe):
        reason = group.reason if group.findings[0].reason else "see `ddpfix explain`"
        out.append(f"Not checked, at {where(group.findings, detail.files)}: {sentence(reason)}")
    return [text for text in out if text]


def _safe(key: str, findings: Sequence[Finding], detail: Detail, *, some: bool) -> list[str]:
    """What makes it safe, and what was read in the code. some: whether any of the fixes is safe."""
    codemod = codemod_of(key)
    of_flags = codemod is not None and codemod.topic() == safe_here.FLAGS  # their facts stand in a table
    always = prose(safe_here.everywhere(key)) if some else ""
    safe, others = safe_here.seen(findings)
    if of_flags:
        return [safe_here.joined(always, _rows(safe, detail)) or (_TABLE if some else "")]
    return [safe_here.joined(always, _rows(safe, detail)), f"Read in the code: {_rows(others, detail)}." if others else ""]


def _rows(facts: safe_here.Facts, detail: Detail) -> str:
    return "; ".join(f"{prose(text)}{_places(found)}" for text, found in list(facts.items())[: detail.facts])


def _places(found: Sequence[Evidence]) -> str:
    files: dict[str, list[Evidence]] = {}
    for evidence in found:
        if evidence.path:
            files.setdefault(evidence.path, []).append(evidence)
    shown = [f"{code(path)} {_seen_at(rows)}".rstrip() for path, rows in sorted(files.items())[:2]]
    more = f" and {plural(len(files) - 2, 'more file')}" if len(files) > 2 else ""
    return f" ({'; '.join(shown)}{more})" if shown else ""


def _seen_at(rows: Sequence[Evidence]) -> str:
    if any(e.cell for e in rows):
        return ", ".join(dict.fromkeys(f"cell {e.cell}:line {e.cell_line}" for e in sorted(rows, key=lambda e: e.line)))
    return numbers({e.line for e in rows} - {0}, 4)


def _tables(key: str, findings: Sequence[Finding], fixed: Fixed, detail: Detail) -> list[str]:
    """The questions that a reviewer of a flipped flag asks, answered."""
    codemod = codemod_of(key)
    if codemod is None or codemod.topic() != "flags":
        return []
    rows: list[str] = []
    groups = checks.alike(findings)
    for group in groups[: detail.groups]:
        rows += [f"**Checks behind {where(group, 4)}:**", "", *checks.checks(group, fixed.before), ""]
    if len(groups) > detail.groups:
        rows += [f"{plural(len(groups) - detail.groups, 'more table')} left out for length.", ""]
    return folded_up(f"What was checked for {key}", rows)


def pictures(findings: Sequence[Finding], most: int) -> list[str]:
    """Where each rank goes, for findings of a hang whose evidence tells of two ways; such that read alike are drawn once."""
    hangs = [f for f in findings if f.severity == "hang"]
    drawings = {tuple(drawn(flow)): f for f in reversed(hangs) if (flow := flow_of(f))}
    shown = [(f, rows) for rows, f in reversed(drawings.items())][:most]
    out = []
    for finding, rows in shown:
        out += [f"Where each rank goes, {code(finding.place)}:", "", *fence(rows, "text"), ""]
    return out


def _changed_lines(key: str, hunks: Sequence[Hunk], detail: Detail) -> list[str]:
    """The change itself, where no commit shows it. A hunk of several codemods stands with the first of them."""
    mine = [h for h in hunks if h.codes[0] == key][: detail.items]
    out: list[str] = []
    for path in dict.fromkeys(h.path for h in mine):
        rows = [row for h in mine if h.path == path for row in (h.header, *h.rows)]
        out += [f"{code(path)}:", "", *fence(rows, "diff"), ""]
    return folded_up(f"Changed lines of {key}", out)
