"""`ddpfix diagnose` as a user meets it, and what `apply --log` makes of the same log."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.gitrepos import make, own_settings, sh
from tests.programs import ddpfix
from tests.proofs.harness import TORCH, warm_python
from tests.prove.programs import needs_torch

LOGS = Path(__file__).parent / "logs"
MODEL = b"""\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 6)
        self.unused_head = nn.Linear(6, 2)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())
"""
TRAIN = b"""\
import torch
import torch.distributed as dist
from model import Net
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train():
    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        x = torch.randn(8, 6)
        loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    print("trained to the end", flush=True)
"""


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def repository(folder: Path) -> Path:
    return make(folder, {"model.py": MODEL, "train.py": TRAIN})


def test_a_log_is_read_without_a_repository(tmp_path: Path) -> None:
    done = ddpfix(tmp_path, "diagnose", str(LOGS / "unused-names.log"))
    said = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert said.startswith("unused-names.log: 77 lines, ranks 0, 1\nProbable cause: parameters that take no part in the loss")
    assert "[T02]" in said and "first to fall: rank 0" in said
    assert "parameters: unused_head.bias, unused_head.weight; by number: 2 3" in said
    assert "codemods: DDP002 missing-find-unused-parameters" in said


def test_an_unknown_failure_says_so_shows_the_last_lines_and_exits_1(tmp_path: Path) -> None:
    done = ddpfix(tmp_path, "diagnose", str(LOGS / "own-error.log"))
    said = done.stdout.decode()
    assert done.returncode == 1
    assert "Unknown: no message that ddpfix knows. The program's own error, line 8: KeyError: 1" in said
    assert "8 rank 1: KeyError: 1" in said and "first to fall: rank 1" in said


def test_with_the_repository_its_lines_and_its_repair_are_named(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    done = ddpfix(repo, "diagnose", str(LOGS / "unused-names.log"), ".", "--output-format", "json")
    answer = json.loads(done.stdout)
    assert answer["cause"]["id"] == "T02" and answer["first_rank"] == 0
    assert answer["parameters"] == ["unused_head.bias", "unused_head.weight"]
    assert {"path": "train.py", "line": 15, "function": "train", "rank": 0, "inner": True} in answer["places"]
    (finding,) = answer["findings"]
    assert (finding["code"], finding["path"], finding["line"], finding["applicability"]) == ("DDP002", "train.py", 9, "safe")
    assert finding["evidence"][0]["kind"] == "log"


def test_without_the_log_the_same_finding_is_only_offered(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    (finding,) = json.loads(ddpfix(repo, "check", ".", "--select", "DDP002", "--output-format", "json").stdout)["findings"]
    assert finding["applicability"] == "unsafe"


def test_the_log_does_not_stay_in_the_cache(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    cache = {"DDPFIX_CACHE_DIR": str(tmp_path / "cache")}
    log = str(LOGS / "unused-names.log")
    for name in ("model.py", "train.py"):  # old enough for the cache to trust them
        os.utime(repo / name, (1_600_000_000, 1_600_000_000))
    told = ddpfix(repo, "check", ".", "--select", "DDP002", env=cache).stdout
    assert b"[fix]" in ddpfix(repo, "diagnose", log, ".", env=cache).stdout
    assert ddpfix(repo, "check", ".", "--select", "DDP002", env=cache).stdout == told and b"[unsafe fix]" in told


def test_apply_commits_the_repair_with_the_log_as_its_reason(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    log = str(LOGS / "unused-names.log")
    shown = ddpfix(repo, "diff", "--log", log, "--select", "DDP002").stdout.decode()
    assert "+    model = DDP(Net(), find_unused_parameters=True)" in shown
    done = ddpfix(repo, "diagnose", log, ".", "--apply")
    assert done.returncode == 0, done.stderr
    assert sh(repo, "log", "--format=%s", "main..HEAD").splitlines() == [
        "Add DDPFIX_SUMMARY.md",
        "Let DDP look for unused parameters in train.py (DDP002)",
    ]
    assert "model = DDP(Net(), find_unused_parameters=True)" in (repo / "train.py").read_text()
    summary = (repo / "DDPFIX_SUMMARY.md").read_text()
    assert "`unused-names.log:17`" in summary and str(LOGS) not in summary
    assert "ddpfix apply --log unused-names.log --select DDP002" in summary


def test_apply_takes_the_log_too(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    done = ddpfix(repo, "apply", "--log", str(LOGS / "unused-names.log"), "--no-switch", "--no-summary-commit")
    assert done.returncode == 0, done.stderr
    assert "find_unused_parameters=True" in sh(repo, "show", "ddpfix/fixes:train.py")


def test_a_cause_without_a_codemod_applies_nothing(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    done = ddpfix(repo, "diagnose", str(LOGS / "ready-twice.log"), ".", "--apply")
    assert done.returncode == 0 and b"Nothing to apply" in done.stderr
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagnose", "gone.log"], "gone.log cannot be read: No such file or directory"),
        (["diagnose", "."], ". cannot be read: the folder holds no file with the ending .log, .out, .err, .txt"),
        (["diff", "--log", "gone.log"], "gone.log cannot be read"),
        (["diff", "--evidence", "train.py"], "train.py cannot be read: no JSON"),
        (["diagnose", "train.py", "--output-format", "xml"], "no output format is called 'xml'"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = ddpfix(repository(tmp_path), *arguments)
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 2 and said in line


def rank_logs(folder: Path, **ranks: str) -> None:
    """Logs as `torchrun --log-dir --redirects 3` leaves them: a folder a rank, no label in front of the lines."""
    for name, text in ranks.items():
        place = folder / "none_x1" / "attempt_0" / name.removeprefix("r")
        place.mkdir(parents=True)
        (place / "stderr.log").write_text(text)
        (place / "stdout.log").write_text("step 0 loss 0.7\n")


CRASH = 'Traceback (most recent call last):\n  File "/a/train.py", line {}, in train\n{}\n'


def test_a_folder_with_a_log_for_each_rank_is_one_run(tmp_path: Path) -> None:
    lost = "RuntimeError: [x/pair.cc:553] Connection closed by peer [127.0.0.1]:1"
    missing = "UnboundLocalError: cannot access local variable 'best' where it is not associated with a value"
    rank_logs(tmp_path / "logs", r0=CRASH.format(9, lost), r1=CRASH.format(30, missing))
    said = ddpfix(tmp_path, "diagnose", "logs").stdout.decode()
    assert said.startswith("logs: 8 lines, ranks 0, 1\n") and "[P02]" in said
    assert "first to fall: rank 1, none_x1/attempt_0/1/stderr.log line 1: UnboundLocalError at /a/train.py:30 in train" in said


def test_separate_logs_do_not_say_which_of_two_fell_first(tmp_path: Path) -> None:
    error = "RuntimeError: Expected to mark a variable ready only once. This error is caused by"
    rank_logs(tmp_path / "logs", r0=CRASH.format(9, error), r1=CRASH.format(9, error))
    said = ddpfix(tmp_path, "diagnose", "logs").stdout.decode()
    assert "[T06]" in said and "fell: ranks 0, 1; which of them first, separate logs do not say" in said
    answer = json.loads(ddpfix(tmp_path, "diagnose", "logs", "--output-format", "json").stdout)
    assert answer["first_rank"] is None and answer["cause"]["file"] == "none_x1/attempt_0/0/stderr.log"


def test_an_escape_sequence_of_a_log_does_not_reach_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"all well\n\x1b]0;title\x07 bye \x1b[31mred\x1b[0m\n")
    assert b"\x1b" not in ddpfix(tmp_path, "diagnose", "train.log").stdout


@pytest.mark.torch
@pytest.mark.proof
@needs_torch
def test_a_run_fails_is_diagnosed_repaired_and_runs(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    failed = torchrun(repo)
    assert "trained to the end" not in failed
    (tmp_path / "train.log").write_text(failed)
    done = ddpfix(repo, "diagnose", "../train.log", ".", "--apply")
    said = done.stdout.decode()
    assert "[T02]" in said and "unused_head.bias, unused_head.weight" in said and "train.py:13 in train" in said
    assert torchrun(repo).count("trained to the end") == 2


def torchrun(repo: Path) -> str:
    """What the program prints as two ranks. PYTHON_EXEC: the Python that torchrun starts them with."""
    python = warm_python("", *TORCH)
    names = {"OMP_NUM_THREADS": "1", "TORCH_DISTRIBUTED_DEBUG": "INFO", "PYTHONDONTWRITEBYTECODE": "1", "PYTHON_EXEC": python}
    launcher = [python, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command = [*launcher, "--nproc_per_node=2", "train.py"]
    done = subprocess.run(
        command, cwd=repo, env={**os.environ, **names}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180, check=False
    )
    return done.stdout.decode()
