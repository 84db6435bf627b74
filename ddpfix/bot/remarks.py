"""What there is to say about the lines that a pull request changes: each finding, with a suggestion where one can repair it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from codemods.api.findings import Applicability, Finding
from codemods.files.notebook_places import Layouts
from ddpfix import api, catalog, engine
from ddpfix.bot.body import harmless
from ddpfix.bot.forge import ChangedFile, Suggestion
from ddpfix.discovery import Tree
from ddpfix.results import Failure
from ddpfix.settings import Settings
from ddpfix.summary.markdown import sentence


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding on the lines of a pull request, with the suggestion that repairs it where a suggestion can."""

    finding: Finding
    suggestion: Suggestion | None


def remarks_on(
    tree: Tree, settings: Settings, read: Callable[[str], bytes | None], changed: Mapping[str, ChangedFile]
) -> tuple[list[Remark], tuple[Failure, ...]]:
    """What there is to say about the lines that a pull request changes, and which of its files could not be read."""
    tree = replace(tree, chosen=tuple(p for p in tree.chosen if p in changed))
    codemods = catalog.selected(settings.selection)
    found = api.Project(tree, settings, codemods, read).fix(lambda finding: False)
    lines = Layouts(read)
    here = [f for f in found.report.findings if _is_on(f, changed[f.path], lines)]
    rows = engine.line_edits(replace(found.report, findings=tuple(here)), read=read)
    out: list[Remark] = []
    taken: set[tuple[str, int]] = set()
    for finding in sorted(here, key=lambda f: (f.path, f.span, f.code)):
        suggestion = _suggestion(finding, rows.get(finding.id, ()), changed, taken)
        if suggestion:
            taken |= {(suggestion.path, line) for line in range(suggestion.first, suggestion.last + 1)}
        out.append(Remark(finding, suggestion))
    return out, found.report.failed


def _is_on(finding: Finding, file: ChangedFile, lines: Layouts) -> bool:
    top, bottom = (lines.line(finding.path, line) for line in (finding.span.line, finding.span.end_line))
    return not file.changed.isdisjoint(range(top, bottom + 1))


def _suggestion(
    finding: Finding, rows: Sequence[Mapping[str, object]], changed: Mapping[str, ChangedFile], taken: Set[tuple[str, int]]
) -> Suggestion | None:
    """The fix as one suggestion; None where it needs lines that the pull request leaves alone, or those of another one."""
    if len(rows) != 1:
        return None
    row = rows[0]
    path, first, last = str(row["path"]), int(str(row["start_line"])), int(str(row["end_line"]))
    file = changed.get(path)
    if file is None or last < first or not file.in_one_hunk(first, last) or file.changed.isdisjoint(range(first, last + 1)):
        return None
    if any((path, line) in taken for line in range(first, last + 1)):
        return None
    words = f"**{finding.code} {finding.name}**: {sentence(finding.message)}"
    if finding.applicability is Applicability.UNSAFE:
        words += f" This assumes: {sentence(finding.reason)}"
    text = str(row["replacement"]).replace("\r\n", "\n")
    return Suggestion(path, first, last, text, harmless(words))
