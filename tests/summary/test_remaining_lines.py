"""The summary says which lines of a changed function every rank goes on printing."""

from __future__ import annotations

from codemods.api.findings import Evidence, Finding, Span
from ddpfix.summary.remaining_lines import remaining

RANK = "it names the rank"
SHARE = "it shows what each rank has for itself"


def finding(*places: tuple[str, int, str], path: str = "a.py") -> Finding:
    left = tuple(Evidence("static", why, at, line) for at, line, why in places)
    return Finding("DDP203", "unguarded-print", path, Span(1, 0, 1, 5), "main", "every rank prints", remaining=left)


def test_one_line_a_file_with_each_place_once() -> None:
    places = (("a.py", 8, RANK), ("a.py", 5, RANK), ("a.py", 7, SHARE))
    text = remaining([finding(*places), finding(*places), finding(("b.py", 2, SHARE), path="b.py")])
    assert text == [
        f"Left on every rank in `a.py`: lines 5, 8 ({RANK}), line 7 ({SHARE}).",
        f"Left on every rank in `b.py`: line 2 ({SHARE}).",
    ]


def test_nothing_where_nothing_is_left() -> None:
    assert remaining([finding()]) == []


def test_it_stays_short() -> None:
    many = [finding(*((f"f{n}.py", line, f"reason {line}") for line in range(1, 7))) for n in range(9)]
    text = remaining(many)
    assert len(text) == 7 and text[-1] == "And in 3 more files." and text[0].endswith("line 3 (reason 3), and lines 4-6.")


def test_places_in_a_notebook() -> None:
    place = Evidence("static", RANK, "n.ipynb", 9, cell=2, cell_line=3)
    found = Finding("DDP203", "unguarded-print", "n.ipynb", Span(1, 0, 1, 5), "", "x", remaining=(place,))
    assert remaining([found])[0] == f"Left on every rank in `n.ipynb`: cell 2:line 3 ({RANK})."
