from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.engine.fix_source import safe
from ddpfix import engine
from ddpfix.catalog import all_codemods
from ddpfix.discovery import discover
from ddpfix.results import Report
from ddpfix.settings import Settings
from tests.gitrepos import make, own_settings, put

HERE = Path(__file__).parent.parent
MODEL = b"""\
import lightning.pytorch as pl
import torchmetrics


class M(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.acc = torchmetrics.Accuracy(task="binary")

    def validation_step(self, batch, batch_idx):
        self.log("acc", self.acc, sync_dist=True)
"""
FIXED = MODEL.replace(b", sync_dist=True", b"")
NEWER = b"type X = int\n" if sys.version_info < (3, 12) else b"x = (t for\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    return make(tmp_path, {"a.py": MODEL, "pkg/b.py": MODEL, "plain.py": b"x = 1\n"})


def check(repo: Path, **settings: object) -> Report:
    (tree,) = discover([repo])
    return engine.check(tree, Settings(**settings), all_codemods(), use_cache=False)  # type: ignore[arg-type]


def told(report: Report) -> dict[str, str]:
    return {f.path: f.error for f in report.failed}


def test_files_are_counted_and_findings_have_places(repo: Path) -> None:
    report = check(repo)
    assert (report.scanned, report.parsed) == (3, 2)
    assert {(f.path, f.code, f.span.line) for f in report.findings} == {("a.py", "DDP103", 11), ("pkg/b.py", "DDP103", 11)}
    assert report.elapsed > 0 and not report.failed


def test_files_that_are_no_python_are_in_neither_of_the_counts(repo: Path) -> None:
    put(repo, {f"jobs/{n}.sh": b"torchrun --nproc_per_node=2 python a.py\n" for n in range(4)})
    report = check(repo)
    assert "jobs/0.sh" in {f.path for f in report.findings}  # they are read, all the same
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(), all_codemods(), safe).report
    assert (report.scanned, report.parsed) == (fixed.scanned, fixed.parsed) == (3, 2)


def test_what_cannot_be_read_is_told_and_stops_nothing(repo: Path) -> None:
    bad = {
        "syntax.py": MODEL + b"def (:\n",
        "latin.py": MODEL + b"# \xff\n",
        "cookie.py": b"# coding: klingon\n" + MODEL,
        "null.py": MODEL + b"\0",
        "deep.py": MODEL + b"x = " + b"-" * 60_000 + b"1\n",
        "newer.py": MODEL + NEWER,
        "two.py": MODEL + b"print 'x'\n",
    }
    put(repo, bad)
    report = check(repo)
    assert set(told(report)) == set(bad) and all(told(report).values())
    assert {f.path for f in report.findings} == {"a.py", "pkg/b.py"}
    assert "klingon" in told(report)["cookie.py"] and "Python 2" in told(report)["two.py"]
    if sys.version_info < (3, 12):
        assert "it may need Python 3.12" in told(report)["newer.py"]
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(), all_codemods(), safe)
    assert set(fixed.after) == {"a.py", "pkg/b.py"} and {f.path for f in fixed.report.failed} == set(bad)


def test_links_folders_and_missing_files(repo: Path) -> None:
    (repo / "link.py").symlink_to("a.py")
    (repo / "lost.py").symlink_to("nowhere.py")
    (repo / "plain.py").unlink()
    report = check(repo)
    assert set(told(report)) == {"link.py", "lost.py"} and "symbolic link" in told(report)["link.py"]
    assert (report.scanned, report.parsed) == (2, 2)
    (tree,) = discover([repo])
    assert {f.path for f in engine.fix(tree, Settings(), all_codemods(), safe).report.failed} == {"link.py", "lost.py"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_opened(repo: Path) -> None:
    (repo / "a.py").chmod(0)
    assert told(check(repo)) == {"a.py": "it cannot be opened"}


def test_a_file_that_is_data(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LARGEST", 100)
    assert set(told(check(repo))) == {"a.py", "pkg/b.py"}


def test_the_reader_never_follows_a_link_and_reads_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x" * 100_000)
    (tmp_path / "l.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "p.py")
    read = engine.disk_reader(tmp_path)
    assert read("a.py") == b"x" * 100_000
    assert read("p.py") is None
    assert read("l.py") is None and read("gone.py") is None and read(".") is None


def test_ignored_in_some_files(repo: Path) -> None:
    assert {f.path for f in check(repo, per_file_ignores={"pkg/*": ("DDP1",)}).findings} == {"a.py"}
    assert {f.path for f in check(repo, per_file_ignores={"*": ("synced-metric-object",)}).findings} == set()
    put(repo, {"plain.py": b"x = 1  # ddpfix: ignore[DDP103]\n"})
    assert {f.code for f in check(repo).findings} == {"DDP000", "DDP103"}
    assert {f.code for f in check(repo, ignore=("DDP0",)).findings} == {"DDP103"}
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(per_file_ignores={"pkg/*": ("DDP103",)}), all_codemods(), safe)
    assert set(fixed.after) == {"a.py"}


def test_fixing_is_in_memory(repo: Path) -> None:
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(), all_codemods(), safe)
    assert dict(fixed.after) == {"a.py": FIXED, "pkg/b.py": FIXED}
    assert fixed.before["a.py"] == MODEL == (repo / "a.py").read_bytes()
    assert len(fixed.fixed) == 2 and not fixed.left and not fixed.withdrawn


def test_fixing_other_bytes_than_those_of_the_work_tree(repo: Path) -> None:
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(), all_codemods(), safe, read={"a.py": MODEL + b"y = 2\n", "pkg/b.py": b""}.get)
    assert dict(fixed.after) == {"a.py": FIXED + b"y = 2\n"}


def test_line_edits_are_the_lines_that_change(repo: Path) -> None:
    report = check(repo)
    edits = engine.line_edits(report)
    assert set(edits) == {f.id for f in report.findings}
    for finding in report.findings:
        (row,) = edits[finding.id]
        new = '        self.log("acc", self.acc)\n'
        assert row == {"path": finding.path, "start_line": 11, "end_line": 11, "replacement": new}


def test_the_collector_is_switched_on_again(repo: Path) -> None:
    assert gc.isenabled()
    check(repo)
    assert gc.isenabled()
    gc.disable()
    try:
        check(repo)
        assert not gc.isenabled()
    finally:
        gc.enable()


CHECK = """
import sys
from pathlib import Path
from ddpfix import engine
from ddpfix.catalog import all_codemods
from ddpfix.discovery import discover
from ddpfix.settings import load
(tree,) = discover([Path(sys.argv[1])])
report = engine.check(tree, load(tree.root), all_codemods())
assert report.findings
heavy = [name for name in ("libcst", "git", "yaml") if name in sys.modules]
assert not heavy, heavy
"""


def test_checking_imports_neither_libcst_nor_gitpython(repo: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(HERE), "DDPFIX_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CHECK, str(repo)], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_yaml_files_are_read_where_they_matter_and_are_no_python_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path)
    files = {
        "train.py": b"import lightning.pytorch as pl\nimport hydra\n\nhydra.utils.instantiate(cfg.trainer).fit(load())\n",
        "conf/trainer.yaml": b"compute_environment: LOCAL_MACHINE\ndistributed_type: NO\nnum_processes: 4\n",
        "conf/other.yaml": b"batch_size: 4\n",
        "conf/broken.yaml": b"strategy: [ddp_find_unused_parameters_true\n",
        "conf/latin.yml": b"# find_unused_parameters \xe9\n",
        "vendor/conf/trainer.yaml": b"strategy: ddp_find_unused_parameters_true\n",
    }
    repo = make(tmp_path, files)
    (repo / "conf" / "link.yaml").symlink_to("trainer.yaml")
    report = check(repo)
    assert [(f.path, f.code, f.span.line) for f in report.findings] == [("conf/trainer.yaml", "DDP603", 2)]
    assert report.scanned == 1
    assert set(told(report)) == {"conf/latin.yml"} and "utf-8" in told(report)["conf/latin.yml"]


def test_a_suppression_of_what_is_not_worth_parsing_is_told_as_unused(repo: Path) -> None:
    line = "    return checkpoint(block, x)  # ddpfix: ignore[DDP004] kept on purpose\n"
    put(repo, {"block.py": f"from torch.utils.checkpoint import checkpoint\n\n\ndef f(block, x):\n{line}".encode()})
    found = [(f.code, f.span.line) for f in check(repo).findings if f.path == "block.py"]
    assert found == [("DDP000", 5)]
