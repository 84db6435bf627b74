"""A campaign of the soak as processes, and how it is killed: workers, then the driver, whenever it happens to be."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAULTY = Path(__file__).parent / "faulty"
Row = tuple[str, str, str, int]  # state, cause, head, findings


@dataclass(frozen=True)
class Run:
    """A folder with a ledger. options: of `fleet run`."""

    folder: Path
    options: tuple[str, ...]
    environment: Mapping[str, str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=self.env(), capture_output=True, text=True, check=False
        )

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "ddpfix.cli", "fleet", *arguments]

    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{FAULTY}:{ROOT}", "CI": "1", **self.environment}

    def started(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(self.command(*arguments), cwd=self.folder, env=self.env(), stdout=log, stderr=log)

    def rows(self) -> dict[str, Row]:
        """What the ledger holds, by the repository's own name."""
        with sqlite3.connect(self.folder / "ddpfix-fleet.sqlite") as tables:
            found = tables.execute(
                "SELECT name, state, cause, head, (SELECT count(*) FROM finding WHERE repository = number) FROM repository"
            ).fetchall()
        return {Path(name).name.removesuffix(".git"): (state, cause, head, count) for name, state, cause, head, count in found}

    def ready(self) -> int:
        """Repositories with a result so far."""
        return sum(state in ("done", "failed") for state, *_ in self.rows().values())

    def pulls(self) -> int:
        with sqlite3.connect(self.folder / "ddpfix-fleet.sqlite") as tables:
            return int(tables.execute("SELECT count(*) FROM pull").fetchone()[0])


def workers_of(driver: int) -> list[int]:
    """The processes of a LocalCluster that work: Dask starts them by multiprocessing's own spawn."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and b"spawn_main" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def wait(until: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 600) -> bool:
    """Whether it came to that before the process ended."""
    end = time.monotonic() + seconds
    while not until() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return until()


def killed_run(run: Run, total: int, kills: int, drawn: random.Random) -> tuple[int, int]:
    """Run a campaign on a cluster to its end, a worker and then the driver killed -9 so many times: how many of each were."""
    workers = drivers = 0
    for number in range(kills):
        driver = run.started("run", *run.options)
        goal = max(run.ready() + 1, (number + 1) * total // (kills + 2))
        if wait(lambda goal=goal: run.ready() >= goal, driver):  # type: ignore[misc]
            time.sleep(drawn.random() * 2)
            if (found := workers_of(driver.pid)) and driver.poll() is None:
                os.kill(drawn.choice(found), signal.SIGKILL)
                workers += 1
            wait(lambda goal=goal: run.ready() > goal, driver, 120)  # type: ignore[misc]
            time.sleep(drawn.random() * 2)
        if driver.poll() is None:
            driver.kill()
            drivers += 1
        driver.wait()
    last = run.started("run", *run.options)
    assert last.wait() in (0, 1), (run.folder / "log").read_text()[-3000:]
    return workers, drivers


def killed_publish(run: Run, options: tuple[str, ...], wave: int, kills: int, drawn: random.Random) -> int:
    """Publish a wave to its end, the publisher killed -9 so many times: how many kills there were."""
    done = 0
    for number in range(kills):
        publisher = run.started("publish", *options)
        goal = (number + 1) * wave // (kills + 2)
        wait(lambda goal=goal: run.pulls() >= goal, publisher)  # type: ignore[misc]
        time.sleep(drawn.random() * 3)
        if publisher.poll() is None:
            publisher.kill()
            done += 1
        publisher.wait()
    while run.pulls() < wave:
        before = run.pulls()
        assert run.started("publish", *options).wait() == 0, (run.folder / "log").read_text()[-3000:]
        assert run.pulls() > before, "a publish that publishes nothing"
    return done
