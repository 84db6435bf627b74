"""Small training programs for tests, and the way to run ddpfix on them as a user does."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.proofs import warm_command
from tests.proofs.warm import Warm

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


ROOT = Path(__file__).parents[1]
# what most commands import sooner or later: other people's packages, and the codemods; nothing of the application itself
IMPORTED = ("libcst", "typer", "rich.console", "yaml", "git", "jinja2", "pygments", "ahocorasick_rs")


def ddpfix(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, afresh: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """The command as a user runs it from `folder`: its own process, output into pipes.

    afresh: the process imports all for itself. Otherwise it is a fork of one that has imported the libraries and the codemods,
    which are half of the time of a small run.
    """
    own = {"DDPFIX_CACHE_DIR": str(folder / ".git" / "no-cache"), "COLUMNS": "80", **(env or {})}
    full = {**os.environ, **own}
    command = [sys.executable if afresh else forked_python(full), "-P", "-m", "ddpfix.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env=full)


def forked_python(env: Mapping[str, str]) -> str:
    """A Python for commands with this environment, which has the libraries and the codemods imported."""
    return sys.executable if os.environ.get("DDPFIX_TESTS_AFRESH") else _python(_read_at_start(env))


def _read_at_start(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What the interpreter and the libraries read of an environment when they start."""
    names = ("PATH", "TMPDIR", "PYTHON", "LC_", "LANG", "LD_", "GIT_PYTHON")
    return tuple(sorted((k, v) for k, v in env.items() if k.startswith(names)))


@cache
def _first() -> list[tuple[tuple[str, str], ...]]:
    return []


@cache
def _python(start: tuple[tuple[str, str], ...]) -> str:
    """A Python that has the imports; there is one, for the environment that is asked for first, and others start afresh."""
    if _first():
        return sys.executable
    _first().append(start)
    codemods = [p.relative_to(ROOT).with_suffix("").as_posix() for p in sorted((ROOT / "codemods").rglob("*.py"))]
    modules = [*IMPORTED, *(name.replace("/", ".").removesuffix(".__init__") for name in codemods)]
    warm = Warm.begun(modules, {**os.environ, **dict(start)}, "")
    folder = tempfile.TemporaryDirectory(prefix="ddpfix-python-")
    atexit.register(folder.cleanup)
    atexit.register(warm.close)
    return warm_command.made(Path(folder.name), warm)
