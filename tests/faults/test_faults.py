"""A kill, a full disk or a closed folder at the numbered points of `apply`, `undo`, decisions and cache: nothing is lost.

A sample of the points; `make faults` (`python -m tests.faults.every`) takes all of them and writes docs/reliability.md.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.faults.points import KINDS, SCENARIOS, Lab, Scenario, lab, strike, survey
from tests.gitrepos import own_settings

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the faults are a C library that Linux loads into git"
)
SAMPLE = {"apply": 4, "undo": 3}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("faults")
    with pytest.MonkeyPatch.context() as patch:
        own_settings(patch, folder / "home")
        with lab(folder) as made:
            yield made


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_whatever_stops_it_the_way_back_stays(faults: Lab, scenario: Scenario) -> None:
    points = survey(faults, scenario)
    kinds = list(KINDS)
    most = SAMPLE.get(scenario.name, 1)
    # the writes of the work tree and of the journal first, then points all over the run, each with another kind of fault
    chosen = [n for n, point in enumerate(points, 1) if "/.git/" not in point and point.startswith("write") and "/repo/" in point]
    chosen += range(1 + len(points) // (2 * most), len(points), max(1, len(points) // most))
    for turn, at in enumerate(chosen[: most + 1]):
        kind = kinds[turn % len(kinds)]
        assert strike(faults, scenario, at, kind), f"{kind} at point {at}: {points[at - 1]}"


def test_the_points_of_an_apply_are_its_writes_renames_refs_and_programs(faults: Lab) -> None:
    points = survey(faults, SCENARIOS[0])
    folder = str(faults.sandbox / "repo")
    for wanted in (
        f"write {folder}/a.py",
        f"rename {folder}/.git/index",
        f"rename {folder}/.git/HEAD",
        f"rename {folder}/.git/refs/heads/ddpfix/fixes",
        "exec /",
    ):
        assert any(point.startswith(wanted) for point in points), wanted
    assert any(point.startswith(f"rename {folder}/.git/ddpfix/") and point.endswith(".json") for point in points)
