"""SARIF 2.1.0, for GitHub's code scanning and every other reader.

What GitHub asks for beyond the standard is in its "SARIF support for code scanning": relative URIs, help for every rule, a
category in `automationDetails.id`, `primaryLocationLineHash`; of more than 5,000 results it keeps 5,000, of more than 100
locations 100, of more than 10 tags 10, so no more are written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_from_bytes

from codemods.api.findings import Finding, Span
from ddpfix import __version__, explain
from ddpfix.outputs.answer import EDITS, SOURCES, Answer, Checked, LineEdit, first_line, plain, story
from ddpfix.outputs.json_text import dumps
from ddpfix.outputs.line_hash import line_hashes
from ddpfix.outputs.severity import NOTE, about, level_of_rule, severity, urgency

NEEDS = (SOURCES, EDITS)
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
MOST_RESULTS, MOST_LOCATIONS, MOST_TAGS = 5000, 100, 10
_UNUSED = "A suppression comment that silences nothing any more."


def document(answer: Answer) -> str:
    """One run for each project: GitHub takes one run of a category only, so each has its own."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(answer, project) for project in answer.projects]}
    return dumps(log, indent=1) + "\n"


def _run(answer: Answer, project: Checked) -> dict[str, Any]:
    report = project.report
    kept = sorted(report.findings, key=urgency)[:MOST_RESULTS] if len(report.findings) > MOST_RESULTS else report.findings
    rules = {f.code: f for f in sorted(kept, key=lambda f: f.code)}
    numbers = {code: i for i, code in enumerate(rules)}
    wanted: dict[str, set[int]] = {}
    for finding in kept:
        wanted.setdefault(finding.path, set()).add(project.span(finding).line)
    hashes = {path: line_hashes(project.sources.get(path, b""), lines) for path, lines in wanted.items()}
    results = [_result(answer, project, f, numbers[f.code], hashes[f.path].get(project.span(f).line, "")) for f in kept]
    category = "ddpfix/" if len(answer.projects) == 1 else f"ddpfix/{plain(project.shown('')).strip('/.') or report.root.name}/"
    return {
        "tool": {
            "driver": {
                "name": "ddpfix",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(finding) for finding in rules.values()],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not report.unread,
                "toolExecutionNotifications": _notifications(answer, project, len(kept)),
            }
        ],
        "automationDetails": {"id": category},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": results,
    }


def _rule(finding: Finding) -> dict[str, Any]:
    codemod = about(finding)
    summary = codemod.summary() if codemod else _UNUSED
    sections = codemod.sections() if codemod else {}
    full = "\n\n".join(sections[name] for name in ("What it does", "Why it matters") if sections.get(name)) or summary
    tags = ["distributed", "pytorch", *([codemod.topic().replace("_", "-")] if codemod else [])]
    level = level_of_rule(finding)
    return {
        "id": finding.code,
        "name": "".join(part.capitalize() for part in finding.name.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": full},
        "help": {
            "text": explain.one(codemod, "text") if codemod else _UNUSED,
            "markdown": explain.page(codemod) if codemod else _UNUSED,
        },
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags[:MOST_TAGS], "problem.severity": "recommendation" if level == NOTE else level},
    }


def _result(answer: Answer, project: Checked, finding: Finding, number: int, line_hash: str) -> dict[str, Any]:
    place = first_line(project, finding)
    region = _region(place)
    if snippet := project.line(finding.path, place.line)[place.column : place.end_column]:
        region["snippet"] = {"text": snippet}
    prints = {"ddpfix/v1": finding.id}
    if line_hash:
        prints["primaryLocationLineHash"] = line_hash
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(answer, project, finding.path), "region": region}
    }
    if finding.symbol:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.symbol}]
    out: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": severity(finding),
        "message": {"text": story(finding)},
        "locations": [location],
        "partialFingerprints": prints,
        "properties": {"applicability": finding.applicability.value},
    }
    if related := _related(answer, project, finding):
        out["relatedLocations"] = related
    if edits := answer.offered(project, finding):
        out["fixes"] = [_fix(answer, project, finding, edits)]
    return out


def _related(answer: Answer, project: Checked, finding: Finding) -> list[dict[str, Any]]:
    """Where the evidence stands."""
    return [
        {
            "id": number,
            "message": {"text": plain(evidence.text)},
            "physicalLocation": {
                "artifactLocation": _artifact(answer, project, evidence.path),
                "region": {"startLine": max(1, project.line_in_file(evidence.path, evidence.line))},
            },
        }
        for number, evidence in enumerate((e for e in finding.evidence if e.path), 1)
        if number < MOST_LOCATIONS
    ]


def _fix(answer: Answer, project: Checked, finding: Finding, edits: Sequence[LineEdit]) -> dict[str, Any]:
    files: dict[str, list[LineEdit]] = {}
    for edit in edits:
        files.setdefault(edit.path, []).append(edit)
    changes = [
        {
            "artifactLocation": _artifact(answer, project, path),
            "replacements": [_replacement(project, edit) for edit in rows],
        }
        for path, rows in files.items()
    ]
    assumed = f", which assumes: {finding.reason}" if finding.reason else ""
    text = f"The {finding.applicability.value} fix of {finding.code}{assumed}"
    return {"description": {"text": plain(text)}, "artifactChanges": changes}


def _replacement(project: Checked, edit: LineEdit) -> dict[str, Any]:
    """Whole lines with their ends; the last line of a file may have none."""
    after = Span(edit.top, 0, edit.bottom + 1, 0)
    if not project.has_line(edit.path, edit.bottom + 1):
        after = Span(edit.top, 0, edit.bottom, len(project.line(edit.path, edit.bottom, with_end=True)))
    out: dict[str, Any] = {"deletedRegion": _region(after)}
    if edit.text:
        out["insertedContent"] = {"text": edit.text}
    return out


def _region(span: Span) -> dict[str, Any]:
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _artifact(answer: Answer, project: Checked, path: str) -> dict[str, str]:
    return {"uri": quote_from_bytes(os.fsencode(answer.home(project, path)), safe="/-_.~+@"), "uriBaseId": ROOT}


def _notifications(answer: Answer, project: Checked, kept: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [
        {
            "level": "warning" if failure.left_alone else "error",
            "message": {"text": plain(f"{failure.path} was not read: {failure.error}")},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(answer, project, failure.path)}}],
        }
        for failure in project.report.failed
    ]
    if left := len(project.report.findings) - kept:
        out.append({"level": "warning", "message": {"text": f"{left} findings are left out: only the worst {kept} are here."}})
    return out
