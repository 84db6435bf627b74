"""What a reviewer sees of a project: each finding with the change that its fix makes alone. Reads only.

A change is shown as the fix makes it of the file as it is; together fixes share imports and may nest, so what is applied is the
patch of `ddpfix diff --decisions`, not the sum of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.engine.user_edits import lines_of
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix import engine
from ddpfix.diff import NO_NEWLINE, quoted
from ddpfix.discovery import Tree
from ddpfix.judging import Progress
from ddpfix.repository_state import head_of
from ddpfix.results import Failure
from ddpfix.settings import Settings

CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a hunk and its end: mark is " ", "-" or "+"; old and new are its numbers, 0 where it is not there."""

    mark: str
    old: int
    new: int
    text: str
    end: str = "\n"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changed lines with context. start and count: in the old file, in the new one, as in a unified diff."""

    path: str
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    rows: tuple[Row, ...]

    @property
    def header(self) -> str:
        return f"@@ -{_range(self.old_start, self.old_count)} +{_range(self.new_start, self.new_count)} @@"

    @property
    def text(self) -> str:
        """The hunk as a unified diff has it, without the file's name."""
        rows = (r.mark + r.text + (r.end if r.end.endswith("\n") else r.end + "\n" + NO_NEWLINE.decode()) for r in self.rows)
        return f"{self.header}\n{''.join(rows)}"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Whole lines of one file before and after: from `line` on, each with its end."""

    path: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One finding as it is decided over.

    acceptable: it has a fix, and the fix can be written; else `why_not` says why it is only told. mates: ids of the findings
    that are fixed together with it or not at all. replaced and hunks: its own change, in the order of paths and lines.
    """

    finding: Finding
    acceptable: bool
    why_not: str = ""
    mates: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    hunks: tuple[Hunk, ...] = ()

    @property
    def id(self) -> str:
        return self.finding.id

    @property
    def level(self) -> str:
        """safe, unsafe, or display for what is only told."""
        return self.finding.applicability.value

    @property
    def reason(self) -> str:
        """What an unsafe fix assumes, or why there is none."""
        return self.finding.reason

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return self.finding.evidence

    @property
    def patch(self) -> str:
        """Its change alone as a unified diff."""
        out, path = [], ""
        for hunk in self.hunks:
            if hunk.path != path:
                path = hunk.path
                out.append(f"--- {quoted('a/' + path)}\n+++ {quoted('b/' + path)}\n")
            out.append(hunk.text)
        return "".join(out)


@dataclass(frozen=True, slots=True)
class Review:
    """A project as it is reviewed: every finding, by file and line, and the commit ("" outside git) they were found on.

    left_out: as in `results.Report`.
    """

    root: Path
    base: str
    items: tuple[ReviewItem, ...]
    failed: tuple[Failure, ...] = ()
    left_out: int = 0

    @property
    def by_id(self) -> Mapping[str, ReviewItem]:
        return {item.id: item for item in self.items}


def review(
    tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod] | None = None, *, progress: Progress | None = None
) -> Review:
    """Every finding of a project with its own change. codemods: those that the settings select, unless given."""
    report = engine.check(tree, settings, codemods, progress=progress)
    read = engine.disk_reader(tree.root)
    with engine.collector_off():
        items = items_of(report.findings, Project(tree.files, read))
    return Review(tree.root, head_of(tree.root), items, report.failed, report.left_out)


def items_of(findings: Sequence[Finding], project: Project) -> tuple[ReviewItem, ...]:
    """The findings of one project, as it stands, as items; each file is parsed once."""
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        if finding.fix and finding.fix.group:
            groups.setdefault((finding.code, finding.fix.group), []).append(finding.id)
    out = []
    for finding in findings:
        group = groups.get((finding.code, finding.fix.group), []) if finding.fix and finding.fix.group else []
        out.append(_item(finding, project, tuple(i for i in group if i != finding.id)))
    return tuple(out)


def _item(finding: Finding, project: Project, mates: tuple[str, ...]) -> ReviewItem:
    from codemods.rewriting.rewriter import RewriteError

    if not finding.fix:
        return ReviewItem(finding, False, finding.reason or "it has no fix")
    replaced: list[Replaced] = []
    hunks: list[Hunk] = []
    for path in dict.fromkeys(e.path for e in finding.edits):
        module = project.module(path)
        if module is None:
            return ReviewItem(finding, False, f"{path} cannot be read", mates)
        try:
            made = _made(module, finding)
        except RewriteError as error:
            return ReviewItem(finding, False, str(error), mates)
        replaced += [Replaced(path, top, "".join(module.lines[top - 1 : end]), new) for top, end, new in made]
        hunks += hunks_of(path, module.lines, made)
    return ReviewItem(finding, True, "", mates, tuple(replaced), tuple(hunks))


def _made(module: SourceModule, finding: Finding) -> list[tuple[int, int, str]]:
    from codemods.rewriting.rewriter import replacements, with_deep_stack

    edits = [e for e in finding.edits if e.path == module.path]
    return with_deep_stack(lambda: replacements(module, edits))


def hunks_of(path: str, lines: Sequence[str], made: Sequence[tuple[int, int, str]], context: int = CONTEXT) -> list[Hunk]:
    """The hunks of (first line, last line, new text) replacements of a file, in order. Only lines near them are compared."""
    changes: list[tuple[int, int, list[str]]] = []  # (first index, end index, new lines), with what stays cut off
    for top, end, new in made:
        there, wanted = list(lines[top - 1 : end]), lines_of(new)
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, there, wanted, autojunk=False).get_opcodes():
            if tag != "equal":
                changes.append((top - 1 + i1, top - 1 + i2, wanted[j1:j2]))
    groups: list[list[tuple[int, int, list[str]]]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    out: list[Hunk] = []
    shift = 0
    for group in groups:
        above = shift
        rows, shift, first = _rows(lines, group, context, above)
        old = [r.old for r in rows if r.old]
        fresh = [r.new for r in rows if r.new]
        old_start = old[0] if old else first
        new_start = fresh[0] if fresh else first + above
        out.append(Hunk(path, old_start, len(old), new_start, len(fresh), tuple(rows)))
    return out


def _rows(
    lines: Sequence[str], group: Sequence[tuple[int, int, list[str]]], context: int, shift: int
) -> tuple[list[Row], int, int]:
    """(rows of one hunk, by how much the lines below it move, the index its old lines begin at)."""
    first = at = max(0, group[0][0] - context)
    rows: list[Row] = []
    for start, end, new in group:
        rows += [Row(" ", i + 1, i + 1 + shift, *_cut(lines[i])) for i in range(at, start)]
        rows += [Row("-", i + 1, 0, *_cut(lines[i])) for i in range(start, end)]
        rows += [Row("+", 0, start + 1 + shift + k, *_cut(line)) for k, line in enumerate(new)]
        shift += len(new) - (end - start)
        at = end
    below = range(at, min(at + context, len(lines)))
    return [*rows, *(Row(" ", i + 1, i + 1 + shift, *_cut(lines[i])) for i in below)], shift, first


def _cut(line: str) -> tuple[str, str]:
    text = line.rstrip("\r\n")
    return text, line[len(text) :]


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"
