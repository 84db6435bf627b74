"""Annotations of GitHub Actions: workflow commands on stdout.

GitHub shows ten of each level a step and drops the rest without a word (actions/toolkit, docs/problem-matchers.md): the worst
come first, what does not fit follows as a folded list in the log, and `step_summary` has them all.
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.api.findings import Finding
from ddpfix.escaping import harmless, visible
from ddpfix.outputs.answer import SOURCES, Answer, Checked, first_line, plain, story
from ddpfix.outputs.severity import ERROR, NOTE, WARNING, severity, urgency
from ddpfix.outputs.text import MARKS, flat, plural

NEEDS = (SOURCES,)
MOST = 10
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def document(answer: Answer) -> str:
    return "".join(f"{row}\n" for row in _rows(answer))


def _rows(answer: Answer) -> Iterator[str]:
    left: list[tuple[Checked, Finding]] = []
    shown = dict.fromkeys(_COMMANDS, 0)
    for project, finding in sorted(answer.rows(), key=lambda row: urgency(row[1])):
        level = severity(finding)
        shown[level] += 1
        if shown[level] > MOST:
            left.append((project, finding))
        else:
            yield annotation(answer, project, finding)
    if left:
        yield f"::group::{plural(len(left), 'more finding')} than GitHub shows as annotations; all are in the summary of this job"
        for project, finding in left:
            place = f"{answer.home(project, finding.path)}:{finding.where}:{finding.span.column + 1}"
            yield _harmless(f"- {place}: {finding.code} {MARKS[finding.applicability.value]} {flat(story(finding))}")
        yield "::endgroup::"


def annotation(answer: Answer, project: Checked, finding: Finding) -> str:
    """One workflow command. Columns count from 1; GitHub reads them where the place is within one line."""
    span = first_line(project, finding)
    fields = {
        "file": answer.home(project, finding.path),
        "line": str(span.line),
        "endLine": str(span.end_line),
        "col": str(span.column + 1),
        "endColumn": str(span.end_column + 1),
        "title": f"{finding.code} {finding.name}",
    }
    properties = ",".join(f"{name}={_property(plain(value))}" for name, value in fields.items())
    return f"::{_COMMANDS[severity(finding)]} {properties}::{_data(story(finding))}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _harmless(line: str) -> str:
    """A line of the log that the runner takes for no command: its older form counts anywhere in a line."""
    return harmless(plain(flat(line)))
