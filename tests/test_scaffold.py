"""`ddpfix new-codemod`: what it writes runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ddpfix

HERE = Path(__file__).parent.parent


@pytest.mark.parametrize("more", [[], ["--bowler", "--code", "TEAM002"]])
def test_the_new_files_pass_their_own_test(tmp_path: Path, more: list[str]) -> None:
    done = ddpfix(tmp_path, "new-codemod", "no-old-barrier", "--into", "ours", *more)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert "ours/no_old_barrier.py\nours/test_no_old_barrier.py\nours/proofs/no_old_barrier/train.py\n" in said
    assert 'plugins = ["ours/no_old_barrier.py"]' in said
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "ours", "-k", "not runs_right"]
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    tested = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "2 passed, 1 deselected" in tested.stdout, tested.stdout
    (tmp_path / "a.py").write_text("from ours import old_barrier\n\nold_barrier()\n")
    (tmp_path / "ddpfix.toml").write_text('plugins = ["ours/no_old_barrier.py"]\n')
    assert "+barrier()" in ddpfix(tmp_path, "diff", "--unsafe-fixes", "--allow-plugins", "a.py").stdout.decode()


@pytest.mark.torch
@pytest.mark.proof
def test_the_new_proof_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ddpfix(tmp_path, "new-codemod", "no-old-barrier", "--into", "ours")
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "ours", "-k", "runs_right"]
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    tested = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "1 passed" in tested.stdout, tested.stdout


BAD = [
    (["NoGloo"], "is no name for a codemod"),
    (["no_gloo"], "as in no-old-barrier"),
    (["no-gloo", "--code", "DDP900"], "DDP and PRJ are taken"),
    (["no-gloo", "--code", "x"], "letters and three digits"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_a_name_or_code_that_cannot_be_is_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = ddpfix(tmp_path, "new-codemod", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_what_is_there_stays(tmp_path: Path) -> None:
    ddpfix(tmp_path, "new-codemod", "no-gloo", "--into", "ours")
    (tmp_path / "ours/no_gloo.py").write_text("mine\n")
    done = ddpfix(tmp_path, "new-codemod", "no-gloo", "--into", "ours")
    assert done.returncode == 2
    assert "no_gloo.py is there already" in done.stderr.decode()
    assert (tmp_path / "ours/no_gloo.py").read_text() == "mine\n"
