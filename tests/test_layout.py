"""New code takes the layout of its place: arguments, separators, comments, steps of indentation."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import AddComment, DropKeyword, SetKeyword
from codemods.rewriting.runs import Steps, indent_of, newline_of, whole_lines
from tests.places import PATH, call, module_of, written


def added(source: str, *, name: str = "s", value: str = "1", text: str = "f(") -> str:
    module = module_of(source)
    return written(module, SetKeyword(PATH, call(module, text), name, value))


def dropped(source: str, name: str = "s", text: str = "f(") -> str:
    module = module_of(source)
    return written(module, DropKeyword(PATH, call(module, text), name))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(s=1)\n"),
        ("f( )\n", "f( s=1)\n"),
        ("f(a)\n", "f(a, s=1)\n"),
        ("f(a,)\n", "f(a, s=1,)\n"),
        ("f(a, b,)\n", "f(a, b, s=1,)\n"),
        ("f(a,b)\n", "f(a,b, s=1)\n"),
        ("f( a, b )\n", "f( a, b, s=1 )\n"),
        ("f(a, k = 2)\n", "f(a, k = 2, s = 1)\n"),
        ("f(*a)\n", "f(*a, s=1)\n"),
        ("f(a, **k)\n", "f(a, **k, s=1)\n"),
        ("f(*a, **k)\n", "f(*a, **k, s=1)\n"),
        ("f(x for x in y)\n", "f((x for x in y), s=1)\n"),
        ("f((x for x in y))\n", "f((x for x in y), s=1)\n"),
        ("f([x for x in y])\n", "f([x for x in y], s=1)\n"),
        ("f(x := 1)\n", "f(x := 1, s=1)\n"),
        ("f(lambda: 1)\n", "f(lambda: 1, s=1)\n"),
        ("f(a)(b)\n", "f(a)(b, s=1)\n"),
        ("f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b,\n    s=1,\n)\n"),
        ("f(\n    a,\n    b\n)\n", "f(\n    a,\n    b,\n    s=1\n)\n"),
        ("f(\n    a,\n)\n", "f(\n    a,\n    s=1,\n)\n"),
        ("f(\n    a\n)\n", "f(\n    a,\n    s=1\n)\n"),
        ("f(\n    a, b\n)\n", "f(\n    a, b, s=1\n)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b,\n  s=1)\n"),
        ("f(a, b,\n  c)\n", "f(a, b,\n  c,\n  s=1)\n"),
        ("f(a,\n  b, c)\n", "f(a,\n  b, c, s=1)\n"),
        ("f(\n    a)\n", "f(\n    a,\n    s=1)\n"),
        ("f(\n    a,\n    b)\n", "f(\n    a,\n    b,\n    s=1)\n"),
        ("f(\n  a,\n  b,\n  )\n", "f(\n  a,\n  b,\n  s=1,\n  )\n"),
        ("f(\n)\n", "f(\ns=1)\n"),
        ("f(\n    a,  # one\n    b,  # two\n)\n", "f(\n    a,  # one\n    b,  # two\n    s=1,\n)\n"),
        ("f(\n    a,  # one\n    b  # two\n)\n", "f(\n    a,  # one\n    b,  # two\n    s=1\n)\n"),
        ("f(\n    a, b  # both\n)\n", "f(\n    a, b,  # both\n    s=1\n)\n"),
        ("f(\n    a,\n    # k=3,\n)\n", "f(\n    a,\n    # k=3,\n    s=1,\n)\n"),
        ("f(\n    # head\n    a,\n)\n", "f(\n    # head\n    a,\n    s=1,\n)\n"),
        ("f(  # open\n    a,\n    b,\n)\n", "f(  # open\n    a,\n    b,\n    s=1,\n)\n"),
        ("f(\n\n    a,\n\n    b,\n\n)\n", "f(\n\n    a,\n\n    b,\n\n    s=1,\n)\n"),
        ('f("""\n  text\n""", a)\n', 'f("""\n  text\n""", a, s=1)\n'),
        ("f(a, \\\n  b)\n", "f(a, \\\n  b, \\\n  s=1)\n"),
        ("x = [\n    f(\n        a,\n    ),\n]\n", "x = [\n    f(\n        a,\n        s=1,\n    ),\n]\n"),
    ],
)
def test_a_keyword_is_laid_out_as_the_others(before: str, after: str) -> None:
    assert added(before) == after
    nested = "if x:\n" + textwrap.indent(before, "\t")
    if '"""' not in before:
        assert added(nested) == "if x:\n" + textwrap.indent(after, "\t")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(s=1)\n", "f()\n"),
        ("f(a, s=1)\n", "f(a)\n"),
        ("f(s=1, b=2)\n", "f(b=2)\n"),
        ("f(a, s=1, b=2)\n", "f(a, b=2)\n"),
        ("f(a, s=1,)\n", "f(a,)\n"),
        ("f(a, s=1, **k)\n", "f(a, **k)\n"),
        ("f( s=1 )\n", "f()\n"),
        ("f(\n    s=1,\n)\n", "f()\n"),
        ("f(\n    # why s\n    s=1,\n)\n", "f()\n"),
        ("f(\n    a,\n    s=1,\n)\n", "f(\n    a,\n)\n"),
        ("f(\n    a,\n    s=1\n)\n", "f(\n    a\n)\n"),
        ("f(\n    s=1,\n    b=2,\n)\n", "f(\n    b=2,\n)\n"),
        ("f(a,\n  s=1)\n", "f(a)\n"),
        ("f(\n    a,  # one\n    s=1,  # gone\n    b=b,  # two\n)\n", "f(\n    a,  # one\n    b=b,  # two\n)\n"),
        ("f(\n    a,  # one\n    s=1  # gone\n)\n", "f(\n    a  # one\n)\n"),
        ("f(\n    a,\n    # why s\n    s=1,\n    b=b,\n)\n", "f(\n    a,\n    b=b,\n)\n"),
        ("f(\n    a,\n    # why s\n    s=1,\n)\n", "f(\n    a,\n)\n"),
        ("f(\n    a,\n    s=1,\n    # k=3,\n)\n", "f(\n    a,\n    # k=3,\n)\n"),
        ("f(\n    # about a\n\n    # why s\n    s=1,\n    b=b,\n)\n", "f(\n    # about a\n\n    b=b,\n)\n"),
        ("f(a,  # one\n  s=1)\n", "f(a  # one\n  )\n"),
    ],
)
def test_a_keyword_goes_with_its_comments_and_no_others(before: str, after: str) -> None:
    assert dropped(before) == after


def test_two_keywords_of_one_call_go() -> None:
    module = module_of("f(\n    a,  # one\n    s=1,\n    t=2,\n)\n")
    got = written(module, DropKeyword(PATH, call(module, "f("), "t"), DropKeyword(PATH, call(module, "f("), "s"))
    assert got == "f(\n    a,  # one\n)\n"


def test_a_dropped_and_an_added_keyword() -> None:
    module = module_of("f(\n    a,\n    s=1,  # old\n)\n")
    got = written(module, DropKeyword(PATH, call(module, "f("), "s"), SetKeyword(PATH, call(module, "f("), "t", "2"))
    assert got == "f(\n    a,\n    t=2,\n)\n"


def test_comment_lines_above_an_argument_stand_under_those_there() -> None:
    module = module_of("def g():\n  f(\n    a,\n\n    # old\n    s=1,\n  )\n")
    got = written(module, AddComment(PATH, call(module, "f("), ("new", "newer"), "s"))
    assert got == "def g():\n  f(\n    a,\n\n    # old\n    # new\n    # newer\n    s=1,\n  )\n"


def test_a_comment_for_a_keyword_that_is_set_in_the_same_go() -> None:
    module = module_of("f(\n    a,\n)\n")
    at = call(module, "f(")
    got = written(module, SetKeyword(PATH, at, "s", "1"), AddComment(PATH, at, ("why",), "s"))
    assert got == "f(\n    a,\n    # why\n    s=1,\n)\n"


# Lines


def test_the_step_is_that_of_the_nearest_block() -> None:
    steps = Steps(module_of("def f():\n  a()\n\n\ndef g():\n\tb()\n\n\nclass A:\n        x = 1\n"))
    assert [steps.at(n) for n in (1, 2, 5, 6, 10, 99)] == ["  ", "  ", "\t", "\t", " " * 8, " " * 8]


def test_the_step_of_a_file_without_blocks_and_of_handlers_and_cases() -> None:
    assert Steps(module_of("x = 1\nif x: y = 2\n")).at(1) == "    "
    assert Steps(module_of("try: a\nexcept E:\n   b\n")).at(3) == "   "


def test_the_indentation_of_a_text_ends_at_any_line_end() -> None:
    assert [indent_of(t) for t in ("  a\n", "\t a", "   \n", "  \r    a", "")] == ["  ", "\t ", "   ", "  ", ""]


def test_the_line_end_is_the_nearest() -> None:
    lines = ["a\r\n", "b\n", "c\r", "d"]
    assert [newline_of(lines, n) for n in (1, 2, 3, 4)] == ["\r\n", "\n", "\r", "\r"]
    assert newline_of(["a"], 1) == "\n"
    assert newline_of(["a", "b\r\n"], 1) == "\r\n"


def test_statements_that_share_lines_count_as_one() -> None:
    source = "a; b\nif x: c; d\nelse:\n    e\n    f; \\\n    g\nfor i in j: \\\n  k\n"
    module = module_of(source)
    got = sorted((w.top, w.bottom, [module.text_of(s).split("\n")[0] for s in w.statements]) for w in whole_lines(module))
    assert got == [
        (1, 1, ["a", "b"]),
        (2, 6, ["if x: c; d"]),
        (4, 4, ["e"]),
        (5, 6, ["f", "g"]),
        (7, 8, ["for i in j: \\"]),
    ]


def test_a_comment_that_ends_in_a_backslash_joins_nothing() -> None:
    module = module_of("if x:  # so: \\\n    a\n# and: \\\nb\n")
    assert (4, 4) in {(w.top, w.bottom) for w in whole_lines(module)}
