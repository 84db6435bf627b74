"""Judgements that are kept: a run after an edit says what a cold one says, and judges only what looked at the edited file."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.runtime.record import replace
from codemods.store.project import Project
from ddpfix import answers, cache, engine, judging, store, workers
from ddpfix.catalog import all_codemods
from ddpfix.discovery import discover
from ddpfix.results import Judged, Report
from ddpfix.settings import Settings
from tests.store import soak
from tests.store.edits import Edits

BASE = b"""\
import lightning.pytorch as pl


class Base(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val", batch.mean())
"""
HEIR = b"""\
from base import Base


class Model(Base):
    def test_step(self, batch, batch_idx):
        self.log("test", batch.mean())
"""
ALONE = b"""\
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        dist.barrier()
"""
PINS = b"lightning==2.4\n"
TREE = {"base.py": BASE, "heir.py": HEIR, "alone.py": ALONE, "said.py": b"# rank\n", "requirements.txt": PINS}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "load", lambda *_: None)  # the report of a whole project, which stands before it
    folder = tmp_path / "tree"
    folder.mkdir()
    for path, data in TREE.items():
        (folder / path).write_bytes(data)
    return folder


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were judged."""
    seen: list[str] = []
    work = judging.judge_file

    def counted(project: Project, path: str, asking: Sequence[DdpCodemod], settings: Settings) -> Judged:
        seen.append(path)
        return work(project, path, asking, settings)

    monkeypatch.setattr(judging, "judge_file", counted)
    return seen


def check(root: Path, *, kept: bool = True, ending: bool = False) -> Report:
    (tree,) = discover([root])
    return replace(engine.check(tree, Settings(), all_codemods(), use_cache=kept, ending=ending), elapsed=0.0)


@pytest.mark.parametrize("name", ["hf-finetune", "lightning-diffusion", "raw-ddp-vision"])
def test_after_any_edits_the_findings_are_those_of_a_cold_run(name: str) -> None:
    assert soak.differences(soak.EXAMPLES / name, 6, random.Random(name)) == []


@pytest.mark.parametrize(
    ("path", "new", "again"),
    [
        ("alone.py", ALONE + b"# more\n", ["alone.py"]),
        ("alone.py", ALONE.replace(b"barrier", b"all_reduce"), ["alone.py", "base.py"]),  # which looks for that word everywhere
        ("base.py", BASE + b"# more\n", ["base.py", "heir.py"]),
        ("heir.py", HEIR + b"# more\n", ["base.py", "heir.py"]),  # who asks for heirs of the base finds it
        ("said.py", b"# nothing\n", []),
    ],
)
def test_only_what_looked_at_an_edited_file_is_judged_again(
    root: Path, judged: list[str], path: str, new: bytes, again: list[str]
) -> None:
    first = check(root)
    assert first.findings and set(judged) == {"alone.py", "base.py", "heir.py"}
    judged.clear()
    assert check(root) == first and judged == []
    (root / path).write_bytes(new)
    second = check(root)
    assert judged == again
    assert second == check(root, kept=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "requirements.txt").write_bytes(b"lightning==1.9\n"),
        lambda root: (root / "base.py").unlink(),
        lambda root: (root / "new.py").write_bytes(b"from heir import Model\n\nModel().test_step(1, 2)\n"),
        lambda root: (root / "heir.py").rename(root / "other.py"),
        lambda root: (root / "base.py").write_bytes(BASE.replace(b"Base", b"Other")),
        lambda root: (root / "base.py").write_bytes(b"def broken(:\n"),
        lambda root: (root / "heir.py").write_bytes(HEIR + b"dev_id = int(os.environ['RANK'])\n"),  # the gate knows a rank more
    ],
)
def test_whatever_changes_the_findings_are_those_of_a_cold_run(root: Path, change: Callable[[Path], object]) -> None:
    check(root)
    change(root)
    assert check(root) == check(root, kept=False)
    assert check(root) == check(root, kept=False)


def test_a_file_of_the_same_size_and_time_is_read_where_it_is_young(root: Path, judged: list[str]) -> None:
    check(root)
    (root / "alone.py").write_bytes(ALONE.replace(b"== 0", b"== 1"))
    (stored,) = (root.parent / "cache").glob("*.judgements")
    name = stored.name.removesuffix(".judgements")
    known = store.load(name)
    assert known is not None
    stamps = store.stamps(root, known.stamps)
    store.save(name, replace(known, stamps=stamps))  # as if the clock of the disk had not moved on
    judged.clear()
    check(root)
    assert judged == ["alone.py"]
    store.save(name, replace(known, stamps=stamps, taken=time.time_ns() + 2 * answers.RACY))
    judged.clear()
    check(root)
    assert judged == []  # by then it would be trusted


def test_a_part_of_the_project_is_answered_from_what_is_known_of_all(root: Path, judged: list[str]) -> None:
    check(root)
    judged.clear()
    (tree,) = discover([root / "alone.py"])
    report = engine.check(tree, Settings(), all_codemods())
    assert {f.path for f in report.findings} == {"alone.py"} and judged == []
    assert check(root).findings and judged == []


@pytest.mark.parametrize("kind", ["cut", "noise", "letter", "other values"])
def test_a_damaged_store_is_passed_over(root: Path, judged: list[str], kind: str) -> None:
    first = check(root)
    (stored,) = (root.parent / "cache").glob("*.judgements")
    good = stored.read_bytes()
    place = good.index(b"validation_step")
    stored.write_bytes({
        "cut": good[: len(good) // 2],
        "noise": answers.sealed(b"noise"),
        "letter": good[:place] + b"x" + good[place + 1 :],
        "other values": answers.sealed(b"[\x01\x00\x00\x00i\x01\x00\x00\x00"),
    }[kind])  # fmt: skip
    judged.clear()
    assert check(root) == first and len(judged) == 3
    judged.clear()
    assert check(root) == first and judged == []  # it is written anew


def test_what_several_processes_found_is_kept_together(root: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_A_WORKER", 1)
    monkeypatch.setattr(workers, "parts", lambda paths, size, most=None: [[path] for path in paths])
    first = check(root, ending=True)
    assert judged == ["alone.py"]  # the others elsewhere
    judged.clear()
    assert check(root) == first and judged == []
    assert first == check(root, kept=False)
    (root / "heir.py").write_bytes(HEIR + b"# more\n")
    assert check(root, ending=True) == check(root, kept=False)


def test_without_the_cache_nothing_is_written(root: Path) -> None:
    check(root, kept=False)
    assert not (root.parent / "cache").exists()


def test_the_edits_change_files(tmp_path: Path) -> None:
    shutil.copytree(soak.EXAMPLES / "hf-finetune", tmp_path / "tree")
    before = {p: p.read_bytes() for p in (tmp_path / "tree").rglob("*") if p.is_file()}
    edits = Edits(tmp_path / "tree", soak.EXAMPLES / "hf-finetune", random.Random(1))
    assert len({edits.make().split()[0] for _ in range(60)}) > 10
    assert before != {p: p.read_bytes() for p in (tmp_path / "tree").rglob("*") if p.is_file()}
