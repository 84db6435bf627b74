"""What one codemod did: the problem, its cause, the change and why it may be made, file by file with excerpts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codemods.api.findings import Applicability, Evidence, Finding
from ddpfix.results import Fixed
from ddpfix.summary import checks
from ddpfix.summary.excerpts import Hunk
from ddpfix.summary.markdown import code, described, fence, numbers, plural, prose, sentence, written
from ddpfix.summary.places import by_code, by_file, by_reason, codemod_of, lines, origin_of, skeleton, where
from ddpfix.summary.rank_flow import drawn, flow_of
from ddpfix.summary.remaining_lines import remaining


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told. items: places and hunks for each codemod; files, facts, groups: rows of the lists of those names;
    pictures: of the ways of the ranks, for each codemod. excerpts: whether the change itself is shown."""

    items: int = 10**9
    files: int = 10**9
    facts: int = 40
    groups: int = 40
    words: int = 10**9
    pictures: int = 3
    excerpts: bool = True


# a rename has no cause but that the project asks for it
TITLES = {
    "": (("Why it matters", "In general"),),  # the change itself stands below; what else the codemod can do, nobody asked
    "project": (("What it does", "Change"), ("Safety", "How sure it is")),
    "plugins": (("Why it matters", "Why it matters"), ("What it does", "Change"), ("Safety", "Why it may be changed")),
}


def section(key: str, findings: Sequence[Finding], hunks: Sequence[Hunk], fixed: Fixed, detail: Detail) -> list[str]:
    """The section of the codemod with the code `key`. `hunks` are those of the whole change."""
    codemod = codemod_of(key)
    texts = codemod.sections() if codemod else {}
    name = findings[0].name
    files = by_file(findings)
    out = [f"## {key} {name}: {plural(len(findings), 'fix', 'fixes')} in {plural(len(files), 'file')}", ""]
    summary = codemod.summary() if codemod else ""
    first = findings[0]
    intro = f"{summary} {'For example' if len(findings) > 1 else 'Here'}, {code(first.place)}".strip()
    origin = origin_of(key)
    out += [f"**{'Problem' if origin != 'project' else 'Asked for'}.** {intro}: {sentence(first.message)}", ""]
    for heading, title in TITLES[origin]:
        if text := texts.get(heading):
            out += [*_titled(title, text, detail.words), ""]
    if not origin:
        out += [f"**Why it may be changed.** {_conditions(key, texts.get('Safety', ''))}", ""]
    if unsafe := [f for f in findings if f.applicability is Applicability.UNSAFE]:
        rests = plural(len(unsafe), "fix rests", "fixes rest")
        out += [f"{rests} on an assumption: see [below](#what-the-unsafe-fixes-assume).", ""]
    out += _evidence(findings, fixed, detail)
    out += remaining(findings)
    out += pictures(findings, detail.pictures)
    return [*out, *_files(key, files, hunks, detail, {skeleton(first.message)})]


def _conditions(key: str, safety: str) -> str:
    """The first sentence of what makes a fix safe, and where the rest stands."""
    first = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(safety.split("\n\n")[0].split()))[0]
    return f"{prose(first)} (`ddpfix explain {key}`: all conditions, and what is refused.)".strip()


def pictures(findings: Sequence[Finding], most: int) -> list[str]:
    """Where each rank goes, for findings whose evidence tells of two ways; such that read alike are drawn once."""
    drawings = {tuple(drawn(flow)): f for f in reversed(findings) if (flow := flow_of(f))}
    shown = [(f, rows) for rows, f in reversed(drawings.items())][:most]
    out = []
    for finding, rows in shown:
        out += [f"Where each rank goes, {code(finding.place)}:", "", *fence(rows, "text"), ""]
    return out


def _titled(title: str, text: str, words: int) -> list[str]:
    lines = written(described(text) if title == "Change" else text)
    if len(text) > words:
        lines = [lines[0] if len(lines[0]) <= words else lines[0][:words].rpartition(" ")[0] + " …"]
        if lines[0].count("`") % 2:
            lines[0] += "`"
    if lines[0].startswith(("- ", "* ", "```")):
        return [f"**{title}.**", "", *lines]
    return [f"**{title}.** {lines[0]}", *lines[1:]]


def _evidence(findings: Sequence[Finding], fixed: Fixed, detail: Detail) -> list[str]:
    """What was checked: a table for each flag, else a list in which equal facts are told once."""
    codemod = codemod_of(findings[0].code)
    if codemod and codemod.topic() == "flags":
        out = []
        groups = checks.alike(findings)
        for group in groups[: detail.facts]:
            out += [f"**Checks behind {where(group)}:**", "", *checks.checks(group, fixed.before), ""]
        if len(groups) > detail.facts:
            out += [f"{plural(len(groups) - detail.facts, 'more table')} left out for length.", ""]
        return out
    facts: dict[str, list[Evidence]] = {}
    for finding in findings:
        for evidence in finding.evidence:
            facts.setdefault(" ".join(evidence.text.split()), []).append(evidence)
    if not facts:
        return []
    rows = [f"- {prose(text)}{_places(found)}" for text, found in list(facts.items())[: detail.facts]]
    if len(facts) > detail.facts:
        rows.append(f"- and {plural(len(facts) - detail.facts, 'more fact')} of this kind")
    return ["**Checked in the code:**", "", *rows, ""]


def _places(found: Sequence[Evidence]) -> str:
    files: dict[str, list[Evidence]] = {}
    for evidence in found:
        if evidence.path:
            files.setdefault(evidence.path, []).append(evidence)
    shown = [f"{code(path)} {_seen_at(rows)}".rstrip() for path, rows in sorted(files.items())[:4]]
    more = f" and {plural(len(files) - 4, 'more file')}" if len(files) > 4 else ""
    return f" ({'; '.join(shown)}{more})" if shown else ""


def _seen_at(rows: Sequence[Evidence]) -> str:
    if any(e.cell for e in rows):
        return ", ".join(dict.fromkeys(f"cell {e.cell}:line {e.cell_line}" for e in sorted(rows, key=lambda e: e.line)))
    return numbers({e.line for e in rows} - {0})


def _files(
    key: str, files: dict[str, tuple[Finding, ...]], hunks: Sequence[Hunk], detail: Detail, said: set[str]
) -> list[str]:
    """File by file. What the detail does not allow is told by its lines. said: skeletons of the messages that stand above."""
    mine = [h for h in hunks if key in h.codes]
    paths = sorted({*files, *(h.path for h in mine)})
    out: list[str] = []
    left = detail.items
    rest: list[str] = []
    for path in paths:
        found, here = files.get(path, ()), [h for h in mine if h.path == path]
        if left <= 0:
            rest.append(path)
            continue
        told = found[:left]
        left -= len(told)
        own = [h for h in here if h.codes[0] == key][:left] if left > 0 else []
        left -= len(own)
        out += [f"### {code(path)}", "", *_told(told, said), ""]
        if own:
            out += [*fence([row for hunk in own for row in (hunk.header, *hunk.rows)], "diff"), ""]
        out += _unshown(found[len(told) :], here, own)
    if rest:
        out += ["### Further files", ""]
        for path in rest[: detail.files]:
            out.append(f"- {code(path)}: {_lines(files.get(path, ()), [h for h in mine if h.path == path])}")
        if len(rest) > detail.files:
            out.append(f"- and {plural(len(rest) - detail.files, 'more file')}")
        out.append("")
    return out


def _told(found: Sequence[Finding], said: set[str]) -> list[str]:
    """A line for the findings of each kind, which differ in names only, with what the first of them says if nobody has yet."""
    rows: dict[str, dict[str, list[Finding]]] = {}
    for finding in found:
        rows.setdefault(skeleton(finding.message), {}).setdefault(finding.symbol, []).append(finding)
    out = []
    for kind, symbols in rows.items():
        places = "; ".join(f"{lines(alike)}{f' in {code(symbol)}' if symbol else ''}" for symbol, alike in symbols.items())
        first = next(iter(symbols.values()))[0]
        several = ", the first of them" if len({f.message for alike in symbols.values() for f in alike}) > 1 else ""
        text = "." if kind in said else f"{several}: {sentence(first.message)}"
        said.add(kind)
        out.append(f"- {places[0].upper()}{places[1:]}{text}")
    return out


def _unshown(found: Sequence[Finding], here: Sequence[Hunk], own: Sequence[Hunk]) -> list[str]:
    others = [h for h in here if h.codes[0] != h.codes[-1] and h not in own]
    shown_elsewhere = sorted({h.codes[0] for h in others})
    unshown = [h for h in here if h not in own and h not in others]
    out = []
    if shown_elsewhere:
        at = numbers(line for h in others for line in h.lines)
        around = f"Around {'line' if at.isdigit() else 'lines'} {at}"
        out += [f"{around} the excerpt stands under {', '.join(shown_elsewhere)}.", ""]
    if found or unshown:
        out += [f"Not shown, for length: {_lines(found, unshown)}.", ""]
    return out


def _lines(found: Sequence[Finding], hunks: Sequence[Hunk]) -> str:
    if any(f.cell for f in found):
        return lines(found)
    text = numbers({f.span.line for f in found} | {line for h in hunks for line in h.lines})
    return f"{'line' if text.isdigit() else 'lines'} {text}"


def assumptions(findings: Sequence[Finding], detail: Detail) -> list[str]:
    """What the unsafe fixes rest on, by codemod and reason."""
    if not findings:
        return []
    out = ["## What the unsafe fixes assume", "", "Each is right only if what it rests on holds, which was not checked:", ""]
    groups = [(key, group) for key, found in by_code(findings).items() for group in by_reason(found)]
    for key, group in groups[: detail.groups]:
        reason = group.reason if group.findings[0].reason else "see what its section says on why it may be changed"
        out.append(f"- {key}, {where(group.findings)}: {sentence(reason)}")
    if len(groups) > detail.groups:
        out.append(f"- and {plural(len(groups) - detail.groups, 'more group')}")
    return [*out, ""]
