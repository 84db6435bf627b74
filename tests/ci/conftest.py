"""What the tests of the formats share: repositories, every format of each, and the validators of others."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpfix import cli
from tests.gitrepos import make, own_settings
from tests.programs import MODULE

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.name for p in (ROOT / "fixtures" / "examples").iterdir() if p.is_dir())
FORMATS = ("sarif", "github", "gitlab", "junit", "rdjson", "json", "json-lines", "concise", "text", "full")

# A class whose base another file makes a LightningModule: found only where the whole project is read.
BASE = b"import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n"
DERIVED = MODULE.replace(b"import lightning.pytorch as pl\n", b"from .base import Base\n").replace(b"pl.LightningModule", b"Base")

# Names and bytes that need care: blanks, per cent, commas and colons, letters of two, three and four bytes, both line ends,
# another encoding, no line end at all, a byte that is no text.
WIDE = MODULE.replace(b'        self.log("val/loss"', '        ü = "é𝄞"; self.log("val/loss"'.encode())
ODD = {
    "träin dir/a%b,c:d.py": WIDE.replace(b"\n", b"\r\n"),
    os.fsdecode(b"bad\xff.py"): MODULE.rstrip(b"\n"),
    "lat.py": b"# -*- coding: latin-1 -*-\n" + MODULE.replace(b"val/loss", b"val/l\xf6ss"),
    "broken.py": b"import lightning\nself.log(\n",
}


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Repository by name -> the folder with every format of it; the repository itself is `repo` in there."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            folder = made[name] = tmp_path_factory.mktemp(name)
            if name == "odd":
                make(folder, ODD)
            elif name == "clean":
                make(folder, {"a.py": b"x = 1\n"})
            else:
                example = ROOT / "fixtures" / "examples" / name / "before"
                make(folder, {p.relative_to(example).as_posix(): p.read_bytes() for p in example.rglob("*") if p.is_file()})
            words = [f"--output={f}={folder / f}" for f in FORMATS]
            done = run(folder / "repo", "check", "--no-cache", *words)
            assert done.returncode in (0, 1), done.stderr.decode()
        return made[name]

    return of


@pytest.fixture(scope="session")
def multitool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Microsoft's validator of SARIF, its own binary: through npx the `;` of its options would reach a shell."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", str(folder)]
    done = subprocess.run([*command, "@microsoft/sarif-multitool@5.7.0"], capture_output=True, check=False, cwd=folder)
    found = [p for p in folder.glob("node_modules/@microsoft/*/Sarif.Multitool") if p.is_file()]
    if done.returncode or not found:
        pytest.skip("npm cannot install the validator here")
    found[0].chmod(0o755)
    return found[0]


def run(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command in this process, which saves its start: what it writes and its exit status, as `ddpfix` would give them."""
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="") for data in (b"", b"", stdin)]
    names = ("stdout", "stderr", "stdin")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        for name, stream in zip(names, streams, strict=True):
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["ddpfix", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        gc.enable()
        gc.unfreeze()
        written = []
        for stream in streams[:2]:
            stream.flush()
            written.append(stream.buffer.getvalue())
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(list(arguments), ended.value.code, *written)
