"""The soak of the fleet in small: a cluster that is killed comes to what is expected, and the engine costs next to nothing.

`make fleet-soak` does the same with 300 repositories, and runs what is marked as a soak here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ddpfix.fleet.drive import _result
from ddpfix.fleet.ledger import Campaign, Ledger
from ddpfix.fleet.repositories import Target
from ddpfix.fleet.result import Result
from tests.bot.conftest import FILES, IDENTITY, KEY, TOKEN, clock, forge
from tests.bot.github_forge import GitHubForge
from tests.fleet.soak_numbers import through
from tests.fleet.soak_runs import Run, killed_publish, killed_run
from tests.fleet.soak_trees import CAUSES, fill

__all__ = ["clock", "forge"]
NAMES = ["made-0", "crash-1", "made-2", "hang-3", "corrupt-4", "memory-5", "made-6"]


@pytest.fixture(scope="module")
def run(forge: GitHubForge, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A planned campaign over repositories of several kinds on the forge, on a cluster."""
    folder = tmp_path_factory.mktemp("soak")
    for name in NAMES:
        fill(forge, f"soak/{name}", name.partition("-")[0], FILES)
        forge.know(f"soak/{name}")
    (folder / "repos.txt").write_text("".join(f"soak/{name}\n" for name in NAMES))
    environment = {
        "DDPFIX_TOKEN": TOKEN, "DDPFIX_READ_TOKEN_127_0_0_1": TOKEN, "DDPFIX_MARKS_KEY": KEY, "HOME": str(folder),
        "DDPFIX_STATE": str(folder / "state"), "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    made = Run(folder, ("--engine", "dask", "--workers", "2", "--seconds", "12", "--memory", "1024"), environment)
    planned = made("plan", "repos.txt", "--server", forge.url)
    assert planned.returncode == 0, planned.stderr
    return made


@pytest.mark.soak
def test_a_cluster_loses_nothing_when_a_worker_and_its_driver_are_killed(run: Run) -> None:
    assert killed_run(run, len(NAMES), 1, random.Random(1)) == (1, 1)
    found = run.rows()
    assert {name: cause for name, (_, cause, _, _) in found.items()} == {
        name: CAUSES.get(name.partition("-")[0], "") for name in NAMES
    }
    assert {count for _, cause, _, count in found.values() if not cause} == {1}


@pytest.mark.soak
def test_a_publisher_that_is_killed_delivers_nothing_twice(run: Run, forge: GitHubForge) -> None:
    who = f"{IDENTITY[0]} <{IDENTITY[1]}>"
    killed_publish(run, ("--waves", "3", "--api-url", forge.api, "--author", who), 3, 1, random.Random(2))
    opened = {name: len(forge.repos[f"soak/{name}"].pulls) for name in NAMES}
    assert opened == {name: int(name.startswith("made")) for name in NAMES} and run.pulls() == 3


def test_the_engine_takes_far_less_than_fifty_milliseconds_a_repository(tmp_path: Path) -> None:
    wall, cpu = through(tmp_path / "fleet.sqlite", "local", 300, 2)
    assert cpu / 300 < 0.010 and wall / 300 < 0.050


def test_the_end_of_a_driver_is_no_failure_of_what_it_had_in_hand(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "fleet.sqlite", new=True)
    ledger.plan(Campaign("c"), [Target("a/b", "https://h/a/b.git")])
    for _ in range(3):
        ledger.resume()
        (taken,) = ledger.take(1, 0.0)
        assert taken.attempt == 1


def test_what_a_worker_with_other_rules_answers_is_no_result() -> None:
    future: Future[Mapping[str, Any]] = Future()
    future.set_result(Result(head="1", rules="theirs", seconds=2.0).plain())
    result = _result(future, "ours")
    assert (result.cause, result.head) == ("version", "") and "theirs" in result.error
