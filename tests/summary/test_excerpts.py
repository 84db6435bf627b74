"""Which lines are shown, and under which codemod."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import (
    AddDecorator,
    Applicability,
    Edit,
    Finding,
    InsertAfter,
    NeedImport,
    RemoveStatement,
    SetKeyword,
    WrapInGuard,
)
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.summary import render
from ddpfix.summary.excerpts import MOST_LINES, Hunk, hunks
from tests.summary.made import block, check_markdown, context, fenced, in_memory


class Marked(DdpCodemod):
    """A change where a call asks for it."""

    TRIGGERS = ((b"mark",),)
    word = ""

    def edits(self, module: SourceModule, call: ast.Call) -> list[Edit]:
        raise NotImplementedError

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named(self.word):
            if not call.keywords:
                edits = self.edits(module, call)
                yield self.finding(module, call, f"{self.word} is called", level=Applicability.SAFE, edits=edits)


class Keyword(Marked):
    """Calls of `mark` say that they are done."""

    code, word = "DDP991", "mark"

    def edits(self, module: SourceModule, call: ast.Call) -> list[Edit]:
        return [SetKeyword(module.path, module.span(call), "done", "True")]


class Decorated(Marked):
    """Functions round `mark_hook` run on one process."""

    code, word = "DDP992", "mark_hook"

    def edits(self, module: SourceModule, call: ast.Call) -> list[Edit]:
        function = module.function_of(call)
        assert function is not None
        statement = module.statement_of(call)
        first = module.span(module.tree.body[0])
        return [
            AddDecorator(module.path, module.span(function), "only_first"),
            NeedImport(module.path, first, "from helpers import only_first"),
            RemoveStatement(module.path, module.span(statement)),
        ]


class Guarded(Marked):
    """Statements that call `mark_io` stand under a guard, and something follows."""

    code, word = "DDP993", "mark_io"

    def edits(self, module: SourceModule, call: ast.Call) -> list[Edit]:
        span = module.span(module.statement_of(call))
        replaced = SetKeyword(module.path, module.span(call), "done", "True")
        return [WrapInGuard(module.path, span, "rank == 0", span), InsertAfter(module.path, span, "wait()"), replaced]


ALL = (Keyword(), Decorated(), Guarded())


def found(source: str, *, path: str = "a.py") -> tuple[Hunk, ...]:
    fixed = in_memory({path: source}, codemods=ALL)
    return hunks(path, fixed.before[path], fixed.after[path], fixed.fixed)


def changed(hunk: Hunk) -> list[str]:
    return [row for row in hunk.rows if row[0] in "+-"]


def test_a_changed_line_has_both_its_numbers() -> None:
    (hunk,) = found("import os\n\n\nmark(1)\n\n\nprint(2)\n")
    assert (hunk.before, hunk.after, hunk.codes) == ((4, 1), (4, 1), ("DDP991",))
    assert hunk.header == "@@ -2,5 +2,5 @@"
    assert changed(hunk) == ["-mark(1)", "+mark(1, done=True)"]


def test_an_argument_of_its_own_line_belongs_to_the_call() -> None:
    (hunk,) = found("import os\n\nmark(\n    1,\n    2,\n)\n")
    assert (hunk.before, hunk.after, hunk.codes) == ((6, 0), (6, 1), ("DDP991",))
    assert changed(hunk) == ["+    done=True,"]


def test_a_decorator_and_its_import_belong_to_the_codemod_that_wants_them() -> None:
    source = "import os\n\nA = 1\n\n\ndef hook():\n    mark_hook(1)\n" + "    x = 1\n" * 4 + "    mark(1)\n    return x\n"
    one, two, three = found(source)
    assert changed(one) == ["+from helpers import only_first"]
    assert changed(two) == ["+@only_first", "-    mark_hook(1)"]
    assert (one.codes, two.codes, three.codes) == (("DDP992",), ("DDP992",), ("DDP991",))


def test_a_guard_and_what_follows_it_are_one_excerpt() -> None:
    (hunk,) = found("import os\n\nmark_io(1)\nx = 1\n")
    assert hunk.codes == ("DDP993",)
    assert changed(hunk) == ["-mark_io(1)", "+if rank == 0:", "+    mark_io(1, done=True)", "+wait()"]


def test_lines_that_two_codemods_share_are_shown_once() -> None:
    fixed = in_memory({"a.py": "import os\n\nmark(1)\nmark_io(1)\n"}, codemods=ALL)
    text = render(fixed, context(branch=None, base=None))
    check_markdown(text)
    assert "+mark(1, done=True)" in fenced(block(text, "DDP991"), "diff")[0]
    assert fenced(block(text, "DDP993"), "diff") == []


def test_neighbouring_changes_are_one_excerpt_and_distant_ones_two() -> None:
    source = "import os\nmark(1)\na = 1\nmark(2)\n" + "b = 1\n" * 9 + "mark(3)\n"
    assert [hunk.before for hunk in found(source)] == [(2, 3), (14, 1)]


def test_windows_line_ends_tabs_and_other_encodings_are_shown_as_text() -> None:
    (hunk,) = found(b"# coding: latin-1\r\nif 1:\r\n\tmark('\xe9')\r\n".decode("latin-1").encode("latin-1"))  # type: ignore[arg-type]
    assert changed(hunk) == ["-\tmark('é')", "+\tmark('é', done=True)"]


def test_control_characters_and_long_lines_cannot_spoil_the_page() -> None:
    (hunk,) = found("import os\n\x0c\nmark('" + "x" * 4000 + "')\n")
    assert all(len(row) < 230 and all(c.isprintable() for c in row) for row in hunk.rows)


def test_a_large_excerpt_is_cut() -> None:
    (hunk,) = found("import os\n" + "".join(f"mark({n})\n" for n in range(100)))
    assert len(hunk.rows) <= MOST_LINES + 2
    assert any("more lines" in row for row in hunk.rows)
    assert hunk.before == (2, 100)


def test_code_with_backticks_cannot_end_a_fence() -> None:
    source = 'TEXT = """\n```\n@someone closes #12\n"""\nmark(1)\nmark_io("|", "````")\n'
    text = render(in_memory({"a|b.py": source, "c`d.py": source}, codemods=ALL), context(branch=None, base=None))
    check_markdown(text)
    assert "`````diff" in text
    assert "``c`d.py``:" in text


def test_a_long_excerpt_keeps_the_first_new_line() -> None:
    old = [f"    print({n})" for n in range(30)]
    new = ["    if rank == 0:", *(f"    {line}" for line in old)]
    (hunk,) = hunks("a.py", "\n".join(["def f():", *old]).encode(), "\n".join(["def f():", *new]).encode(), [])
    assert "+    if rank == 0:" in hunk.rows
    assert sum("more lines" in row for row in hunk.rows) == 2
    assert len(hunk.rows) <= 26
