"""An answer is given again only while it is the one that the program would give."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpfix import answers, cli
from tests.gitrepos import make, own_settings

MODEL = b"""\
import lightning.pytorch as pl


class M(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val", batch.mean())
"""
CHECK = ("check", ".")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(tmp_path / "cache"))
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10 * answers.RACY)  # files made by a test are as old as a user's
    made = make(tmp_path, {"a.py": MODEL, "sub/b.py": b"x = 1\n", ".gitignore": b"ddpfix.toml\n", "c.txt": b"c\n"})
    monkeypatch.chdir(made)
    return made


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ddpfix", *arguments])
    return int(cli.run(list(arguments)) or 0)


def test_the_second_answer_is_the_first_one(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answers.recall(CHECK) is None
    status = run(monkeypatch, *CHECK)
    shown = capsys.readouterr()
    assert "a.py:6:9: DDP101 [fix]" in shown.out and status == 1
    assert answers.recall(CHECK) == (shown.out, shown.err, 1)


def test_a_process_that_has_the_answer_loads_no_command_line(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user sees it: the same text and exit status, from a process that imported neither typer nor a codemod."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    code = (
        "import os, sys, time; now = time.time_ns; time.time_ns = lambda: now() + 20_000_000_000; os._exit = sys.exit\n"
        "from ddpfix.__main__ import main\n"
        "try: main()\n"
        "finally: sys.stderr.write(str([m for m in ('typer', 'codemods', 'subprocess') if m in sys.modules]))"
    )
    for expected in ("'codemods'", "[]"):
        done = subprocess.run([sys.executable, "-P", "-c", code, *CHECK], env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and "DDP101" in done.stdout and expected in done.stderr, done.stderr


def _append(name: str, text: str) -> Callable[[Path], object]:
    return lambda repo: (repo / name).open("a").write(text)


def _same_size_and_time(repo: Path) -> None:
    path = repo / "a.py"
    before = path.stat()
    path.write_bytes(MODEL.replace(b"val", b"lav"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        _append("a.py", "\n"),
        _append("new.py", "x = 1\n"),
        _append("ddpfix.toml", 'ignore = ["DDP101"]\n'),  # although git ignores it
        _append("pyproject.toml", "\n"),
        _append(".gitignore", "a.py\n"),
        _same_size_and_time,
        lambda repo: (repo / "sub/b.py").unlink(),
        lambda repo: shutil.move(repo / "c.txt", repo / "d.txt"),
        lambda repo: (repo / "c.txt").symlink_to("a.py") if (repo / "c.txt").unlink() is None else None,
        lambda repo: shutil.rmtree(repo / ".git"),
    ],
    ids=["longer", "new file", "ignored settings", "settings", "ignore", "same size", "gone", "moved", "link", "no git"],
)
def test_a_change_is_seen(repo: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]) -> None:
    run(monkeypatch, *CHECK)
    assert answers.recall(CHECK) is not None
    change(repo)
    assert answers.recall(CHECK) is None


def test_a_repository_inside_takes_over_the_question(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "check", "sub")
    assert answers.recall(("check", "sub")) is not None
    (repo / "sub" / ".git").mkdir()
    assert answers.recall(("check", "sub")) is None


@pytest.mark.parametrize("other", [("check",), ("check", "a.py"), ("check", ".", "--output-format", "json"), ("diff", ".")])
def test_another_question_has_another_answer(repo: Path, monkeypatch: pytest.MonkeyPatch, other: tuple[str, ...]) -> None:
    run(monkeypatch, *CHECK)
    assert answers.recall(other) is None


def test_another_place_terminal_or_code_has_another_answer(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, *CHECK)
    with monkeypatch.context() as there:
        there.chdir(repo / "sub")
        assert answers.recall(CHECK) is None
    with monkeypatch.context() as there:
        there.setenv("NO_COLOR", "1")
        assert answers.recall(CHECK) is None
    with monkeypatch.context() as there:
        there.setattr(answers, "code_state", lambda: "newer")
        assert answers.recall(CHECK) is None
    assert answers.recall(CHECK) is not None


def test_what_changed_a_moment_ago_is_not_kept(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        there.setattr(time, "time_ns", lambda: (repo / "a.py").stat().st_mtime_ns + answers.RACY // 2)
        run(there, *CHECK)
    assert answers.recall(CHECK) is None


def test_no_cache_asks_for_no_answer_and_leaves_none(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "check", "--no-cache", ".")
    assert not list((repo.parent / "cache").glob("*.answer"))
    run(monkeypatch, *CHECK)
    assert answers.recall(("check", "--no-cache", ".")) is None


@pytest.mark.parametrize(
    "words",
    [
        ("--output", "sarif=../x.sarif"),
        ("--baseline", "c.txt"),
        ("--baseline", "../known.json", "--write-baseline"),
        ("--changed-since", "HEAD"),
        ("--config", "../other.toml"),
        ("--output-format", "github"),
    ],
)
def test_what_rests_on_more_than_the_files_of_the_project_is_worked_out_again(
    repo: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (repo / "c.txt").write_bytes(b'{"version": 1, "findings": []}')
    (repo.parent / "other.toml").write_bytes(b"")
    run(monkeypatch, "check", *words, ".")
    assert answers.recall(("check", *words, ".")) is None


@pytest.mark.parametrize("words", [("--output-format", "sarif"), ("--isolated",), ("--exit-zero",), ("--force-exclude",)])
def test_what_rests_on_the_files_alone_is_kept(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    status = run(monkeypatch, "check", *words, ".")
    shown = capsys.readouterr()
    assert answers.recall(("check", *words, ".")) == (shown.out, shown.err, status)


def test_a_spoiled_file_is_no_answer(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, *CHECK)
    (place,) = (repo.parent / "cache").glob("*.answer")
    for spoiled in (b"", place.read_bytes()[:-20], b"[" * 100_000):
        place.write_bytes(spoiled)
        assert answers.recall(CHECK) is None


def test_what_git_does_not_list_is_not_kept(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / ".gitignore").write_bytes(b"out/\n")
    (repo / "out").mkdir()
    (repo / "out" / "m.py").write_bytes(MODEL)
    assert run(monkeypatch, "check", "out") == 1
    assert answers.recall(("check", "out")) is None
