from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine import suppressions
from codemods.engine.find import find_in
from codemods.files.source import SourceModule
from codemods.store.project import Project


class Calls(DdpCodemod):
    code = "DDP901"
    TRIGGERS = ((b"bad(",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("bad"):
            yield self.finding(module, call, "bad called")
        for function in module.functions:
            if function.name == "bad_one":
                yield self.finding(module, function, "bad defined")


class Names(DdpCodemod):
    code = "DDP902"
    TRIGGERS = ((b"worse",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for name in module.nodes(ast.Name):
            if name.id == "worse":
                yield self.finding(module, name, "worse named")


def found(source: str, *codemods: DdpCodemod) -> list[tuple[str, int]]:
    module = SourceModule("a.py", textwrap.dedent(source).encode())
    return [(f.code, f.span.line) for f in find_in(module, Project.of({}), codemods or [Calls(), Names()])]


@pytest.mark.parametrize(
    "source",
    [
        "bad()  # ddpfix: ignore[DDP901] known\n",
        "bad()  # noqa: E501  # ddpfix: ignore[DDP901]\n",
        "bad()  # ddpfix: ignore[ddp901]\n",
        "bad()  # ddpfix: ignore[test-suppressions]\n",
        "# ddpfix: ignore[DDP901] known\nbad()\n",
        "def f():\n    # ddpfix: ignore[DDP901]\n    return bad()\n",
        "x = g(\n    1,\n    bad(),\n)  # ddpfix: ignore[DDP901]\n",
        "x = g(  # ddpfix: ignore[DDP901]\n    1,\n    bad(),\n)\n",
        "# ddpfix: ignore[DDP901]\nx = g(\n    1,\n    bad(),\n)\n",
        "x = g(\n    1,\n    # ddpfix: ignore[DDP901]\n    bad(),\n)\n",
        "if bad():  # ddpfix: ignore[DDP901]\n    x = 1\n",
        "# ddpfix: ignore[DDP901]\nif a and \\\n   bad():\n    x = 1\n",
        "with (\n    bad() as x,\n):  # ddpfix: ignore[DDP901]\n    pass\n",
        "# ddpfix: ignore[DDP901]\n@d\n@e\ndef bad_one():\n    pass\n",
        "@d\ndef bad_one():  # ddpfix: ignore[DDP901]\n    pass\n",
        "@d  # ddpfix: ignore[DDP901]\ndef bad_one():\n    pass\n",
        "match bad():  # ddpfix: ignore[DDP901]\n    case 1: pass\n",
        "try:\n    pass\nexcept bad():  # ddpfix: ignore[DDP901]\n    pass\n",
        "bad(); bad()  # ddpfix: ignore[DDP901]\n",
        "# ddpfix: ignore-file[DDP901] generated\nx = 1\nbad()\nbad()\n",
        "x = 1\nbad()\n# ddpfix: ignore-file[DDP901]\n",
        "bad(worse)  # ddpfix: ignore[DDP901, DDP902] both\n",
    ],
)
def test_silenced(source: str) -> None:
    assert found(source) == []
    assert found(source.replace("\n", "\r\n")) == []


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("bad()  # ddpfix: ignore[DDP902]\n", [("DDP901", 1), ("DDP000", 1)]),
        ("# ddpfix: ignore[DDP901]\n\nbad()\n", [("DDP000", 1), ("DDP901", 3)]),
        ("x = 1  # ddpfix: ignore[DDP901]\nbad()\n", [("DDP000", 1), ("DDP901", 2)]),
        ("bad()\n# ddpfix: ignore[DDP901]\nx = 1\n", [("DDP901", 1), ("DDP000", 2)]),
        ("if x:  # ddpfix: ignore[DDP901]\n    y = 1\n    bad()\n", [("DDP000", 1), ("DDP901", 3)]),
        ("def bad_one():\n    x = 1  # ddpfix: ignore[DDP901]\n", [("DDP901", 1), ("DDP000", 2)]),
        ("match x:\n case 1:\n  y = 1  # ddpfix: ignore[DDP901]\n case 2:\n  bad()\n", [("DDP000", 3), ("DDP901", 5)]),
        ("x = '# ddpfix: ignore[DDP901]'; bad()\n", [("DDP901", 1)]),
        ("bad()  # ddpfix: ignore\n", [("DDP901", 1), ("DDP000", 1)]),
        ("bad()  # ddpfix: ignore[]\n", [("DDP901", 1), ("DDP000", 1)]),
    ],
)
def test_not_silenced(source: str, left: list[tuple[str, int]]) -> None:
    assert found(source) == left


def test_an_unused_comment_is_found_and_keeps_its_reason() -> None:
    module = SourceModule("a.py", b"x = 1  # ddpfix: ignore[DDP901] the old one\n")
    (unused,) = find_in(module, Project.of({}), [Calls()])
    assert (unused.code, unused.name) == (suppressions.CODE, suppressions.NAME)
    assert "DDP901 any more: the comment can go" in unused.message
    assert unused.evidence[0].text == "the old one"
    assert unused.span.column == 7 and unused.fix is None and unused.id


def test_one_unused_word_among_used_ones() -> None:
    module = SourceModule("a.py", b"bad()  # ddpfix: ignore[DDP901, DDP902]\n")
    (unused,) = find_in(module, Project.of({}), [Calls(), Names()])
    assert unused.message == "nothing here is found as DDP902 any more: the comment need not name it"


def test_a_code_that_was_not_looked_for_is_not_judged() -> None:
    assert found("x = 1  # ddpfix: ignore[DDP902, ACME777]\n", Calls()) == []


def test_two_comments_for_one_finding() -> None:
    assert found("# ddpfix: ignore[DDP901]\nbad()  # ddpfix: ignore[DDP901]\n") == [("DDP000", 2)]


def test_a_suppressed_finding_is_not_fixed_and_others_keep_their_ids() -> None:
    source = "def f():\n    bad()\n\ndef g():\n    bad(){}\n"
    plain = SourceModule("a.py", source.format("").encode())
    silenced = SourceModule("a.py", source.format("  # ddpfix: ignore[DDP901]").encode())
    first = find_in(plain, Project.of({}), [Calls()])
    assert [f.id for f in find_in(silenced, Project.of({}), [Calls()])] == [first[0].id]
