"""Findings as the diagnostics of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lsprotocol import types

from codemods.api.findings import Finding
from codemods.engine import suppressions
from ddpfix.lsp.pages import page_uri
from ddpfix.lsp.places import uri_of, whole_line
from ddpfix.outputs.answer import plain
from ddpfix.outputs.severity import ERROR, NOTE, WARNING, about, severity
from ddpfix.results import Failure

SOURCE = "ddpfix"
_LEVELS = {
    ERROR: types.DiagnosticSeverity.Error,
    WARNING: types.DiagnosticSeverity.Warning,
    NOTE: types.DiagnosticSeverity.Information,
}


def diagnostic(finding: Finding, where: types.Range, root: Path, line_of: Callable[[str, int], int]) -> types.Diagnostic:
    """line_of: of a line of a file that the evidence names, where it stands in the file."""
    page = page_uri(finding.code)
    elsewhere = [e for e in finding.evidence if e.path and e.line and e.path != finding.path]
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uri_of(root / e.path), whole_line(line_of(e.path, e.line))), plain(f"via {e.text} ({e.place})")
        )
        for e in elsewhere
    ]
    return types.Diagnostic(
        where, plain(finding.message), _LEVELS[severity(finding)], finding.code,
        types.CodeDescription(page) if page else None, SOURCE, _tags(finding), related or None, {"id": finding.id},
    )  # fmt: skip


def _tags(finding: Finding) -> Sequence[types.DiagnosticTag] | None:
    """What can go is shown pale, what a new version has under another name struck out, where the editor does so."""
    if finding.code == suppressions.CODE:
        return [types.DiagnosticTag.Unnecessary]
    codemod = about(finding)
    return [types.DiagnosticTag.Deprecated] if codemod and codemod.topic() == "upgrades" else None


def unread(failure: Failure) -> types.Diagnostic:
    """Why a file, or a part of it, was not checked."""
    level = types.DiagnosticSeverity.Information if failure.left_alone else types.DiagnosticSeverity.Warning
    return types.Diagnostic(whole_line(1), plain(f"not checked: {failure.error}"), level, source=SOURCE)
