"""One finding as text: nothing is lost in a narrow terminal, nothing of a file is obeyed by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.api.findings import Applicability, Evidence, Finding, Fix, Span
from ddpfix.decisions import Decision
from ddpfix.review.editing import NotTaken, as_text, from_text
from ddpfix.review.items import Replaced, ReviewItem, hunks_of
from ddpfix.review.screen import Look, cells, item_screen, printable
from tests.review.terminals import plain

OLD = '        self.log("val/loss", loss, prog_bar=True, batch_size=self.hparams.batch_size)\n'
NEW = OLD.replace(")\n", ", sync_dist=True)\n")


def item(old: str = OLD, new: str = NEW, *, message: str = "it is rank 0's own number", path: str = "a.py") -> ReviewItem:
    lines = ["x = 1\n", old, "y = 2\n"]
    hunks = tuple(hunks_of(path, lines, [(2, 2, new)]))
    evidence = (Evidence("static", "every rank runs it", path, 2),)
    fix = Fix(Applicability.UNSAFE, ())
    at, symbol = Span(2, 8, 2, 20), "M.validation_step"
    finding = Finding("DDP101", "unsynced-metric", path, at, symbol, message, evidence, "a barrier", fix, "id")
    return ReviewItem(finding, True, "", ("b",), (Replaced(path, 2, old, new),), hunks)


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize("color", [True, False])
def test_every_line_fits_and_every_character_is_there(width: int, color: bool) -> None:
    screen = item_screen(item(), Look(width, color), place="3/24", mates=["b.py:7"], decision=Decision("reject", "so"))
    assert ("\x1b" in screen) is color
    lines = plain(screen).split("\n")
    assert max(cells(line) for line in lines) <= width
    assert "".join(line[3:] for line in lines if line[2:3] == "+") == NEW.rstrip("\n")
    assert "".join(line[3:] for line in lines if line[2:3] == "-") == OLD.rstrip("\n")
    words = " ".join(plain(screen).split())
    for said in ("rank 0's own", "Assumes: a barrier", "Evidence: every rank runs it (a.py:2)", "Together with: b.py:7", "so"):
        assert said in words


def test_what_differs_in_a_line_is_marked() -> None:
    assert "\x1b[32;7m, sync_dist=True\x1b[m" in item_screen(item(), Look(200, True))


def test_wide_characters_take_two_columns() -> None:
    screen = item_screen(item("x = 1\n", f"x = '{'測' * 60}'\n"), Look(60, False))
    assert max(cells(line) for line in screen.split("\n")) <= 60
    assert screen.count("測") == 60


def test_escape_sequences_of_a_file_reach_no_terminal() -> None:
    hostile = "print('\x1b]0;owned\x07\x1b[2J\x9b31m')\n"
    bad = item("x\n", hostile, message="\x1b[31mred\r\nnext", path="a\x1b[2J.py")
    screen = item_screen(bad, Look(80, False), mates=["\x1b[1m"], decision=Decision("reject", "\x1b[5m"))
    assert not [c for c in screen if not c.isprintable() and c != "\n"]
    assert printable("a\tb") == "a   b"


def test_ascii_terminals() -> None:
    assert item_screen(item(), Look(60, False, ascii=True)).isascii()


# The fix as text for an editor


def test_unchanged_or_emptied_text_is_no_edit() -> None:
    assert from_text(item(), as_text(item())) == ()
    assert from_text(item(), "") == ()


def test_edited_text_is_the_lines_with_the_files_own_ends() -> None:
    crlf = item(OLD.replace("\n", "\r\n"), NEW.replace("\n", "\r\n"))
    text = as_text(crlf)
    assert "\r" not in text and NEW in text
    (row,) = from_text(crlf, text.replace("sync_dist=True", "sync_dist=False") + "        # more\n")
    assert (row.path, row.line, row.before) == ("a.py", 2, OLD.replace("\n", "\r\n"))
    assert row.after == NEW.replace("sync_dist=True", "sync_dist=False").replace("\n", "\r\n") + "        # more\r\n"


def test_a_last_line_without_an_end_stays_one() -> None:
    (row,) = from_text(item("x", "y"), as_text(item("x", "y")).replace("y\n", "z\n"))
    assert row.after == "z"


def test_an_edit_is_offered_again() -> None:
    rows = from_text(item(), as_text(item()).replace("sync_dist", "rank_zero_only"))
    assert "rank_zero_only=True" in as_text(item(), rows) and "sync_dist" not in as_text(item(), rows)


@pytest.mark.parametrize("change", [("#@ 1", "#@ 2"), ("#@ 1", "#@ one"), ("#@ 1 a.py 2-2\n", "#@ 1 a.py 2-2\nx\n#@ 1\n")])
def test_broken_marks_are_named(change: tuple[str, str]) -> None:
    with pytest.raises(NotTaken, match="is not one of the marks that were there"):
        from_text(item(), as_text(item()).replace(*change))


def test_the_text_says_where_its_lines_go(tmp_path: Path) -> None:
    head, *rest = as_text(item()).splitlines()
    assert head == "# DDP101 unsynced-metric: a.py:2"
    assert "#@ 1 a.py 2-2" in rest and all(line.startswith("#") for line in rest[:-1])
