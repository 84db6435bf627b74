"""reviewdog's diagnostic format.

Facts of its JSON schema (proto/rdf/jsonschema/DiagnosticResult.json): ends are exclusive, columns count bytes of UTF-8 from 1,
several suggestions for one diagnostic are alternatives, and a suggestion has no path of its own.
"""

from __future__ import annotations

from typing import Any

from codemods.api.findings import Finding, Span
from ddpfix.outputs.answer import EDITS, SOURCES, Answer, Checked, LineEdit, plain, story
from ddpfix.outputs.json_text import dumps
from ddpfix.outputs.severity import ERROR, NOTE, WARNING, severity

NEEDS = (SOURCES, EDITS)
_WORDS = {ERROR: "ERROR", WARNING: "WARNING", NOTE: "INFO"}


def document(answer: Answer) -> str:
    diagnostics = [_diagnostic(answer, project, finding) for project, finding in answer.rows()]
    out = {"source": {"name": "ddpfix"}, "severity": "WARNING", "diagnostics": diagnostics}
    return dumps(out, indent=1) + "\n"


def _diagnostic(answer: Answer, project: Checked, finding: Finding) -> dict[str, Any]:
    out: dict[str, Any] = {
        "message": story(finding),
        "location": {"path": plain(answer.home(project, finding.path)), "range": _range(project, finding)},
        "severity": _WORDS[severity(finding)],
        "code": {"value": finding.code},
    }
    edits = answer.offered(project, finding)
    if len(edits) == 1 and edits[0].path == finding.path:
        # reviewdog offers a suggestion on a forge only where the diagnostic has the same lines
        out["location"]["range"] = lines = _lines(edits[0])
        out["suggestions"] = [{"range": lines, "text": edits[0].text.removesuffix("\n").removesuffix("\r")}]
    return out


def _lines(edit: LineEdit) -> dict[str, Any]:
    """Whole lines: without columns the end line belongs to the range, its line end does not; what vanishes takes that along."""
    if edit.text:
        return {"start": {"line": edit.top}, "end": {"line": edit.bottom}}
    return {"start": {"line": edit.top, "column": 1}, "end": {"line": edit.bottom + 1, "column": 1}}


def _range(project: Checked, finding: Finding) -> dict[str, Any]:
    span: Span = project.span(finding)
    return {
        "start": {"line": span.line, "column": _bytes(project, finding.path, span.line, span.column) + 1},
        "end": {"line": span.end_line, "column": _bytes(project, finding.path, span.end_line, span.end_column) + 1},
    }


def _bytes(project: Checked, path: str, line: int, column: int) -> int:
    return len(project.line(path, line)[:column].encode("utf-8", "surrogatepass"))
