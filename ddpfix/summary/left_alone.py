"""What was found and not changed: the most severe first, and what a command of the repository starts before the rest."""

from __future__ import annotations

from codemods.api.findings import Applicability, Finding
from ddpfix.results import Fixed
from ddpfix.summary.codemod_section import Detail
from ddpfix.summary.kinds import bars
from ddpfix.summary.markdown import code, fence, folded_up, plural, prose, sentence
from ddpfix.summary.places import Group, by_code, by_reason, offered, skeleton, told, unmade, where

SEVERE = ("crash", "hang", "data")
FILES, FILES_OF_SEVERE = 6, 20
MOST_OPEN = 5  # rows; more are folded up, and so is what has more of them than there are fixes
FEW = 20  # findings; bars of fewer say nothing


def left_alone(fixed: Fixed, launched: frozenset[str], detail: Detail) -> list[str]:
    """A line for the findings with one reason. launched: files that commands start."""
    groups = _groups(fixed, launched)
    said: set[tuple[str, str]] = set()
    rows = [f"- {_group(group, said, launched)}" for group in groups[: detail.groups]]
    if len(groups) > detail.groups:
        more = sum(len(g.findings) for g in groups[detail.groups :])
        rows.append(f"- and {plural(more, 'more place')} for {plural(len(groups) - detail.groups, 'other reason')}")
    left = sum(len(g.findings) for g in groups)
    shown = bars(fixed) if left + len(fixed.fixed) >= FEW else []
    if len(rows) > (min(MOST_OPEN, len(fixed.fixed)) if fixed.fixed else MOST_OPEN):
        rows = folded_up(f"{plural(left, 'finding')}, the worst first", rows)
    if shown and rows:
        rows += ["", *folded_up("All findings, by kind", fence(shown, "text"))]
    more_rows = _not_done(fixed, detail)
    return ["## Left alone", "", *rows, *([""] if rows and rows[-1] else []), *more_rows] if rows or more_rows else []


def _not_done(fixed: Fixed, detail: Detail) -> list[str]:
    out: list[str] = []
    if failed := unmade(fixed):
        out += ["### Fixes that could not be made", ""]
        out += [f"- {code(f.place)} {f.code}: {prose(why)}" for f, why in failed[: detail.groups]]
        out += [f"- and {len(failed) - detail.groups} more"] * (len(failed) > detail.groups) + [""]
    if broken := fixed.report.failed:
        out += ["### Not read", ""]
        out += [f"- {code(f.path)}: {prose(f.error)}" for f in broken[: detail.groups]]
        out += [f"- and {plural(len(broken) - detail.groups, 'more path')}"] * (len(broken) > detail.groups) + [""]
    return out


def _groups(fixed: Fixed, launched: frozenset[str]) -> list[Group]:
    """Findings of one code, severity and reason, the worst first."""
    kinds: dict[tuple[str, int], list[Finding]] = {}
    for findings in (told(fixed), offered(fixed)):
        for key, found in by_code(findings).items():
            for finding in sorted(found, key=lambda f: f.path not in launched):
                kinds.setdefault((key, finding.severity_rank), []).append(finding)
    groups = [group for found in kinds.values() for group in by_reason(found)]
    return sorted(groups, key=lambda g: (g.findings[0].severity_rank, g.findings[0].path not in launched, g.findings[0].code))


def _group(group: Group, said: set[tuple[str, str]], launched: frozenset[str]) -> str:
    """One line: the places, what is wrong where no line says it already, and why all of them were left."""
    first = group.findings[0]
    places = where(group.findings, FILES_OF_SEVERE if first.severity in SEVERE else FILES, launched)
    head = f"{places} {first.code}:"
    if not first.reason:
        return f"{head} {sentence(first.message)}"
    kind = (first.code, skeleton(first.message))
    differ = len({f.message for f in group.findings}) > 1
    message = "" if kind in said else f" {'the first: ' if differ else ''}{sentence(first.message)}"
    said.add(kind)
    clauses = group.reason.split("; ")
    reason = "; ".join(clauses[:3]) + (f"; and {plural(len(clauses) - 3, 'further reason')}" if len(clauses) > 3 else "")
    why = "Unsafe" if first.applicability is Applicability.UNSAFE else "No fix"
    return f"{head}{message} {why}: {sentence(reason)}"
