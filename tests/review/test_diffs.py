"""Rows for the eye: which lines stand beside each other, what is marked, and colours that know of the lines above."""

from __future__ import annotations

from ddpfix.review.diffs import Pair, Side, Source, excerpt, pairs
from ddpfix.review.items import hunks_of


def rows(before: str, after: str, path: str = "a.py") -> tuple[Pair, ...]:
    lines = before.splitlines(keepends=True)
    (hunk,) = hunks_of(path, lines, [(1, len(lines), after)])
    return pairs(hunk, Source(path, before))


def texts(made: tuple[Pair, ...]) -> list[tuple[str | None, str | None]]:
    return [(p.old.text if p.old else None, p.new.text if p.new else None) for p in made]


def marked(side: Side | None) -> list[str]:
    assert side
    return [text for name, text in side.runs if name.endswith("!")]


def test_a_guard_puts_the_moved_line_beside_its_old_place() -> None:
    made = rows("x = 1\nprint(x)\n", "x = 1\nif rank == 0:\n    print(x)\n")
    assert texts(made) == [("x = 1", "x = 1"), (None, "if rank == 0:"), ("print(x)", "    print(x)")]
    assert marked(made[2].old) == [] and marked(made[2].new) == ["    "]


def test_only_the_words_that_differ_are_marked() -> None:
    (made,) = rows('self.log("loss", loss)\n', 'self.log("loss", loss, sync_dist=True)\n')
    assert marked(made.old) == []
    assert "".join(marked(made.new)) == ", sync_dist=True"
    (flag,) = rows("f(find_unused_parameters=True)\n", "f(find_unused_parameters=False)\n")
    assert (marked(flag.old), marked(flag.new)) == (["True"], ["False"])


def test_lines_that_have_nothing_in_common_are_no_pair() -> None:
    assert texts(rows("abc()\n", "import os\n")) == [("abc()", None), (None, "import os")]


def test_the_text_is_the_same_with_its_colours() -> None:
    source = 'def f(x: int) -> str:\n\treturn f"{x}  "  # ä "quoted"\n\n\n@cache\nclass A: pass\n'
    shown = excerpt(Source("a.py", source), 1, 6)
    assert [p.old.text for p in shown if p.old] == source.split("\n")[:6]
    assert ("k", "def") in (shown[0].old or Side(0, ())).runs and ("d", "@cache") in (shown[4].old or Side(0, ())).runs


def test_a_hunk_inside_a_string_is_coloured_as_one() -> None:
    source = 'def f():\n    """Of the rank:\n\n    if rank == 0: import os\n    """\n    import os\n'
    shown = excerpt(Source("a.py", source), 4, 6)
    first, last = shown[0].old, shown[2].old
    assert first and last
    assert {name for name, _ in first.runs} == {"s"}
    assert ("k", "import") in last.runs


def test_a_quote_in_a_comment_or_a_string_begins_no_string() -> None:
    source = "# it's \"\"\" not one\nx = '\"\"\"'\ny = \"it's\"\nimport os\n"
    (row,) = excerpt(Source("a.py", source), 4, 4)
    assert row.old and ("k", "import") in row.old.runs


def test_what_a_screen_does_not_show_is_shown() -> None:
    """Marks that turn the direction of a text let it read otherwise than Python does."""
    (row,) = excerpt(Source("a.py", "x = 1 # \u202e nothing \x07"), 1, 1)
    assert row.old and row.old.text == "x = 1 # \\u202e nothing \\u0007"


def test_yaml_and_long_lines() -> None:
    made = rows("trainer:\n  flag: true\n", "trainer:\n  flag: false\n", "a.yaml")
    assert marked(made[1].new) == ["false"]
    (long,) = excerpt(Source("a.py", "x = '" + "a" * 9000 + "'"), 1, 1)
    assert long.old and len(long.old.text) < 450 and long.old.text.endswith(" …")


def test_line_ends_of_every_kind() -> None:
    shown = excerpt(Source("a.py", "a = 1\r\nb = 2\rc = 3\n"), 1, 3)
    assert [p.old.text for p in shown if p.old] == ["a = 1", "b = 2", "c = 3"]
