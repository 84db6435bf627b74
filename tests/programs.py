"""Small training programs for tests, and the way to run ddpfix on them as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = b'''\
import lightning.pytorch as pl
import torch.nn.functional as F
import torchmetrics


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=10)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.val_acc(self(x), y)
        self.log("val/loss", loss, prog_bar=True)
        self.log("val/acc", self.val_acc, sync_dist=True)
'''

FIXED = MODULE.replace(b"loss, prog_bar=True)", b"loss, prog_bar=True, sync_dist=True)").replace(
    b"self.val_acc, sync_dist=True)", b"self.val_acc)"
)

PLAIN = b"print('one process, nothing else')\n"


def ddpfix(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """The command as a user runs it from `folder`: its own process, output into pipes."""
    own = {"DDPFIX_CACHE_DIR": str(folder / ".git" / "no-cache"), "COLUMNS": "80", **(env or {})}
    command = [sys.executable, "-P", "-m", "ddpfix.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env={**os.environ, **own})
