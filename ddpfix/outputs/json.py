"""The JSON report: a contract, version 1. Lines and columns from 1, columns in characters, paths from the working folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codemods.api.findings import Finding, Span
from ddpfix.outputs.answer import Answer
from ddpfix.outputs.json_text import dumps
from ddpfix.outputs.paths import Shown
from ddpfix.results import Report

VERSION = 1


def finding_object(finding: Finding, shown: Shown, span: Span | None = None) -> dict[str, Any]:
    """One finding. `reason` is there only where it says something, `cell` and `cell_line` in a notebook.

    span: where it stands in the file, if that is not the span of the code.
    """
    at = span or finding.span
    out: dict[str, Any] = {
        "id": finding.id,
        "path": shown(finding.path),
        "line": at.line,
        "column": at.column + 1,
        "end_line": at.end_line,
        "end_column": at.end_column + 1,
        "code": finding.code,
        "name": finding.name,
        "symbol": finding.symbol,
        "message": finding.message,
        "applicability": finding.applicability.value,
        "evidence": [
            {"kind": e.kind, "strength": e.strength, "text": e.text, "path": shown(e.path) if e.path else "", "line": e.line}
            for e in finding.evidence
        ],
    }
    if finding.cell:
        out |= {"cell": finding.cell, "cell_line": finding.cell_line}
    if finding.reason:
        out["reason"] = finding.reason
    return out


def render(
    reports: Sequence[tuple[Report, Shown]],
    root: Path,
    *,
    edits: dict[str, list[dict[str, Any]]] | None = None,
    spans: Mapping[str, Span] | None = None,
) -> str:
    """The whole document. `edits`: finding id -> line replacements, where they were asked for. spans: by id, of notebooks."""
    findings = []
    for report, shown in reports:
        for finding in report.findings:
            row = finding_object(finding, shown, (spans or {}).get(finding.id))
            if edits is not None:
                row["edits"] = edits.get(finding.id, [])
            findings.append(row)
    document = {
        "version": VERSION,
        "root": root.as_posix(),
        "findings": findings,
        "files": {
            "scanned": sum(r.scanned for r, _ in reports),
            "parsed": sum(r.parsed for r, _ in reports),
            "failed": [{"path": shown(f.path), "error": f.error} for r, shown in reports for f in r.failed],
        },
        "left_out": sum(r.left_out for r, _ in reports),
        "elapsed": round(sum(r.elapsed for r, _ in reports), 4),
    }
    return dumps(document, indent=1) + "\n"


def document(answer: Answer) -> str:
    """The report of `check`; with a baseline, how many findings it kept quiet and which of its entries are gone."""
    edits = answer.edit_objects() if answer.with_edits else None
    spans = {f.id: p.span(f) for p, f in answer.rows() if p.notebooks}
    text = render(answer.reports, answer.folder, edits=edits, spans=spans)
    if not answer.baseline:
        return text
    extended = {**json.loads(text), "baseline": {"known": answer.known, "gone": [asdict(entry) for entry in answer.gone]}}
    return dumps(extended, indent=1) + "\n"
