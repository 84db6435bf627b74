"""The page of a GitHub Actions job: Markdown for the file that `GITHUB_STEP_SUMMARY` names, at most 1 MiB a step."""

from __future__ import annotations

from codemods.api.findings import Finding
from ddpfix.outputs.answer import Answer, Checked, plain, story
from ddpfix.outputs.severity import severity, urgency
from ddpfix.outputs.text import flat, plural, totals

LIMIT = 1024 * 1024  # github/docs: workflow-commands, "Step isolation and limits"; a larger one is not shown at all
_FIXES = {"safe": "yes", "unsafe": "with `--unsafe-fixes`", "display": "no"}


def markdown(answer: Answer, *, room: int = LIMIT) -> str:
    """The page, cut at a row so that it has at most `room` bytes; what was cut is said. Empty where nothing fits."""
    head = _head(answer)
    rows = [_row(answer, *row) for row in sorted(answer.rows(), key=lambda row: urgency(row[1]))]
    left = room - len(head.encode())
    if left < len(_cut(len(rows)).encode()):
        return ""
    if sum(len(row.encode()) for row in rows) <= left:
        return head + "".join(rows)
    left -= len(_cut(len(rows)).encode())
    kept: list[str] = []
    for row in rows:
        left -= len(row.encode())
        if left < 0:
            break
        kept.append(row)
    return head + "".join(kept) + _cut(len(rows) - len(kept))


def _cut(count: int) -> str:
    return f"\n{plural(count, 'more finding')} did not fit here; the log of the step has them.\n"


def _head(answer: Answer) -> str:
    lines = ["## ddpfix", "", totals([p.report for p in answer.projects])]
    if answer.baseline:
        lines += ["", f"{plural(answer.known, 'known finding')} left out by the baseline."]
    if any(p.report.findings for p in answer.projects):
        lines += ["", "| level | place | finding | fix |", "| --- | --- | --- | --- |"]
    return "\n".join(lines) + "\n"


def _row(answer: Answer, project: Checked, finding: Finding) -> str:
    place = f"{answer.home(project, finding.path)}:{finding.where}"
    cells = (severity(finding), _cell(place), f"{finding.code} {_cell(story(finding))}", _FIXES[finding.applicability.value])
    return f"| {' | '.join(cells)} |\n"


def _cell(text: str) -> str:
    """Text of a user's repository that stays text: no markup, no link, no new row; at most what one reads in a table."""
    short = flat(plain(text))
    short = short if len(short) <= 600 else short[:599] + "…"
    return "".join(f"\\{c}" if c in "\\`*_[]|#~$@" else {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(c, c) for c in short)
