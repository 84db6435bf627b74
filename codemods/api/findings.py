"""The vocabulary: what a codemod says (Finding), offers (Fix) and changes (Edit). Frozen, picklable, without a tree in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

from codemods.runtime.record import record

Severity = Literal["crash", "hang", "data", "risk", "noise", ""]
# What an error does to a run that nobody repaired, the worst first, as a reader sees it.
SEVERITIES: Mapping[Severity, str] = {
    "crash": "Crash",
    "hang": "Hang",
    "data": "Lost or wrong data",
    "risk": "Crash or hang under conditions",
    "noise": "Noise or lost time",
}


class Applicability(Enum):
    """How far a fix may be trusted. SAFE is applied by default, UNSAFE on request, DISPLAY is only told."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"

    @property
    def rank(self) -> int:
        return {"safe": 2, "unsafe": 1, "display": 0}[self.value]


def lowest(*levels: Applicability) -> Applicability:
    """The most careful of several levels: a fix is as safe as its weakest condition."""
    return min(levels, key=lambda level: level.rank)


@record(order=True)
class Span:
    """A place in a file: lines from 1, columns from 0, in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, other: Span) -> bool:
        start = (self.line, self.column) <= (other.line, other.column)
        return start and (other.end_line, other.end_column) <= (self.end_line, self.end_column)

    def overlaps(self, other: Span) -> bool:
        return (self.line, self.column) < (other.end_line, other.end_column) and (other.line, other.column) < (
            self.end_line,
            self.end_column,
        )


class Asked(Enum):
    """The question of a reviewer that a piece of evidence answers, where a flag of DDP is changed."""

    PARAMETERS = "parameters"  # whether each reaches the loss
    BRANCHES = "branches"  # which skip modules, and what decides them
    OPTIONAL = "optional"  # modules that may be absent
    STATIC_GRAPH = "static graph"


class PathRole(Enum):
    """What a place is on the ways that the ranks go."""

    UNDER = "under"  # the ranks part at a test, and `who` goes in
    WITHIN = "in"  # the same at a function that is decorated, a block, the other branch of a test
    BEHIND = "behind"  # the same at an exit that the others take
    LEAVES = "leaves"  # `who` goes on here, and the others may leave
    CALLS = "calls"  # a call that leads to the collective
    WAITS = "waits"  # the collective
    OWN_PART = "own part"  # a collective that takes a part from each rank, and waits for nobody
    INSTEAD = "instead"  # what `who` comes to in its place
    ENDS = "ends"  # where `who` comes without it
    WRITES = "writes"  # rank 0 alone writes a file
    LEADS = "leads"  # a call that leads there
    USES = "uses"  # every rank uses the file


@record
class PathStep:
    """A place on the ways of the ranks, as data: the pictures are made of it. what: code or a place; who: the ranks in words."""

    role: PathRole
    what: str
    who: str = ""


@record
class Evidence:
    """A reason the reader can check.

    kind: static, safe (it says why the fix is safe at this place), several (it shows that processes are meant, and nothing more),
    way (a step of the way that a value came, nearest first), log, probe, version, text. strength: strong or weak. path and line
    say where to look, if anywhere; cell and cell_line in a notebook, as those of a Finding. step: what the place is on the ways
    of the ranks, where the evidence shows two. asked: the question that it answers.
    """

    kind: str
    text: str
    path: str = ""
    line: int = 0
    strength: str = "strong"
    cell: int = 0
    cell_line: int = 0
    step: PathStep | None = None
    asked: Asked | None = None

    @property
    def place(self) -> str:
        """`path:line`, or where there is no line the path; in a notebook with the cell."""
        where = f"cell {self.cell}:line {self.cell_line}" if self.cell else str(self.line or "")
        return f"{self.path}:{where}" if where else self.path


@record
class Edit:
    """One change, anchored by the span of a node of the original file."""

    path: str
    span: Span


@record
class SetKeyword(Edit):
    """Give the call at `span` the keyword argument `name=value`, in place of one of that name if it has one."""

    name: str
    value: str


@record
class DropKeyword(Edit):
    """Take the keyword argument `name` out of the call at `span`."""

    name: str


@record
class DropKey(Edit):
    """Take the entry with the key `name` out of the dict literal at `span`."""

    name: str


@record
class RenameKeyword(Edit):
    """Call the keyword argument `name` of the call at `span` by the name `new`; its value and its place stay."""

    name: str
    new: str


@record
class ReplaceExpression(Edit):
    """Put `code` in the place of the expression at `span`. Comments inside the old expression are lost: keep it small."""

    code: str


@record
class RenameName(Edit):
    """Put the name `code` in the place of the one at `span`: in a definition, an import, a keyword, an attribute or a use."""

    code: str


@record
class AddDecorator(Edit):
    """Decorate the function at `span` with `code`, next to the `def` (innermost)."""

    code: str


@record
class DropDecorator(Edit):
    """Take the decorator whose expression reads `code` off the function at `span`."""

    code: str


@record
class DropParameter(Edit):
    """Take the parameter `name`, the last one by place, out of the function at `span`."""

    name: str


@record
class WrapInGuard(Edit):
    """Put the statements from the one at `span` to the one at `last` (neighbours, whole lines) under `if test:`.

    comments_inside: the comment on the first statement goes under the guard with it; else it stays above, and is of both.
    otherwise: the opposite test, where the statements are all that a function does: while nothing is put behind them they keep
    their place, and the function is left above them.
    """

    test: str
    last: Span
    comments_inside: bool = False
    otherwise: str = ""


@record
class Unwrap(Edit):
    """Replace the `if` at `span` by its body; an `else` of `pass` goes, but for its comments."""


@record
class InsertBefore(Edit):
    """Put the statement(s) `code` in front of the statement at `span`, outside any guard that begins there."""

    code: str


@record
class InsertAfter(Edit):
    """Put the statement(s) `code` behind the statement at `span`, outside any guard that ends there."""

    code: str


@record
class RemoveStatement(Edit):
    """Take out the statement at `span`, with the comment lines that stand directly on it; `pass` stays in an empty block."""


@record
class AddComment(Edit):
    """Put comment lines above the statement at `span`; with `keyword`, above that argument of the call at `span`."""

    lines: tuple[str, ...]
    keyword: str = ""


@record
class DropImport(Edit):
    """Take the bound name `name` out of the import statement at `span`, and the statement with its last name."""

    name: str


@record
class ExtendImport(Edit):
    """Bring the name `name` in by the `from` import statement at `span`, too."""

    name: str


@record
class NeedImport(Edit):
    """The import statement `code` behind the statement at `span`, or in front of it where `before` is set."""

    code: str
    before: bool = False


# Files that are no Python. There a ReplaceExpression is the value of a scalar, which keeps its quotes.


@record
class ReplaceText(Edit):
    """Put `text`, as it is, in the place of a piece of a command line; an empty span is a place to insert it at."""

    text: str


@record
class ReplaceWithText(Edit):
    """Put a text in the place of the scalar at `span`, in quotes: a text whatever it reads like (`"no"`)."""

    text: str


@record
class ChangeItems(Edit):
    """Put `text` in the place of items of a list of scalars, with what separates them; added: how many items `text` holds."""

    text: str
    added: int = 0


@record
class DropEntry(Edit):
    """Take the key and value at `span` out of their mapping."""


@record
class AddEntry(Edit):
    """Put the entry `key: value` behind the one at `span`, in its layout. value: as it is to be written."""

    key: str
    value: str


# What a person wrote


@record
class ReplaceLines(Edit):
    """Put the whole lines `code` in the place of those from `span.line` to before `span.end_line`; as a person wrote them."""

    code: str


STATEMENT_EDITS = (WrapInGuard, Unwrap, InsertBefore, InsertAfter, RemoveStatement, DropImport, ExtendImport, NeedImport)


def claims(edit: Edit) -> Span:
    """The region an edit speaks for."""
    if isinstance(edit, WrapInGuard):
        return Span(edit.span.line, edit.span.column, edit.last.end_line, edit.last.end_column)
    return edit.span


@record
class Fix:
    """Edits that belong together: all are made or none. `group` ties fixes in several files into one."""

    applicability: Applicability
    edits: tuple[Edit, ...]
    group: str = ""


@record
class Doubt:
    """The only doubt over a finding without a fix: one with the same `key` is told once. parts: what it says of this place."""

    key: str
    parts: tuple[str, ...]


@record
class Finding:
    """What is wrong at one place.

    message says what happens to the user and why here; reason says why there is no fix, or what the fix assumes. cell, cell_line:
    of a notebook, the cell among all its cells and the line in it, both from 1. severity: "" where nobody says. renames: the old
    and new names, where a project asks for them. remaining: like places of the same function that the fix leaves as they are,
    each with the reason.
    """

    code: str
    name: str
    path: str
    span: Span
    symbol: str
    message: str
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    fix: Fix | None = None
    id: str = ""
    doubt: Doubt | None = None
    cell: int = 0
    cell_line: int = 0
    severity: Severity = ""
    renames: tuple[tuple[str, str], ...] = ()
    remaining: tuple[Evidence, ...] = ()

    @property
    def severity_rank(self) -> int:
        """For sorting: the worst first; what is not ours, such as a project's own renames, last."""
        known = list(SEVERITIES)
        return known.index(self.severity) if self.severity else len(known)

    @property
    def where(self) -> str:
        """The line as a reader looks for it: in a notebook that of the cell, since no editor of notebooks counts through."""
        return f"cell {self.cell}:line {self.cell_line}" if self.cell else str(self.span.line)

    @property
    def place(self) -> str:
        return f"{self.path}:{self.where}"

    @property
    def applicability(self) -> Applicability:
        return self.fix.applicability if self.fix else Applicability.DISPLAY

    @property
    def edits(self) -> Sequence[Edit]:
        return self.fix.edits if self.fix else ()
