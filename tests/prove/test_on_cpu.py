"""What a failed rank says of why it cannot run here, and what stays an error of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.prove.on_cpu import obstacle
from ddpfix.prove.ranks import Ended, RankEnd
from ddpfix.prove.traces import Trace

TRACEBACK = 'Traceback (most recent call last):\n  File "{folder}/train.py", line 1, in <module>\n    {line}\n{error}\n'


def told(folder: Path, line: str, error: str, *, answered: bool = True) -> str:
    (folder / "train.py").write_text(line + "\n")
    rank = RankEnd(0, 1, "", TRACEBACK.format(folder=folder, line=line, error=error))
    found = obstacle(Ended("error", (rank,), (Trace(0, True, answered=answered),), 1.0), folder)
    return found.text if found else ""


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        ("y = f(x.half())", "RuntimeError: \"lu_cpu\" not implemented for 'Half'", "it computes what this torch has not "
         "for the CPU"),
        ("subprocess.run(['nvidia-smi'])", "FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'",
         "it asks for a CUDA device"),
        ("assert x.device == device", "AssertionError", "it goes by what a device answers"),
        ("v = torch.version.cuda.split('.')", "AttributeError: 'NoneType' object has no attribute 'split'",
         "it goes by what a device answers"),
    ],
)  # fmt: skip
def test_what_the_cpu_cannot_do_is_told_with_the_line(tmp_path: Path, line: str, error: str, said: str) -> None:
    assert told(tmp_path, line, error).startswith(f"on the CPU: {said}, at train.py:1: {line} (")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ModuleNotFoundError: No module named 'wandb'", "with this Python: wandb is not installed for it"),
        ("ImportError: Logging requires version 1.15 or above",
         "with this Python: Logging requires version 1.15 or above, at train.py:1: go()"),
        ("ValueError: invalid CPU 49; choose between [0, 1]",
         "on this machine: it binds itself to CPUs that are not there, at train.py:1: go()"),
        (
            "KeyError: 'SLURM_PROCID'",
            "as asked: it is made to be started by its cluster's launcher, which sets SLURM_PROCID, at train.py:1: go()",
        ),
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen. code: -98, name: EADDRINUSE",
            "on this machine now: the port that it asks for is taken, at train.py:1: go()",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_here_is_no_fault_of_the_program(tmp_path: Path, error: str, said: str) -> None:
    assert told(tmp_path, "go()", error) == said


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("loss = f(x.cuda(), y.cuda())", "RuntimeError: The size of tensor a (2) must match the size of tensor b (3)"),
        ("assert len(data) > 0", "AssertionError"),
        ("rank = os.environ['RANKS']", "KeyError: 'RANKS'"),
        ("from a import b", "ImportError: cannot import name 'b' from 'a'"),
    ],
)
def test_an_error_of_the_program_stays_one(tmp_path: Path, line: str, error: str) -> None:
    assert told(tmp_path, line, error) == ""


def test_a_device_counts_only_where_the_cpu_has_answered_for_one(tmp_path: Path) -> None:
    assert told(tmp_path, "assert x.device == device", "AssertionError", answered=False) == ""
