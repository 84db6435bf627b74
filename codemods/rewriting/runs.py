"""Which lines an edit changes: the smallest run of whole statements round it, found on `ast` and on the lines themselves."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codemods.api.findings import Edit, RemoveStatement, Span, Unwrap, WrapInGuard, claims
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record

NEWLINES = ("\r\n", "\n", "\r")
BLANK = " \t\f\r\n"
_SEMICOLON_CONTINUED = lazy(r"\s*;\s*\\[\r\n]*")
_COLON_CONTINUED = lazy(r":\s*\\[\r\n]*$")


class RewriteError(Exception):
    """An edit that cannot be written. The text says which and why."""


@record(frozen=False)
class Run:
    """Whole lines `top`..`bottom` (1-based, inclusive) of statements that change together, and the edits inside."""

    top: int
    bottom: int
    edits: list[Edit] = field(default_factory=list)


@record
class Lines:
    """Neighbours in one block that share lines (`a(); b()`), mostly a single statement, and the lines they fill."""

    top: int
    bottom: int
    statements: tuple[ast.stmt, ...]
    block: int


# Lines as text


def is_blank(line: str) -> bool:
    return not line.strip(BLANK)


def is_comment(line: str) -> bool:
    return line.lstrip(BLANK).startswith("#")


def indent_of(text: str) -> str:
    """The white space that the first line begins with."""
    line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def newline_of(lines: Sequence[str], line: int) -> str:
    """The line end in use at a line, or nearest above it, or in the file at all."""
    for index in [*range(line - 1, -1, -1), *range(line, len(lines))]:
        for end in NEWLINES:
            if lines[index].endswith(end):
                return end
    return "\n"


_NEAR = 3  # one block that is indented in another way does not decide


class Steps:
    """The steps of indentation a file takes, by line: two blanks here, four there, a tab."""

    def __init__(self, module: SourceModule) -> None:
        lines = module.lines
        found: dict[int, str] = {}
        for owner, block in module.blocks():
            line: int = getattr(owner, "lineno", 0)
            if not line or block[0].lineno == line:
                continue
            outer, inner = indent_of(lines[line - 1]), indent_of(lines[first_line(block[0]) - 1])
            if inner.startswith(outer) and len(inner) > len(outer):
                found[line] = inner[len(outer) :]
        self._lines = sorted(found)
        self._steps = found

    def at(self, line: int) -> str:
        """The step that most of the nearest blocks take, of equal ones the nearest; four blanks where the file takes none."""
        if not self._lines:
            return "    "
        i = bisect_left(self._lines, line)
        near = sorted(self._lines[max(i - _NEAR, 0) : i + _NEAR], key=lambda n: abs(n - line))[:_NEAR]
        taken = [self._steps[n] for n in near]
        return max(taken, key=lambda step: (taken.count(step), -taken.index(step)))


@once_a_module
def steps(module: SourceModule) -> Steps:
    return Steps(module)


# Statements as lines


def first_line(statement: ast.stmt) -> int:
    """The line a statement begins at, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def whole_lines(module: SourceModule) -> Iterator[Lines]:
    """Statements that share their lines with nothing but a comment, and with each other; no `elif`."""
    for owner, block in [(None, module.tree.body), *module.blocks()]:
        if owner is None or not _on_line_of(module, owner, block[0]):
            group: list[ast.stmt] = []
            for statement in block:
                if group and not _joined(module, group[-1], statement):
                    yield from _whole(module, group, id(block))
                    group = []
                group.append(statement)
            if group:
                yield from _whole(module, group, id(block))


def _on_line_of(module: SourceModule, owner: ast.AST, first: ast.stmt) -> bool:
    """True for the body behind a colon (`if x: y`), a backslash between them included, and for the `if` of an `elif`."""
    top = first_line(first)
    line = module.lines[top - 1]
    head = line[: module.span(first).column] if top == first.lineno else indent_of(line)
    if not is_blank(head) or (isinstance(owner, ast.If) and line.lstrip(BLANK).startswith("elif")):
        return True
    above = module.lines[top - 2] if top > 1 else ""
    return bool(_COLON_CONTINUED.search(above)) and not is_comment(above)


def _joined(module: SourceModule, before: ast.stmt, after: ast.stmt) -> bool:
    span = module.span(before)
    tail = module.lines[span.end_line - 1][span.end_column :]
    return first_line(after) == span.end_line or bool(_SEMICOLON_CONTINUED.fullmatch(tail))


def _whole(module: SourceModule, group: Sequence[ast.stmt], block: int) -> Iterator[Lines]:
    end = module.span(group[-1])
    tail = module.lines[end.end_line - 1][end.end_column :].strip(BLANK)
    if not tail.rstrip("; ") or is_comment(tail.lstrip("; ")):
        yield Lines(first_line(group[0]), end.end_line, tuple(group), block)


@record
class Statements:
    """All whole statements of a file, outer ones first. around: for each the nearest one that holds it, -1 for none."""

    whole: Sequence[Lines]
    around: Sequence[int]
    by_span: Mapping[Span, Lines]

    def holder(self, region: Span) -> Lines | None:
        """The smallest that holds the lines of a region."""
        at = bisect_right(self.whole, region.line, key=lambda w: w.top) - 1
        while at >= 0 and self.whole[at].bottom < region.end_line:
            at = self.around[at]
        return self.whole[at] if at >= 0 else None


@once_a_module
def statements(module: SourceModule) -> Statements:
    whole = sorted(whole_lines(module), key=lambda w: (w.top, -w.bottom))
    around: list[int] = []
    for at, lines in enumerate(whole):
        outer = at - 1
        while outer >= 0 and whole[outer].bottom < lines.bottom:
            outer = around[outer]
        around.append(outer)
    return Statements(whole, around, {module.span(s): w for w in whole for s in w.statements})


# Runs


def find_runs(module: SourceModule, edits: Iterable[Edit], one_guard: Mapping[Span, Span]) -> list[Run]:
    """The smallest runs of whole statements that hold the edits, joined where they overlap, in order.

    one_guard: where the lower of two guards that become one begins -> where the upper one begins.
    """
    runs = [_run_of(module, edit, statements(module)) for edit in edits]
    for run in runs:
        _take_in_neighbours(module, run, one_guard)
    runs.sort(key=lambda r: (r.top, -r.bottom))
    joined: list[Run] = []
    for run in runs:
        if joined and run.top <= joined[-1].bottom:
            joined[-1].bottom = max(joined[-1].bottom, run.bottom)
            joined[-1].edits += run.edits
        else:
            joined.append(run)
    return joined


def _take_in_neighbours(module: SourceModule, run: Run, one_guard: Mapping[Span, Span]) -> None:
    """Makes a guard's run reach over the guards that it becomes one with."""
    known = statements(module).by_span
    for edit in run.edits if one_guard else ():
        if isinstance(edit, WrapInGuard):
            if edit.span in one_guard:
                run.top = min(run.top, known[one_guard[edit.span]].top)
            for lower in (known[low] for low, up in one_guard.items() if up == edit.span):
                run.bottom = max(run.bottom, _with_comments_below(module, lower.top, lower.bottom))


def _run_of(module: SourceModule, edit: Edit, known: Statements) -> Run:
    region = claims(edit)
    first = known.by_span.get(edit.span)
    last = known.by_span.get(edit.last) if isinstance(edit, WrapInGuard) else first
    if first and last and first.block == last.block:
        top, bottom = first.top, last.bottom
    else:
        held = known.holder(region)
        if held is None:
            raise RewriteError(f"no whole statement holds line {region.line} of {module.path}")
        top, bottom, last = held.top, held.bottom, None
    if isinstance(edit, (WrapInGuard, Unwrap, RemoveStatement)) and last and hasattr(last.statements[-1], "body"):
        bottom = _with_comments_below(module, top, bottom)
    takes_comments = isinstance(edit, RemoveStatement) or (
        isinstance(edit, WrapInGuard) and (edit.comments_inside or bool(edit.otherwise))
    )
    if takes_comments and first and len(first.statements) == 1:
        top = _with_comments_above(module, top)
    return Run(top, bottom, [edit])


def _with_comments_above(module: SourceModule, line: int) -> int:
    """Comment lines that touch a statement go with it, but for those that begin the file (a coding line, a licence)."""
    lines = module.lines
    indent = indent_of(lines[line - 1])
    first = line
    while first > 1 and is_comment(lines[first - 2]) and indent_of(lines[first - 2]) == indent:
        first -= 1
    return first if first > 1 else line


def _with_comments_below(module: SourceModule, top: int, line: int) -> int:
    """Comment lines behind the last statement of a block, deeper than its owner, belong to it."""
    lines = module.lines
    indent = indent_of(lines[top - 1])
    for number in range(line + 1, len(lines) + 1):
        text = lines[number - 1]
        own = indent_of(text)
        if not is_blank(text) and not (is_comment(text) and own.startswith(indent) and len(own) > len(indent)):
            break
        if not is_blank(text):
            line = number
    return line


def with_blank_lines(lines: Sequence[str], run: Run, following: Run | None) -> tuple[int, int]:
    """The lines to take out with a run that vanished, so that the blank lines on its two sides do not add up.

    Between two statements the gap above stays if there is none below; at the head of a block or a file no gap is left.
    `following`: the next run that changes, whose lines are not touched.
    """
    top, bottom = run.top, run.bottom
    gone = next(line for line in lines[top - 1 :] if not is_blank(line))
    below = lines[bottom] if bottom < len(lines) else ""
    if below and not is_blank(below) and len(indent_of(below)) >= len(indent_of(gone)):
        return top, bottom
    above = lines[top - 2] if top > 1 else ""
    opened = top == 1 or (not is_blank(above) and len(indent_of(above)) < len(indent_of(gone)))
    while not opened and top > 1 and is_blank(lines[top - 2]):
        top -= 1
    end = following.top - 1 if following else len(lines)
    while opened and bottom < end and is_blank(lines[bottom]):
        bottom += 1
    return top, bottom
