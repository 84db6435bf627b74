"""The process that forks ranks: what the tests are told of how each of them ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpfix.prove.ranks import Launch
from tests.proofs import warm_command
from tests.proofs.warm import Warm

# A process that says its number, and ends as it is told by its first argument.
PROGRAM = """\
import os, signal, sys

def asked(number, frame):
    print("asked", flush=True)
    sys.exit(7)

signal.signal(signal.SIGTERM, asked)
print(os.getpid(), flush=True)
if sys.argv[1] == "aborts":
    os.kill(os.getpid(), signal.SIGABRT)
if sys.argv[1] == "reads":
    print(sys.stdin.read())
while sys.argv[1] == "waits":
    signal.pause()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    warm = Warm.begun(["json"], dict(os.environ), "")
    yield warm_command.made(tmp_path_factory.mktemp("python"), lambda env: warm)
    warm.close()


def started(python: str, folder: Path, how: str) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(PROGRAM)
    pipe = subprocess.PIPE
    return subprocess.Popen([python, "-u", "train.py", how], cwd=folder, stdin=pipe, stdout=pipe, text=True)


def number(process: subprocess.Popen[str]) -> int:
    assert process.stdout
    return int(process.stdout.readline())


def test_a_signal_is_handed_on_and_the_end_is_the_forks(python: str, tmp_path: Path) -> None:
    with started(python, tmp_path, "waits") as process:
        assert number(process) != process.pid
        process.send_signal(signal.SIGTERM)
        assert process.communicate()[0] == "asked\n" and process.returncode == 7


def test_the_fork_of_a_command_that_is_killed_is_gone(python: str, tmp_path: Path) -> None:
    with started(python, tmp_path, "waits") as process:
        number(process)
        process.kill()
        assert process.stdout and process.stdout.read() == ""  # at its end when the last that could write is gone
        assert process.wait() == -signal.SIGKILL


def test_a_fork_that_a_signal_ends_ends_its_command_so(python: str, tmp_path: Path) -> None:
    with started(python, tmp_path, "aborts") as process:
        number(process)
        assert process.wait() == -signal.SIGABRT


def test_a_fork_reads_what_its_command_is_given_and_what_cannot_be_read_is_told(python: str, tmp_path: Path) -> None:
    with started(python, tmp_path, "reads") as process:
        number(process)
        assert process.communicate("a line")[0] == "a line\n" and process.returncode == 0
    done = subprocess.run([python, "-u", "no-such.py"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2 and b"can't open file" in done.stderr


def test_a_number_that_the_kernel_gives_again_has_the_end_of_the_newer_process() -> None:
    # numbers come round after 32,768 processes, so the forking end is played here
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    warm = Warm(mine)
    launch = Launch((sys.executable, "train.py"), Path(), {})
    for answer in ({"started": 7, "ended": {}}, {"asked": 1, "ended": {"7": 2}}, {"started": 7, "ended": {}}, {"asked": 1}):
        theirs.send(json.dumps(answer).encode())
    assert warm.start(launch, 1, 2).poll() == 2
    assert warm.start(launch, 1, 2).poll() is None
