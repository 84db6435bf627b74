"""Bars of findings by kind, and where they and the lanes stand in the summary."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from codemods.api.findings import Applicability, Finding, Fix, Span
from codemods.engine.fix_source import with_unsafe
from ddpfix.results import Fixed, Report
from ddpfix.summary import render
from ddpfix.summary.kinds import bars
from tests.summary.made import CLASSIFIER, check_markdown, context, fenced, on_disk
from tests.summary.test_rank_flow import GUARDED, HELPER, READ


def made(code: str, level: str, count: int) -> tuple[Finding, ...]:
    fix = None if level == "display" else Fix(Applicability(level), ())
    one = Finding(code, f"rule-{code}", "a.py", Span(1, 0, 1, 1), "", "m", fix=fix)
    return tuple(replace(one, id=f"{code}{level}{i}") for i in range(count))


def fixed(done: tuple[Finding, ...], left: tuple[Finding, ...] = ()) -> Fixed:
    return Fixed(Report(Path("/x"), (*done, *left), 1, 1, ()), {}, {}, done, left, ())


def test_a_bar_tells_what_became_of_each() -> None:
    shown = bars(fixed(made("DDP203", "safe", 6), (*made("DDP203", "display", 2), *made("DDP202", "unsafe", 3))))
    assert shown == [
        "DDP203 rule-DDP203  ██████░░ 8",
        "DDP202 rule-DDP202  ▒▒▒ 3",
        "",
        "█ fixed  ▒ unsafe, not made  ░ reported",
    ]


def test_the_longest_bar_keeps_to_its_width_and_the_smallest_part_is_seen() -> None:
    shown = bars(fixed(made("DDP203", "safe", 400), (*made("DDP203", "display", 1), *made("DDP202", "unsafe", 1))))
    assert shown[0] == f"DDP203 rule-DDP203  {'█' * 40}░ 401"
    assert shown[1] == "DDP202 rule-DDP202  ▒ 1"


def test_one_kind_needs_no_bar() -> None:
    assert bars(fixed(made("DDP203", "safe", 6), made("DDP203", "display", 2))) == []


def test_the_summary_has_the_bars_where_something_is_left_alone() -> None:
    text = render(on_disk(CLASSIFIER), context())
    check_markdown(text)
    left = text[text.index("## Left alone") :]
    (shown,) = fenced(left, "text")
    assert re.match(r"DDP201 unguarded-hook +█{9} 9\n", shown)
    assert re.search(r"^DDP101 unsynced-metric +██ 2$", shown, re.M)
    assert shown.rstrip().endswith("█ fixed  ░ reported")
    whole = on_disk(CLASSIFIER)
    assert "All findings, by kind" not in render(replace(whole, left=()), context())


def test_the_summary_shows_where_each_rank_goes(tmp_path: Path) -> None:
    (tmp_path / "save.py").write_bytes(GUARDED)
    (tmp_path / "finish.py").write_bytes(HELPER)
    (tmp_path / "average.py").write_bytes(READ)
    text = render(on_disk(tmp_path, with_unsafe), context())
    check_markdown(text)
    assert "Where each rank goes, `save.py:8`:" in text
    assert "Where each rank goes, `average.py:6`:" not in text  # nobody waits there: it is no hang
    assert "■╌╌╌┆   save.py:8  torch.distributed.barrier" in text
    assert "Where each rank goes, `finish.py:11`:" not in text  # it is left alone


def test_pictures_give_way_where_the_summary_gets_long(tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"save{i}.py").write_bytes(GUARDED.replace(b"def save", f"def save_{i}".encode()))
    whole = on_disk(tmp_path, with_unsafe)
    assert render(whole, context()).count("Where each rank goes") == 3
    short = render(whole, context(), limit=3_200)
    assert len(short) <= 3_200 and short.count("Where each rank goes") < 3
