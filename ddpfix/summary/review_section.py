"""What a person decided, as a section of the summary: what was rejected and why, what was written by hand, what is open."""

from __future__ import annotations

from ddpfix.decided import Decided
from ddpfix.summary.codemod_section import Detail
from ddpfix.summary.markdown import code, plural, prose
from ddpfix.summary.places import by_code, where


def section(made: Decided, detail: Detail) -> list[str]:
    """The whole section; rejections with one reason are one line."""
    out = ["## Review", "", f"Only what a person accepted was changed: {counts(made)}.", ""]
    if made.rejected:
        out += ["### Rejected", ""]
        groups: dict[tuple[str, str], list[int]] = {}
        for i, (finding, reason) in enumerate(made.rejected):
            groups.setdefault((finding.code, reason), []).append(i)
        for (key, reason), members in list(groups.items())[: detail.groups]:
            findings = [made.rejected[i][0] for i in members]
            out.append(f"- {key} {code(findings[0].name)}, {where(findings)}: {prose(reason) if reason else 'no reason given'}")
        out += [f"- and {plural(len(groups) - detail.groups, 'more reason')}"] * (len(groups) > detail.groups) + [""]
    if made.edited:
        out += ["### Written by hand", "", "In these places the reviewer's own lines were put, not those of the codemod:", ""]
        out += [f"- {key}: {where(found)}" for key, found in by_code(made.edited).items()] + [""]
    if made.undecided:
        out += ["### Not decided, so not changed", ""]
        out += [f"- {key} {code(found[0].name)}: {where(found)}" for key, found in by_code(made.undecided).items()] + [""]
    return out


def counts(made: Decided) -> str:
    """`7 accepted (1 edited by hand), 2 rejected, 5 not decided`."""
    edited = f" ({len(made.edited)} edited by hand)" if made.edited else ""
    return f"{len(made.accepted)} accepted{edited}, {len(made.rejected)} rejected, {len(made.undecided)} not decided"
