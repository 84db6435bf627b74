"""The codemods under LibCST's own runner, from an empty folder: the bytes are those that ddpfix gives."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from codemods import libcst_commands as commands
from codemods.api.codemod import built_in
from codemods.engine.fix_source import fix_project
from codemods.store.project import Project
from ddpfix.discovery import discover
from ddpfix.engine import disk_reader
from tests.gitrepos import make, own_settings

HERE = Path(__file__).parent.parent
MODEL = b"""\
import lightning.pytorch as pl
import torchmetrics
from .base import Base


class Model(Base):
  def __init__(self):
    super().__init__()
    self.acc = torchmetrics.Accuracy(task="binary")  # \xc3\xbc

  def validation_step(self, batch, batch_idx):
    self.acc(batch)
    self.log(
      "acc",
      self.acc,
      sync_dist=True,  # gone
    )
"""
BASE = b"import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    return make(tmp_path, {"pkg/__init__.py": b"", "pkg/base.py": BASE, "pkg/model.py": MODEL, "pkg/plain.py": b"x = 1\n"})


def tool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-P", "-m", "libcst.tool", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


def codemod(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = tool(folder, "codemod", "-x", f"codemods.libcst_commands.{name}", "--no-format", "--hide-progress", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def by_ddpfix(repo: Path, name: str) -> dict[str, bytes]:
    (tree,) = discover([repo])
    rule = next(c for c in built_in() if c.__name__ == name)()
    project = Project(tree.files, disk_reader(tree.root))
    return dict(fix_project(project, lambda _p, paths: dict.fromkeys(paths, (rule,)), tree.chosen).changed)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_runner_gives_the_bytes_that_ddpfix_gives(repo: Path, tmp_path: Path, end: bytes) -> None:
    model = repo / "pkg/model.py"
    model.write_bytes(MODEL.replace(b"\n", end))
    wanted = by_ddpfix(repo, "SyncedMetricObject")
    assert list(wanted) == ["pkg/model.py"] and b"sync_dist" not in wanted["pkg/model.py"]
    empty = tmp_path / "empty"
    empty.mkdir()
    codemod(empty, "SyncedMetricObject", str(repo))
    assert model.read_bytes() == wanted["pkg/model.py"]
    assert (repo / "pkg/plain.py").read_bytes() == b"x = 1\n"
    codemod(empty, "SyncedMetricObject", str(repo))
    assert model.read_bytes() == wanted["pkg/model.py"]


def test_a_folder_of_the_same_name_in_the_repository_does_not_stand_in(repo: Path) -> None:
    (repo / "codemods").mkdir()
    (repo / "codemods" / "__init__.py").write_bytes(b"raise RuntimeError('the wrong package')\n")
    codemod(repo, "SyncedMetricObject", "pkg/model.py")
    assert b"sync_dist" not in (repo / "pkg/model.py").read_bytes()


def test_the_runner_lists_every_codemod(tmp_path: Path) -> None:
    (tmp_path / ".libcst.codemod.yaml").write_text("modules: [codemods]\nformatter: []\n")
    done = tool(tmp_path, "list")
    assert done.returncode == 0, done.stderr
    names = {line.partition(" - ")[0] for line in done.stdout.splitlines()}
    assert names == {f"libcst_commands.{c.__name__}" for c in built_in()}


def test_commands_are_named_described_and_picklable() -> None:
    assert set(commands.COMMANDS) == {c.__name__ for c in built_in()}
    for name, command in commands.COMMANDS.items():
        assert getattr(commands, name) is command
        assert pickle.loads(pickle.dumps(command)) is command
        assert command.CODEMOD.summary() == command.DESCRIPTION


def test_text_without_a_file() -> None:
    from libcst import parse_module
    from libcst.codemod import CodemodContext

    source = MODEL.replace(b"from .base import Base\n", b"").replace(b"(Base)", b"(pl.LightningModule)").decode()
    command = commands.COMMANDS["SyncedMetricObject"](CodemodContext())
    assert "sync_dist" not in command.transform_module(parse_module(source)).code
    unchanged = parse_module("x = 1\n")
    assert command.transform_module(unchanged) is unchanged


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + MODEL, MODEL.rstrip(b"\n"), b"# coding: latin-1\n# \xe9\n" + MODEL])
def test_odd_bytes_are_kept_or_the_file_is_left_alone(repo: Path, tmp_path: Path, data: bytes) -> None:
    model = repo / "pkg/model.py"
    model.write_bytes(data)
    wanted = by_ddpfix(repo, "SyncedMetricObject")["pkg/model.py"]
    codemod(tmp_path, "SyncedMetricObject", str(model))
    assert model.read_bytes() in (wanted, data)


def test_a_file_that_cannot_be_read_stops_no_other(repo: Path, tmp_path: Path) -> None:
    (repo / "pkg/broken.py").write_bytes(b"self.log(sync_dist=(\n")
    tool(tmp_path, "codemod", "-x", "codemods.libcst_commands.SyncedMetricObject", "--no-format", "-j", "1", str(repo))
    assert b"sync_dist" not in (repo / "pkg/model.py").read_bytes()
    assert (repo / "pkg/broken.py").read_bytes() == b"self.log(sync_dist=(\n"


def test_what_is_found_and_not_fixed_is_warned_of() -> None:
    from libcst import parse_module
    from libcst.codemod import CodemodContext

    source = commands.COMMANDS["MakedirsRace"].CODEMOD.sections()["Example"].removeprefix("```python\n").removesuffix("```")
    context = CodemodContext()
    told = source.replace("makedirs(", "mkdir(")
    after = commands.COMMANDS["MakedirsRace"](context).transform_module(parse_module(told))
    assert after.code == told
    assert any("DDP204" in warning for warning in context.warnings)
