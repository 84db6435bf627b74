"""One line a finding, never wrapped: `path:line:column: CODE message`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.api.findings import Finding
from ddpfix.escaping import harmless
from ddpfix.outputs.answer import Answer
from ddpfix.outputs.paths import Shown
from ddpfix.results import Failure, Report

MARKS = {"safe": "[fix]", "unsafe": "[unsafe fix]", "display": "[reported]"}


def line(finding: Finding, shown: Shown) -> str:
    """The finding in one line, its reason behind it."""
    place = f"{shown(finding.path)}:{finding.where}:{finding.span.column + 1}"
    reason = f" ({flat(finding.reason)})" if finding.reason else ""
    return f"{place}: {finding.code} {MARKS[finding.applicability.value]} {flat(finding.message)}{reason}"


def flat(text: str) -> str:
    return " ".join(text.split())


def document(answer: Answer) -> str:
    return render(answer.reports)


def render(reports: list[tuple[Report, Shown]]) -> str:
    rows = [harmless(line(finding, shown)) for report, shown in reports for finding in worst_first(report.findings)]
    return "".join(f"{row}\n" for row in rows)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By what they do to a run; equals stay in the order of files and lines."""
    return sorted(findings, key=lambda finding: finding.severity_rank)


def notes(reports: list[tuple[Report, Shown]], *, closing: bool = True) -> str:
    """What is no result: the files that were not read, and the closing line where it is wanted."""
    rows = [harmless(row) for report, shown in reports for row in left_out(report.failed, shown)]
    return "".join(f"{row}\n" for row in (*rows, *([totals([report for report, _ in reports])] if closing else ())))


def left_out(failed: Iterable[Failure], shown: Shown) -> Iterator[str]:
    """A line for each file that was not read, or that is left alone."""
    for one in failed:
        yield f"{shown(one.path)}: {'not checked' if one.left_alone else 'not read'}: {flat(one.error)}"


def totals(reports: list[Report]) -> str:
    """The closing line: what was seen, what can be fixed, what could not be read."""
    levels = {"safe": 0, "unsafe": 0, "display": 0}
    for report in reports:
        for finding in report.findings:
            levels[finding.applicability.value] += 1
    files = sum(r.scanned for r in reports)
    failed = sum(len(r.unread) for r in reports)
    seen = plural(files, "Python file")
    if not sum(levels.values()):
        parsed = sum(r.parsed for r in reports)
        text = f"Nothing to report in {seen}."
        if not parsed and any(r.unread for r in reports):
            text = f"Nothing could be checked in {seen}."
        elif not parsed:
            text = f"Nothing distributed here: {seen} seen, none with a word of distributed training."
    else:
        text = (
            f"{plural(sum(levels.values()), 'finding')} in {seen}: {levels['safe']} fixable, "
            f"{levels['unsafe']} with --unsafe-fixes, {levels['display']} reported."
        )
    text += f" {plural(failed, 'file')} could not be read." if failed else ""
    more = unstarted(sum(r.left_out for r in reports))
    return f"{text}\n{more}" if more else text


def unstarted(left_out: int) -> str:
    """A line on what is left out, for who means to start the programs on several processes all the same; "" for nothing."""
    if not left_out:
        return ""
    more = "1 more is" if left_out == 1 else f"{left_out} more are"
    return f"{more} in programs that nothing here starts on several processes: --launched takes them in."


def plural(count: int, noun: str, several: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"
