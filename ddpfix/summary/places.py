"""Findings gathered for a reader: by codemod, by file, by reason, so that two hundred of them stay a few lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from ddpfix import catalog, plugins
from ddpfix.results import Fixed
from ddpfix.summary.markdown import code, numbers, plural


@dataclass(frozen=True, slots=True)
class Group:
    """Findings with one reason: the reason as the first of them gives it."""

    reason: str
    findings: tuple[Finding, ...]


def by_code(findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """code -> its findings, both in order."""
    out: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: (f.code, f.path, f.span)):
        out.setdefault(finding.code, []).append(finding)
    return {key: tuple(found) for key, found in out.items()}


def by_file(findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """path -> the findings that stand there."""
    out: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: (f.path, f.span, f.code)):
        out.setdefault(finding.path, []).append(finding)
    return {path: tuple(found) for path, found in out.items()}


def by_reason(findings: Iterable[Finding]) -> list[Group]:
    """Groups of findings whose reasons differ in names and numbers only; the largest first."""
    out: dict[str, list[Finding]] = {}
    for finding in findings:
        out.setdefault(skeleton(reason_of(finding)), []).append(finding)
    groups = [Group(reason_of(found[0]), tuple(found)) for found in out.values()]
    return sorted(groups, key=lambda g: (-len(g.findings), g.findings[0].path, g.findings[0].span))


def reason_of(finding: Finding) -> str:
    return " ".join((finding.reason or finding.message).split())


def skeleton(reason: str) -> str:
    """The reason with what belongs to one place taken out: texts in quotes, brackets, names that are code, numbers."""
    plain, changed = re.subn(r"`[^`]*`|(?<!\w)'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\[\]]*\]", "·", reason)
    while changed:  # calls inside of calls
        plain, changed = re.subn(r"\([^()]*\)|\[[^\[\]]*\]", "·", plain)
    plain = re.sub(r"\S*[\w)\]][._/:=]\w\S*|\b_\w+|\b\d+\b", "·", plain)
    return re.sub(r"(?:\s|[,·])+", " ", plain).strip().lower()


def where(findings: Iterable[Finding], most_files: int = 6, first: frozenset[str] = frozenset()) -> str:
    """`a.py` 12, 40; `b.py` 3 and 2 more files. first: files that stand in front, and are named however many there are."""
    files = dict(sorted(by_file(findings).items(), key=lambda row: row[0] not in first))
    most_files = max(most_files, len(first & files.keys()))
    shown = [f"{code(path)} {spots(found, 8)}" for path, found in list(files.items())[:most_files]]
    more = f"; and {plural(len(files) - most_files, 'more file')}" if len(files) > most_files else ""
    return "; ".join(shown) + more


def spots(findings: Iterable[Finding], limit: int = 12) -> str:
    """Where findings of one file stand: `12, 14-16`; in a notebook `cell 3:line 2, cell 4:line 1`."""
    found = sorted(findings, key=lambda f: f.span)
    if not any(f.cell for f in found):
        return numbers((f.span.line for f in found), limit)
    named = list(dict.fromkeys(f.where for f in found))
    return ", ".join(named[:limit]) + (f" and {len(named) - limit} more" if len(named) > limit else "")


def lines(findings: Iterable[Finding]) -> str:
    """As `spots`, behind the word `line` or `lines`, which a notebook's cells need not."""
    found = list(findings)
    text = spots(found)
    if any(f.cell for f in found):
        return text
    return f"{'line' if text.isdigit() else 'lines'} {text}"


def codemod_of(code_: str) -> DdpCodemod | None:
    """The codemod behind a code, None for a code that is nobody's."""
    try:
        return plugins.lookup(code_)
    except catalog.UnknownSelector:
        return None


def origin_of(code_: str) -> str:
    """Where a codemod comes from: `project` for its renames, `plugins` for those of others, "" for our own."""
    codemod = codemod_of(code_)
    topic = codemod.topic() if codemod else "plugins"
    return topic if topic in catalog.OTHER_TOPICS else ""


def told(fixed: Fixed) -> tuple[Finding, ...]:
    """Findings for which there is no fix."""
    gone = {f.id for f, _ in fixed.withdrawn}
    return tuple(f for f in fixed.left if f.id not in gone and f.applicability is Applicability.DISPLAY)


def offered(fixed: Fixed) -> tuple[Finding, ...]:
    """Findings that --unsafe-fixes would fix."""
    gone = {f.id for f, _ in fixed.withdrawn}
    return tuple(f for f in fixed.left if f.id not in gone and f.applicability is Applicability.UNSAFE)


def unmade(fixed: Fixed) -> tuple[tuple[Finding, str], ...]:
    """Findings whose fix was wanted and not made, with the reason."""
    gone = {f.id for f, _ in fixed.withdrawn}
    waiting = [f for f in fixed.left if f.id not in gone and f.applicability is Applicability.SAFE]
    return (*fixed.withdrawn, *((f, "it touches the same lines as another fix: run ddpfix again") for f in waiting))


def unsafe_fixed(fixed: Fixed) -> tuple[Finding, ...]:
    """Fixes that rest on an assumption."""
    return tuple(f for f in fixed.fixed if f.applicability is Applicability.UNSAFE)
