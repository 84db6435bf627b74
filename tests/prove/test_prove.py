"""`ddpfix prove` as a user runs it: real ranks, before and after, in copies; the checkout is left as it is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gitrepos import everything, make, own_settings, put, sh
from tests.programs import ddpfix as run_ddpfix
from tests.prove.programs import NET, forking_shell, needs_torch

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]
needs_lightning = pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs lightning")

LIGHTNING = b"""\
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("val/loss", loss)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main():
    pl.seed_everything(0)
    x = torch.arange(64.0).reshape(16, 4) / 64
    data = TensorDataset(x, x.sum(1, keepdim=True))
    trainer = pl.Trainer(
        accelerator="gpu", devices=8, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Regressor(), DataLoader(data, batch_size=2), DataLoader(data, batch_size=2))


if __name__ == "__main__":
    main()
"""


def ddpfix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """The command with this Python's environment first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return run_ddpfix(folder, *arguments, env={"PATH": path, "COLUMNS": "160"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    return tmp_path


@needs_lightning
def test_a_metric_that_differs_is_named_and_agrees_after(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = make(home, {"train.py": LIGHTNING, "notes.md": b"hi\n"})
    put(repo, {"notes.md": b"not committed\n", "new.txt": b"not known to git\n"})
    state, reflog, trees = everything(repo), sh(repo, "reflog"), sh(repo, "worktree", "list")
    shell = forking_shell(monkeypatch, capsys, repo, "lightning.pytorch")
    done = shell.ddpfix("prove", "--steps", "0", "--output-format", "json", "--", "python", "train.py")
    said = done.err
    assert done.status == 0, said
    (home / "proof.json").write_text(done.out)
    assert "val/loss differs: rank 0 " in said
    assert "agree: val/loss" in said
    assert "a GPU was asked for; run on the CPU" in said
    assert "After the fixes nothing is wrong (before: the logged metric val/loss differs between the ranks)." in said
    assert everything(repo) == state
    assert (sh(repo, "reflog"), sh(repo, "worktree", "list")) == (reflog, trees)

    proof = json.loads((home / "proof.json").read_text())
    assert proof["codes"] == ["DDP101"]
    assert proof["base"] == sh(repo, "rev-parse", "HEAD")
    assert (proof["right"], proof["before"]["right"], proof["after"]["right"]) == (True, False, True)
    applied = ddpfix(repo, "apply", "--proof", "../proof.json")
    assert applied.returncode == 0, applied.stderr.decode()
    text = sh(repo, "show", "HEAD:DDPFIX_SUMMARY.md")
    assert "## Proof" in text
    assert "ddpfix prove --steps 0 -- python train.py" in text
    assert "No training was run" not in text


PRINTS = b"""\
import torch.distributed as dist
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val/loss", self(batch))
"""


def test_a_proof_of_another_commit_or_of_other_fixes_is_refused(home: Path) -> None:
    repo = make(home, {"model.py": PRINTS})
    proof = {"base": "1" * 40, "digest": "2", "command": ["python", "x.py"], "nproc": 2, "steps": 20, "verdict": "Right.",
             "rows": [], "uncommitted": False}  # fmt: skip
    (home / "proof.json").write_text(json.dumps(proof))
    state = everything(repo)
    done = ddpfix(repo, "apply", "--proof", "../proof.json")
    assert (done.returncode, b"the proof is of another commit" in done.stderr) == (2, True)
    (home / "proof.json").write_text(json.dumps(proof | {"base": sh(repo, "rev-parse", "HEAD")}))
    done = ddpfix(repo, "apply", "--proof", "../proof.json")
    assert (done.returncode, b"the proof is of other fixes" in done.stderr) == (2, True)
    (home / "proof.json").write_text("{}")
    done = ddpfix(repo, "apply", "--proof", "../proof.json")
    assert (done.returncode, b"cannot be used as a proof" in done.stderr) == (2, True)
    assert everything(repo) == state


def test_a_package_that_is_missing_is_told(home: Path) -> None:
    repo = make(home, {"train.py": b"import no_such_package_at_all\n"})
    done = ddpfix(repo, "prove", "--", "python", "train.py")
    assert done.returncode == 2
    assert "cannot run with this Python: no_such_package_at_all is not installed for it." in done.stdout.decode()


def test_a_guarded_collective_and_an_unused_branch_are_found(home: Path) -> None:
    source = NET + (
        "\ndist.init_process_group('nccl')\nmodel = DistributedDataParallel(Net(), find_unused_parameters=True)\ntrain(model)\n"
        "if RANK == 0:\n    dist.barrier()\ntotal = torch.ones(1)\ndist.all_reduce(total)\n"
    )
    repo = make(home, {"train.py": source.encode()})
    done = ddpfix(repo, "prove", "--output-format", "json", "--ignore", "all", "--",
                  "torchrun", "--nproc_per_node=8", "train.py")  # fmt: skip
    assert done.returncode == 1, done.stderr.decode()
    seen = json.loads(done.stdout)
    line = source.splitlines().index("    dist.barrier()") + 1
    assert f"rank 0 barrier at train.py:{line} `dist.barrier()`" in seen["before"]["order"]
    assert "no gradient ever: spare.bias, spare.weight" in seen["before"]["unused"]
    assert seen["launcher"] == "torchrun"
    assert seen["after"] is None


def test_a_program_for_gpus_alone_is_told(home: Path) -> None:
    repo = make(home, {"train.py": b"import torch\n\nmodel = torch.nn.Linear(1, 1)\ntorch.cuda.get_device_properties(0).uuid\n"})
    done = ddpfix(repo, "prove", "--", "python", "train.py")
    assert done.returncode == 2
    assert "cannot run on the CPU: it asks CUDA for what the CPU cannot answer, at train.py:4" in done.stdout.decode()


SPAWN = b"""\
import torch
import torch.multiprocessing as mp


def work(rank, world_size):
    torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:29517", rank=rank, world_size=world_size)
    value = torch.ones(1).cuda(rank)
    if rank == 0:
        torch.distributed.all_reduce(value)
        print("sum", value.item())


if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(work, args=(world_size,), nprocs=world_size)
"""


def test_a_hang_in_ranks_that_the_program_starts_itself_is_seen_and_gone(home: Path) -> None:
    repo = make(home, {"train.py": SPAWN})
    done = ddpfix(repo, "prove", "--", "python", "train.py")
    said = done.stdout.decode()
    assert done.returncode == 0, said + done.stderr.decode()
    assert "ended           hangs" in said
    assert "rank 0 at train.py:9 `torch.distributed.all_reduce(value)`" in said
    assert "After the fixes nothing is wrong (before: hangs" in said
    assert "note: the program starts its ranks itself" in said


def test_a_program_that_starts_another_number_of_ranks_is_told(home: Path) -> None:
    repo = make(home, {"train.py": SPAWN.replace(b"nprocs=world_size", b"nprocs=8")})
    done = ddpfix(repo, "prove", "--", "python", "train.py")
    assert done.returncode == 2
    told = "This program cannot run as asked: it starts 8 ranks itself, at train.py:15: mp.spawn(work, "
    assert told in done.stdout.decode()
    assert "Give --nproc 8, or let it start fewer." in done.stdout.decode()


def test_a_command_that_is_not_there(home: Path) -> None:
    repo = make(home, {"train.py": b"x = 1\n"})
    done = ddpfix(repo, "prove", "--", "no-such-program", "train.py")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "ddpfix: no-such-program cannot be run: it is not there. Give the command as you give it in this folder.\n"
    )
