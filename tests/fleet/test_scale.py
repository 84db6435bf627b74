"""The simulation of a campaign at scale: what the docs say is what it gives, and it keeps the limits it was given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.fleet_scale import ASSUMED, GIT_LOOK, LIMITS, Limits, again, drawn, looked, published, spoken, tables

PAGE = (Path(__file__).parents[2] / "docs" / "fleet-scale.md").read_text(encoding="utf-8")


def test_the_tables_of_the_docs_are_those_of_the_script() -> None:
    (said,) = re.findall(r"<!-- fleet_scale -->\n(.*?)<!-- /fleet_scale -->", PAGE, re.S)
    assert said == tables()


def test_more_workers_help_until_the_forge_does_not_let_them() -> None:
    seconds = drawn(2_000)
    free, bound = LIMITS[0], Limits("bound", 700, 5_000, 500)
    hours = [looked(seconds, workers, free).hours for workers in (1, 2, 8)]
    assert 1.98 < hours[0] / hours[1] < 2.02 and 7.5 < hours[0] / hours[2] <= 8.01
    # 700 requests a minute are a hundred repositories a minute, however many workers there are
    assert looked(seconds, 1_000, bound).hours * 60 >= 2_000 * GIT_LOOK / 700 - 1
    assert looked(seconds, 1_000, bound).busy < 0.2


def test_the_next_run_asks_for_a_hundred_at_once_and_clones_what_changed() -> None:
    found = again(drawn(2_000), 8, LIMITS[0])
    assert (found.api, found.git) == (20, GIT_LOOK * int(2_000 * ASSUMED["changed"]))


def test_waves_wait_for_people_and_keep_the_pace() -> None:
    waves = list(published(1_000, 3.0, LIMITS[0], 50))
    assert [wave.pulls for wave in waves] == [10, 100, 890]
    assert waves[2].ends - waves[2].begins == pytest.approx(890 / 50)
    assert waves[1].begins == waves[0].ends + ASSUMED["between"]
    fast = list(published(1_000, 3.0, LIMITS[0], 10_000))
    assert fast[2].ends - fast[2].begins == pytest.approx(890 / 500), "GitHub takes 500 requests an hour that make content"
    slow = list(published(1_000, 3600.0, LIMITS[0], 10_000))
    assert slow[2].ends - slow[2].begins == pytest.approx(890), "one bot writes one after the other"
    assert [wave.pulls for wave in published(7, 3.0, LIMITS[0], 50)] == [7]


def test_times_as_people_say_them() -> None:
    assert [spoken(hours) for hours in (0.005, 0.5, 3.25, 100)] == ["18 s", "30 min", "3.2 h", "4.2 days"]
