"""What was found and not changed: the most severe first, and what a command of the repository starts before the rest."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.api.findings import Applicability, Finding
from ddpfix.results import Fixed
from ddpfix.summary.codemod_section import Detail, pictures
from ddpfix.summary.kinds import bars
from ddpfix.summary.markdown import code, fence, plural, prose, sentence
from ddpfix.summary.places import Group, by_code, by_reason, offered, skeleton, told, unmade, where

SEVERE = ("crash", "hang", "data")
FILES, FILES_OF_SEVERE = 6, 20


def left_alone(fixed: Fixed, launched: frozenset[str], detail: Detail) -> list[str]:
    """Each finding with its reason; findings with one reason are one line. launched: files that commands start."""
    out: list[str] = []
    for title, found in _by_severity(fixed):
        in_order = sorted(found, key=lambda f: f.path not in launched)
        groups = sorted(by_reason(in_order), key=lambda g: (_worst(g.findings), g.findings[0].path not in launched))
        out += [f"### {found[0].code} {found[0].name}: {plural(len(found), 'finding')} {title}", ""]
        said: set[str] = set()
        out += [f"- {_group(group, said, launched)}" for group in groups[: detail.groups]]
        if len(groups) > detail.groups:
            more = sum(len(g.findings) for g in groups[detail.groups :])
            out.append(f"- and {plural(more, 'more place')} for {plural(len(groups) - detail.groups, 'other reason')}")
        out += ["", *pictures([g.findings[0] for g in groups], detail.pictures)]
    if failed := unmade(fixed):
        out += ["### Fixes that could not be made", ""]
        out += [f"- {code(f.place)} {f.code}: {prose(why)}" for f, why in failed[: detail.groups]]
        out += [f"- and {len(failed) - detail.groups} more"] * (len(failed) > detail.groups) + [""]
    if broken := fixed.report.failed:
        out += ["### Not read", ""]
        out += [f"- {code(f.path)}: {prose(f.error)}" for f in broken[: detail.groups]]
        out += [f"- and {plural(len(broken) - detail.groups, 'more path')}"] * (len(broken) > detail.groups) + [""]
    if not out:
        return []
    shown = bars(fixed)
    return ["## Left alone", "", *(["All findings, by kind:", "", *fence(shown, "text"), ""] if shown else []), *out]


def _by_severity(fixed: Fixed) -> list[tuple[str, tuple[Finding, ...]]]:
    """(the words of their heading, the findings of one codemod), the worst first."""
    kinds = (("without a fix", told(fixed)), ("that only `--unsafe-fixes` would fix", offered(fixed)))
    rows = [(title, found) for title, findings in kinds for found in by_code(findings).values()]
    return sorted(rows, key=lambda row: _worst(row[1]))


def _worst(findings: Sequence[Finding]) -> int:
    return min(f.severity_rank for f in findings)


def _group(group: Group, said: set[str], launched: frozenset[str]) -> str:
    """One line: the places, why all of them were left, and what is wrong at the first where none of `said` says it already."""
    first = group.findings[0]
    most = FILES_OF_SEVERE if any(f.severity in SEVERE for f in group.findings) else FILES
    places = where(group.findings, most, launched)
    if not first.reason:
        return f"{places}: {sentence(first.message)}"
    message = "" if skeleton(first.message) in said else f"{sentence(first.message)} "
    said.add(skeleton(first.message))
    clauses = group.reason.split("; ")
    reason = "; ".join(clauses[:3]) + (f"; and {plural(len(clauses) - 3, 'further reason')}" if len(clauses) > 3 else "")
    if len(group.findings) == 1:
        why = "Unsafe" if first.applicability is Applicability.UNSAFE else "No fix"
        return f"{places}: {message}{why}: {sentence(reason)}"
    of_first = f" The first of them: {message}".rstrip() if message else ""
    return f"{plural(len(group.findings), 'place')}, {places}: {sentence(reason)}{of_first}"
