"""`ddpfix fleet run` as the process that it is: hostile repositories cost only themselves, and a killed driver loses none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fleet.conftest import MODULE, Fleet
from tests.gitrepos import sh


def rows(output: str) -> dict[str, dict[str, object]]:
    return {Path(row["repository"]).name: row for row in map(json.loads, output.splitlines())}


def test_every_repository_has_a_result_and_hostile_ones_their_cause(fleet: Fleet) -> None:
    for name in ("first", "last"):
        fleet.add(name, {"train.py": MODULE})
    fleet.add("empty")
    bad = fleet.add_hostile()
    fleet.plan("first", *bad, "empty", "last", "first")
    done = fleet("run")
    assert (done.returncode, done.stderr) == (1, "")
    assert {name: row["cause"] for name, row in rows(done.stdout).items()} == {**bad, "first": "", "empty": "", "last": ""}
    assert [rows(done.stdout)[name]["safe"] for name in ("first", "last", "empty")] == [1, 1, 0]
    status = fleet.status()
    assert status["states"] == {"done": 3, "failed": 5} and status["empty"] == 1 and fleet.causes() == bad
    assert status["codes"] == [{"code": "DDP203", "level": "safe", "findings": 2, "repositories": 2}]
    # only what is asked for again is done again
    assert fleet("run").stdout == ""
    assert fleet("retry", "--cause", "settings").stdout == "1 repositories wait again\n"
    (fleet.folder / "settings" / "ddpfix.toml").unlink()
    sh(fleet.folder / "settings", "commit", "-qam", "repaired")
    assert rows(fleet("run").stdout)["settings"]["safe"] == 1


LOGGED = (
    "import lightning.pytorch as pl\n\n\nclass M(pl.LightningModule):\n    def validation_step(self, batch, i):\n"
    "        self.log('val/loss', self(batch))\n"
)


def test_a_name_that_is_no_utf_8_ends_no_campaign(fleet: Fleet) -> None:
    odd = fleet.add("odd", {os.fsdecode(b"bad\xff.py"): LOGGED, "requirements.txt": "lightning==2.5.0\n"})
    fleet.add("good", {"train.py": MODULE})
    fleet.plan("odd", "good")
    done = fleet("run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert {name: row["safe"] for name, row in rows(done.stdout).items()} == {"odd": 1, "good": 1}
    assert fleet.status()["states"] == {"done": 2} and sh(odd, "status", "--porcelain") == ""
    # the same by way of a share's file
    assert fleet("run", "--again", "--shard", "0/1").returncode == 0
    fleet.plan("odd", "good", options=("--ledger", "other.sqlite"))
    assert fleet("run", "--ledger", "other.sqlite", "--shard", "0/1", "--results", "all.jsonl").returncode == 0
    merged = fleet("merge", "all.jsonl", "--ledger", "other.sqlite")
    assert merged.returncode == 0, merged.stderr
    assert fleet("report").stdout == fleet("report", "--ledger", "other.sqlite").stdout


def with_environment(value: str) -> list[Path]:
    """Processes that were started with that value in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if value.encode() in place.read_bytes():
                found.append(place.parent)
    return found


def test_ctrl_c_ends_what_is_at_work_at_once(fleet: Fleet) -> None:
    fleet.add("slow", {f"train{n}.py": "".join(MODULE.replace("main", f"main{n}_{k}") for k in range(60)) for n in range(400)})
    fleet.plan("slow")
    kept = fleet.folder / "temporary"
    kept.mkdir()
    env = {**os.environ, "TMPDIR": str(kept)}
    with subprocess.Popen(fleet.command("run"), cwd=fleet.folder, stderr=subprocess.PIPE, text=True, env=env) as driver:
        until = time.monotonic() + 60
        while not list(kept.glob("ddpfix-bot-*/clone.git/objects")) and time.monotonic() < until:
            time.sleep(0.05)
        assert with_environment(str(kept))
        driver.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = driver.communicate(timeout=100)[1]
    assert time.monotonic() - began < 5 and driver.returncode == 130
    assert "interrupted" in said and "Traceback" not in said
    assert list(kept.iterdir()) == []
    assert not with_environment(str(kept))
    assert fleet.status()["states"] == {"running": 1}  # the next run goes on with it


def test_what_did_not_change_is_not_cloned_again(fleet: Fleet) -> None:
    fleet.add("same", {"train.py": MODULE})
    fleet.add("other", {"train.py": MODULE})
    fleet.plan("same", "other")
    fleet("run")
    (fleet.folder / "other" / "train.py").write_text(MODULE + MODULE.replace("main", "again"))
    sh(fleet.folder / "other", "commit", "-qam", "more")
    second = rows(fleet("run", "--again").stdout)
    assert {name: (row["unchanged"], row["safe"]) for name, row in second.items()} == {"same": (True, 0), "other": (False, 2)}
    assert fleet.status()["codes"][0]["findings"] == 3  # the known result of the other one stands
    # another question is another answer
    fleet.plan("same", options=("--select", "DDP304"))
    assert {row["unchanged"] for row in rows(fleet("run", "--again").stdout).values()} == {False}
    assert "DDP203" not in {row["code"] for row in fleet.status()["codes"]}


def test_a_repository_that_takes_for_ever_costs_itself(fleet: Fleet) -> None:
    fleet.add("slow", {f"train{n}.py": "".join(MODULE.replace("main", f"main{n}_{k}") for k in range(60)) for n in range(400)})
    fleet.add("good", {"train.py": MODULE})
    fleet.plan("slow", "good")
    found = rows(fleet("run", "--seconds", "6", "--workers", "1").stdout)
    assert {name: row["cause"] for name, row in found.items()} == {"slow": "timeout", "good": ""}


@pytest.mark.parametrize("kills", [2])
def test_a_killed_driver_loses_no_repository(fleet: Fleet, kills: int) -> None:
    names = [f"r{number}" for number in range(6)]
    for name in names:
        fleet.add(name, {"train.py": MODULE})
    fleet.plan(*names)
    for _ in range(kills):
        with subprocess.Popen(fleet.command("run"), cwd=fleet.folder, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout and driver.stdout.readline()
            os.kill(driver.pid, signal.SIGKILL)
    assert fleet.status()["states"] != {"done": 6}  # some were at work, or not begun
    done = fleet("run")
    assert done.returncode == 0 and fleet.status()["states"] == {"done": 6}
    assert fleet.status()["codes"] == [{"code": "DDP203", "level": "safe", "findings": 6, "repositories": 6}]


def test_a_pause_keeps_what_is_at_work_and_a_second_driver_is_refused(fleet: Fleet) -> None:
    names = [f"r{number}" for number in range(6)]
    for name in names:
        fleet.add(name, {"train.py": MODULE})
    fleet.plan(*names)
    with subprocess.Popen(fleet.command("run", "--workers", "1"), cwd=fleet.folder, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout and driver.stdout.readline()
        second = fleet("run")
        assert second.returncode == 2 and "in use" in second.stderr
        assert fleet("pause").returncode == 0
        began = time.monotonic()
        driver.communicate(timeout=60)
        assert time.monotonic() - began < 30
    status = fleet.status()
    assert status["paused"] and status["states"]["done"] + status["states"]["waiting"] == 6 and "running" not in status["states"]
    assert fleet("run").returncode == 0 and fleet.status()["states"] == {"done": 6}


def test_a_scheduler_that_does_not_answer_is_told(fleet: Fleet) -> None:
    fleet.add("good", {"train.py": MODULE})
    fleet.plan("good")
    nobody = fleet("run", "--engine", "dask", "--scheduler", "nonsense://1")
    assert nobody.returncode == 2 and "nonsense://1" in nobody.stderr
