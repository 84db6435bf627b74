"""Shares of a campaign in files, for arrays of jobs: together they come to what one driver comes to, whatever ends a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.fleet.shards import BadShard, parse
from tests.fleet.conftest import MODULE, Fleet


def test_shares_together_are_the_whole(fleet: Fleet) -> None:
    names = [f"r{number}" for number in range(5)]
    for name in names:
        fleet.add(name, {"train.py": MODULE})
    bad = fleet.add_hostile()
    fleet.plan(*names, *bad)
    said = [fleet("run", "--shard", f"{index}/2") for index in range(2)]
    assert [done.returncode for done in said] == [0, 0]
    assert all(done.stdout for done in said), "a share without repositories shows nothing"
    files = sorted(path.name for path in fleet.folder.glob("*.jsonl"))
    assert files == ["ddpfix-fleet-0-of-2.jsonl", "ddpfix-fleet-1-of-2.jsonl"]
    assert fleet.status()["states"] == {"waiting": 10}
    assert fleet("merge", *files).returncode == 0
    assert fleet.status()["states"] == {"done": 5, "failed": 5} and fleet.causes() == bad
    assert fleet.status()["codes"][0]["repositories"] == 5


def test_a_share_goes_on_where_it_was_cut_off(fleet: Fleet) -> None:
    names = [f"r{number}" for number in range(3)]
    for name in names:
        fleet.add(name, {"train.py": MODULE})
    fleet.plan(*names)
    first = fleet("run", "--shard", "0/1").stdout.splitlines()
    file = fleet.folder / "ddpfix-fleet-0-of-1.jsonl"
    file.write_bytes(file.read_bytes()[:-20])  # as a killed job leaves its last line
    second = fleet("run", "--shard", "0/1").stdout.splitlines()
    assert len(first) == 3 and len(second) == 1 and '"repository"' in second[0]
    fleet("merge", file.name)
    assert fleet.status()["states"] == {"done": 3}


@pytest.mark.parametrize(
    ("word", "why"),
    [("2/2", "from 0 to 1"), ("1", "INDEX/COUNT"), ("-1/2", "INDEX/COUNT"), ("²/3", "INDEX/COUNT"), ("0/0", "no share")],
)
def test_shares_that_cannot_be(word: str, why: str) -> None:
    with pytest.raises(BadShard, match=why):
        parse(word)


def test_a_file_that_holds_no_results_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    fleet.add("one", {"train.py": MODULE})
    fleet.plan("one")
    for text in ('{"url": "x"}\n', '{"url": "x", "findings": [[1]]}\n'):
        (fleet.folder / "bad.jsonl").write_text(text)
        done = fleet("merge", "bad.jsonl")
        assert done.returncode == 2 and "holds no result" in done.stderr
    assert fleet("merge", "missing.jsonl").returncode == 2
    assert fleet.status()["states"] == {"waiting": 1}
