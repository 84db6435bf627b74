from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.api.findings import Applicability
from ddpfix import answers, engine
from ddpfix.catalog import all_codemods
from ddpfix.discovery import Tree, discover
from ddpfix.results import Report
from ddpfix.settings import Settings
from ddpfix.unpickling import Restricted
from tests.gitrepos import make, own_settings

MODEL = b"""\
import lightning.pytorch as pl


class M(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val", batch.mean())
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(tmp_path / "cache"))
    return make(tmp_path, {"a.py": MODEL, "b.py": b"x = 1\n", "requirements.txt": b"lightning==2.4\n"})


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the files were really read."""
    seen: list[int] = []
    work = engine._check

    def counted(*arguments: object) -> Report:
        seen.append(1)
        return work(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "_check", counted)
    return seen


@pytest.fixture(autouse=True)
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files made by a test are as old as those of a user."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10 * answers.RACY)


def tree(repo: Path) -> Tree:
    (found,) = discover([repo])
    return found


def check(repo: Path, settings: Settings | None = None) -> Report:
    return engine.check(tree(repo), settings or Settings(), all_codemods())


def test_a_second_run_is_answered_from_the_cache(repo: Path, runs: list[int]) -> None:
    first = check(repo)
    assert first.findings and runs == [1]
    assert check(repo) == first and runs == [1]
    assert check(repo).findings[0].applicability in Applicability


def written(path: str, data: bytes) -> Callable[[Path], object]:
    return lambda repo: (repo / path).write_bytes(data)


def same_size_and_time(repo: Path) -> None:
    about = (repo / "b.py").stat()
    (repo / "b.py").write_bytes(b"y = 2\n")
    os.utime(repo / "b.py", ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        written("b.py", b"x = 22\n"),
        written("requirements.txt", b"lightning==2.5\n"),
        written("new.py", b""),
        written("new.yaml", b""),
        lambda repo: (repo / "b.py").unlink(),
        lambda repo: (repo / "b.py").rename(repo / "c.py"),
        same_size_and_time,
    ],
)
def test_any_change_of_the_files_is_seen(repo: Path, runs: list[int], change: Callable[[Path], object]) -> None:
    check(repo)
    change(repo)
    check(repo)
    assert runs == [1, 1]


def test_settings_codemods_and_what_is_asked_are_part_of_the_question(repo: Path, runs: list[int]) -> None:
    check(repo)
    check(repo, Settings(per_file_ignores={"a.py": ("DDP1",)}))
    engine.check(tree(repo), Settings(), all_codemods()[:1])
    engine.check(replace(tree(repo), chosen=("b.py",)), Settings(), all_codemods())
    assert len(runs) == 4
    check(repo)
    assert len(runs) == 4


def test_the_cache_can_be_left_out(repo: Path, runs: list[int], tmp_path: Path) -> None:
    for _ in range(2):
        engine.check(tree(repo), Settings(), all_codemods(), use_cache=False)
    assert len(runs) == 2 and not (tmp_path / "cache").exists()


def test_a_file_as_young_as_the_report_is_not_trusted(repo: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: (repo / "b.py").stat().st_mtime_ns + answers.RACY // 2)
    check(repo)
    check(repo)
    assert len(runs) == 2


def test_a_file_that_changes_while_it_is_checked(repo: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    work = engine._check

    def meanwhile(*arguments: object) -> Report:
        report = work(*arguments)  # type: ignore[arg-type]
        (repo / "a.py").write_bytes(b"x = 1\n")
        return report

    monkeypatch.setattr(engine, "_check", meanwhile)
    assert check(repo).findings
    monkeypatch.setattr(engine, "_check", work)
    assert not check(repo).findings


class Evil:
    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.touched),)


def by_attributes(touched: Path) -> bytes:
    """A pickle that walks from an allowed class to eval, by getattr."""
    code = f"__import__('os').mkdir({str(touched)!r})"
    lines = [b"cbuiltins", b"getattr", b"(ccodemods.findings", b"Applicability", b"V__init__", b"tR"]
    assert code
    return b"\n".join(lines) + b"."


@pytest.mark.parametrize("kind", ["empty", "noise", "cut", "other values", "evil", "attributes", "imported name", "dotted"])
def test_a_damaged_or_hostile_cache_file_is_passed_over(repo: Path, runs: list[int], tmp_path: Path, kind: str) -> None:
    first = check(repo)
    (stored,) = (tmp_path / "cache").glob("*.report")
    good, touched = stored.read_bytes(), tmp_path / "touched"
    bad = {
        "empty": b"",
        "noise": b"\x80\x05noise",
        "cut": good[: len(good) // 2],
        "other values": pickle.dumps(("x", 1, (1, 2, 3, 4, 5))),
        "evil": pickle.dumps(Evil(touched)),
        "attributes": by_attributes(touched),
        "imported name": b"ccodemods.findings\ndataclass\n.",
        "dotted": b"\x80\x04\x8c\x11codemods.findings\x8c\x16Finding.__init__.__globals__\x93.",
    }[kind]
    for number, spoiled in enumerate((bad, answers.sealed(bad))):  # also by one who knows how to write the checksum
        stored.write_bytes(spoiled)
        assert replace(check(repo), elapsed=0) == replace(first, elapsed=0)
        assert len(runs) == 2 + number and not touched.exists()


def test_one_spoiled_letter_is_not_shown_as_a_finding(repo: Path, tmp_path: Path) -> None:
    check(repo)
    (stored,) = (tmp_path / "cache").glob("*.report")
    good = stored.read_bytes()
    place = good.index(b"validation_step")
    wrong = good[:place] + b"x" + good[place + 1 :]
    assert answers.opened(good) and len(wrong) == len(good)
    stored.write_bytes(wrong)
    assert "xalidation_step" not in repr(check(repo))
    for spoiled in (wrong, good[:-1], good + b"x", good[:3]):
        with pytest.raises(ValueError, match="checksum"):
            answers.opened(spoiled)


@pytest.mark.parametrize("name", ["dataclass", "Enum", "Sequence", "lowest", "annotations", "Finding.code"])
def test_only_values_are_made(name: str) -> None:
    import io

    reader = Restricted(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError):
        reader.find_class("codemods.api.findings", name)
    with pytest.raises(pickle.UnpicklingError):
        reader.find_class("builtins", "eval")
    assert reader.find_class("builtins", "getattr") is not getattr


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert check(repo).findings


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DDPFIX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Path(answers.folder()) == tmp_path / "ddpfix"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(answers.folder()) == tmp_path / ".cache" / "ddpfix"


def test_a_known_answer_imports_no_codemod(tmp_path: Path, repo: Path) -> None:
    program = (
        "import sys, time; now = time.time_ns; time.time_ns = lambda: now() + 10**11\n"
        "sys.argv = ['ddpfix', 'check', '.']\n"
        "from ddpfix import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(str('codemods.metrics.unsynced_metric' in sys.modules))\n"
    )
    env = {**os.environ, "DDPFIX_CACHE_DIR": str(tmp_path / "quick")}
    first, second = (
        subprocess.run([sys.executable, "-P", "-c", program], cwd=repo, capture_output=True, env=env, check=False, text=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout != ""
    assert (first.stderr[-4:], second.stderr[-5:]) == ("True", "False")
