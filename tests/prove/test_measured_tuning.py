"""`ddpfix tune --measure` runs the command in each configuration and puts what it saw into the table and the summary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gitrepos import make
from tests.prove.programs import forking_shell, needs_torch
from tests.test_how_tos import commands

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

BERT = "transformers.models.bert.modeling_bert"
PROGRAM = (Path(__file__).parents[2] / "fixtures/proofs/ddp901-logging-every-step/train.py").read_bytes()


def test_the_command_of_the_page_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make(tmp_path, {"train.py": PROGRAM})
    measure = commands("tune.md")[3][1:]
    shell = forking_shell(monkeypatch, capsys, root, "accelerate", "transformers", "transformers.trainer", BERT)
    seen = shell.ddpfix(*measure, "--cores", "1", "--apply", HF_HUB_OFFLINE="1")
    assert seen.status == 0, seen.err
    rows = {row.split("  ")[1].strip(): row for row in seen.out.splitlines() if row.startswith("python train.py")}
    assert set(rows) == {"as it is", "standard", "fast"}
    assert "2 x 1 x 2 processes = 4" in rows["as it is"]
    collectives = {name: float(row.split()[-1]) for name, row in rows.items()}
    assert collectives["as it is"] > collectives["standard"] >= collectives["fast"]
    assert all(re.search(r"\d+ ms", row) for row in rows.values())
    summary = (root / "DDPFIX_SUMMARY.md").read_text()
    assert "time a step" in summary and "python train.py" in summary and "Nothing was measured" not in summary
