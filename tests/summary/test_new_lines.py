"""Places of fixes are those of the statement that a reader finds changed."""

from __future__ import annotations

from codemods.api.findings import Applicability, Edit, Finding, Fix, InsertAfter, NeedImport, Span, WrapInGuard
from ddpfix.summary.new_lines import in_lines_of


def lines(before: str, after: str, span: Span, *edits: Edit) -> int:
    found = Finding("DDP999", "x", "a.py", span, "", "m", fix=Fix(Applicability.SAFE, edits))
    (moved,) = in_lines_of([found], {"a.py": before.encode()}, {"a.py": after.encode()})
    return moved.span.line


LOOP = "for x in y:\n    go(x)\n    go(x)\n"


def test_what_is_put_behind_a_long_statement_stands_behind_it() -> None:
    span = Span(1, 0, 3, 9)
    assert lines(LOOP, f"{LOOP}stop()\n", span, InsertAfter("a.py", span, "stop()")) == 4


def test_its_import_comes_above_it() -> None:
    span, top = Span(1, 0, 3, 9), Span(1, 0, 1, 0)
    edits = (NeedImport("a.py", top, "import a", before=True), InsertAfter("a.py", span, "a.stop()"))
    assert lines(LOOP, f"import a\n{LOOP}a.stop()\n", span, *edits) == 5


def test_lines_that_went_under_guards_are_the_same_lines() -> None:
    before = "a()\nprint(1)\nprint(2)\nprint(3)\n"
    after = "a()\nif first:\n    print(1)\nif first:\n    print(2)\nif first:\n    print(3)\n"
    for old, new in ((2, 3), (3, 5), (4, 7)):
        span = Span(old, 0, old, 8)
        assert lines(before, after, span, WrapInGuard("a.py", span, "first", span)) == new
