"""Small training programs for tests, and the way to run ddpfix on them as a user does."""

from __future__ import annotations

import atexit
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from ddpfix.prove.ranks import Launch
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
# What most commands import sooner or later: other people's packages (typer takes pydantic along where it is installed), the
# codemods, and what stands behind the commands. The command line itself is loaded by each process: how it ends hangs on that.
IMPORTED = (
    "libcst.native", "typer.rich_utils", "pydantic", "rich.markdown", "rich.table", "yaml", "git", "jinja2",
    "pygments.lexers.python", "ahocorasick_rs", "typer._adapters", "pydantic.fields", "pydantic.types",
)  # fmt: skip
LOADED_BY_EACH = ("ddpfix/cli/", "ddpfix/prove/tracer/", "ddpfix/diagnosis/injected/")


def ddpfix(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, afresh: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """The command as a user runs it from `folder`: its own process, output into pipes.

    afresh: the process imports all for itself. Otherwise it is a fork of one that has imported all but the command line, which
    is two thirds of the time of a small run.
    """
    own = {"DDPFIX_CACHE_DIR": str(folder / ".git" / "no-cache"), "COLUMNS": "80", **(env or {})}
    full = {**os.environ, **own}
    words = ("-P", "-m", "ddpfix.cli", *arguments)
    warm = None if afresh else _warm(full)
    if warm is None:
        return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=False, env=full)
    return _ended(warm, Launch((sys.executable, *words), folder, full))


def _ended(warm: Warm, launch: Launch) -> subprocess.CompletedProcess[bytes]:
    """A fork that writes into pipes, when it has ended: no other process stands between, as behind `forked_python`."""
    pipes = [os.pipe(), os.pipe()]
    process = warm.start(launch, *(into for _, into in pipes))
    for _, into in pipes:
        os.close(into)
    with ThreadPoolExecutor(len(pipes)) as pool:
        out, err = pool.map(_all_of, (end for end, _ in pipes))
    while (status := process.poll()) is None:
        time.sleep(0.002)
    return subprocess.CompletedProcess(launch.command, status, out, err)


def _all_of(pipe: int) -> bytes:
    with open(pipe, "rb") as file:
        return file.read()


def forked_python(env: Mapping[str, str]) -> str:
    """A Python for commands with this environment, which has all but the command line imported."""
    warm = _warm(env)
    return _command(warm) if warm else sys.executable


def _warm(env: Mapping[str, str]) -> Warm | None:
    """What forks the commands of this environment. There is one, for the environment that is asked for first."""
    return None if os.environ.get("DDPFIX_TESTS_AFRESH") else _forks(_read_at_start(env))


def _read_at_start(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What the interpreter and the libraries read of an environment when they start."""
    names = ("PATH", "TMPDIR", "PYTHON", "LC_", "LANG", "LD_", "GIT_PYTHON")
    return tuple(sorted((k, v) for k, v in env.items() if k.startswith(names)))


@cache
def _first() -> list[tuple[tuple[str, str], ...]]:
    return []


@cache
def _forks(start: tuple[tuple[str, str], ...]) -> Warm | None:
    if _first():
        return None
    _first().append(start)
    files = [p.relative_to(ROOT).as_posix() for room in ("codemods", "ddpfix") for p in sorted((ROOT / room).rglob("*.py"))]
    ours = [name for name in files if not name.startswith(LOADED_BY_EACH) and not name.endswith("__main__.py")]
    others = [name for name in IMPORTED if _is_there(name)]
    modules = [*others, *(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for name in ours)]
    warm = Warm.begun(modules, {**os.environ, **dict(start)}, "")
    atexit.register(warm.close)
    return warm


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # nor is its package
        return False


@cache
def _command(warm: Warm) -> str:
    folder = tempfile.TemporaryDirectory(prefix="ddpfix-python-")
    atexit.register(folder.cleanup)
    return warm_command.made(Path(folder.name), lambda env: warm)
