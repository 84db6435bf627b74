"""`ddpfix bot run` as the processes that they are: two at once, and one that is killed on its way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.bot.conftest import FIXED, IDENTITY, TOKEN, World
from tests.bot.github_forge import Fault


def start(world: World, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "ddpfix.cli",
        "bot",
        "run",
        world.slug,
        "--topics",
        "safe",
        "--api-url",
        world.forge.api,
    ]
    command += ["--author", f"{IDENTITY[0]} <{IDENTITY[1]}>"]
    env = {**os.environ, "DDPFIX_TOKEN": TOKEN, "DDPFIX_APP_ID": "", "TMPDIR": str(folder)}
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_processes_at_once_make_one_pull_request(world: World, tmp_path: Path) -> None:
    # both have looked before either pushes
    both_here, arrived = threading.Event(), threading.Semaphore(1)

    def before(verb: str, path: str) -> None:
        if verb == "GET" and path.endswith(f"{world.slug}/pulls") and not arrived.acquire(blocking=False):
            both_here.set()
        if verb == "GET" and path.endswith(f"{world.slug}/pulls"):
            both_here.wait(120)

    world.forge.before = before
    both = [start(world, tmp_path / name) for name in ("one", "two")]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert [p["state"] for p in world.repo.pulls.values()] == ["open"]
    assert world.file("model.py") == FIXED
    assert any(b"safe: created" in out for out, _ in said), said
    assert world.safe().action == "unchanged"


def test_a_run_that_was_killed_leaves_no_secret_and_is_taken_up(world: World, tmp_path: Path) -> None:
    arrived, gone = threading.Event(), threading.Event()

    def before(verb: str, path: str) -> None:
        if verb == "POST" and path.endswith("/pulls") and not gone.is_set():
            arrived.set()
            gone.wait(60)
            world.forge.faults.append(Fault("POST", r"/pulls$", 500))  # it was never asked

    world.forge.before = before
    process = start(world, tmp_path / "run")
    assert arrived.wait(120)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    gone.set()
    (clone,) = (tmp_path / "run").glob("ddpfix-bot-*")
    assert clone.stat().st_mode & 0o077 == 0
    left = [path.read_bytes() for path in clone.rglob("*") if path.is_file()]
    assert left
    assert not any(TOKEN.encode() in data for data in left)
    tip = world.tip()
    assert tip
    assert world.repo.pulls == {}
    assert world.safe().action == "created"
    assert world.tip() == tip
