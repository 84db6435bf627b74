"""What a terminal shows: for each finding the line it is about, what happens there, and where else to look; the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.api.findings import SEVERITIES, Applicability, Finding
from codemods.files.text_file import NOTEBOOK
from ddpfix.escaping import harmless, visible
from ddpfix.outputs.answer import SOURCES, Answer, Checked
from ddpfix.outputs.severity import about
from ddpfix.outputs.text import MARKS, flat, worst_first

NEEDS = (SOURCES,)
MOST_PLACES = 3  # elsewhere; `--output-format json` has all
_TAB = 4

Part = tuple[str, str]  # a text, and its style
Line = tuple[Part, ...]


def document(answer: Answer) -> str:
    return "".join("".join(text for text, _ in line) + "\n" for line in lines(answer))


def colored(answer: Answer) -> str:
    """The same with colours."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", legacy_windows=False)
    for line in lines(answer):
        console.print(Text.assemble(*line), soft_wrap=True, highlight=False)
    return out.getvalue()


def lines(answer: Answer) -> Iterator[Line]:
    """Each line in parts, with the style of each in the words of rich."""
    for project in answer.projects:
        for finding in worst_first(project.report.findings):
            yield from _finding(project, finding)
            yield ()


def _finding(project: Checked, finding: Finding) -> Iterator[Line]:
    level = finding.applicability
    color = {Applicability.SAFE: "green", Applicability.UNSAFE: "yellow", Applicability.DISPLAY: "cyan"}[level]
    yield (
        (finding.code, "bold red"), (" ", ""), (MARKS[level.value], color), (" ", ""), (visible(flat(finding.message)), "bold"),
    )  # fmt: skip
    place = harmless(f"{project.shown(finding.path)}:{finding.where}:{finding.span.column + 1}")
    gutter = " " * len(str(finding.span.line))
    yield ((f"{gutter}--> ", "blue"), (place, ""))
    yield from _frame(project, finding, gutter)
    for head, words in _notes(project, finding):
        yield ((f"{gutter} = ", "blue"), (head, "bold"), (visible(words), ""))


def _frame(project: Checked, finding: Finding, gutter: str) -> Iterator[Line]:
    """The first line of the place; none of a notebook, whose file holds it as JSON."""
    number = finding.span.line
    source = project.line(finding.path, number)
    if not source.strip() or finding.path.endswith(NOTEBOOK):
        return
    start = finding.span.column
    end = finding.span.end_column if finding.span.end_line == number else len(source.rstrip())
    # what is escaped is longer than what it stands for: the mark is measured on what is shown
    before, marked = (_shown(source[a:b]) for a, b in ((0, start), (start, max(end, start + 1))))
    yield ((f"{gutter} |", "blue"),)
    yield ((f"{number} | ", "blue"), (before + marked + _shown(source[max(end, start + 1) :]), ""))
    yield ((f"{gutter} | ", "blue"), (" " * len(before) + "^" * max(1, len(marked)), "red"))


def _shown(source: str) -> str:
    return visible(source.replace("\t", " " * _TAB))


def _notes(project: Checked, finding: Finding) -> Iterator[tuple[str, str]]:
    kind = SEVERITIES.get(finding.severity, "")
    if codemod := about(finding):
        yield f"{kind.lower() or 'why'}: ", flat(codemod.summary())
    if finding.reason:
        yield "reason: ", flat(finding.reason)
    elsewhere = [e for e in finding.evidence if e.path and e.line and e.path != finding.path]
    for evidence in elsewhere[:MOST_PLACES]:
        where = evidence.place.removeprefix(evidence.path)
        yield "via ", f"{flat(evidence.text)} ({project.shown(evidence.path)}{where})"
