"""What a reviewer is shown of each finding: its own change, with numbers and context."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import libcst
import pytest

from codemods.engine.fix_source import with_unsafe
from codemods.store.project import Project
from ddpfix import engine
from ddpfix.catalog import all_codemods, selected
from ddpfix.discovery import discover
from ddpfix.review.items import hunks_of, items_of
from ddpfix.settings import Settings
from tests.gitrepos import make, own_settings, put, sh
from tests.review.project import FILES, STOPWATCH, at, classifier, reviewed


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def test_every_finding_is_an_item_with_the_commit(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    assert found.base == sh(repo, "rev-parse", "HEAD")
    assert len(found.items) == len(found.by_id) == 24
    assert [i.level for i in found.items].count("unsafe") == 1
    (told,) = [i for i in found.items if not i.acceptable]
    assert told.level == "display" and told.why_not == told.reason != "" and not told.hunks


def test_an_item_has_its_own_change_alone(tmp_path: Path) -> None:
    item = at(reviewed(classifier(tmp_path)), "classifier/resnet.py", 41, "DDP101")
    assert item.level == "unsafe" and item.reason and item.evidence
    (hunk,) = item.hunks
    (old,) = [r for r in hunk.rows if r.mark == "-"]
    (new,) = [r for r in hunk.rows if r.mark == "+"]
    assert (old.old, new.new) == (41, 41)
    assert new.text == old.text.replace(")", ", sync_dist=True)")
    assert [r.old for r in hunk.rows if r.mark == " "] == [38, 39, 40, 42, 43, 44]
    (lines,) = item.replaced
    assert (lines.before, lines.after) == (old.text + "\n", new.text + "\n")


def test_mates_name_each_other(tmp_path: Path) -> None:
    found = reviewed(classifier(tmp_path))
    one, other = [i for i in found.items if i.mates]
    assert {one.finding.path, other.finding.path} == {"classifier/stopwatch.py"}
    assert (one.mates, other.mates) == ((other.id,), (one.id,))


def test_each_patch_applies_with_git_to_what_the_fix_alone_makes(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    for item in reviewed(repo).items:
        if item.acceptable:
            subprocess.run(["git", "-C", str(repo), "apply", "-"], input=item.patch.encode(), check=True)
            for lines in item.replaced:
                text = (repo / lines.path).read_bytes().decode()
                assert lines.after in text
            assert sh(repo, "diff", "--name-only").split() == sorted({h.path for h in item.hunks})
            sh(repo, "checkout", "-q", "--", ".")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_keep_their_ends_and_rows_have_none(tmp_path: Path, end: str) -> None:
    repo = make(tmp_path, {"stopwatch.py": STOPWATCH.replace(b"\n", end.encode())})
    item = reviewed(repo).items[0]
    assert all(row.text == row.text.rstrip("\r\n") for hunk in item.hunks for row in hunk.rows)
    assert item.replaced[0].before.endswith(end) and item.replaced[0].after.endswith(end)


def test_without_git_there_is_no_commit(tmp_path: Path) -> None:
    put(tmp_path / "plain", {**FILES, "pyproject.toml": b""})
    assert reviewed(tmp_path / "plain").base == ""


LINES = [f"{n}\n" for n in range(1, 31)]


@pytest.mark.parametrize(
    ("made", "headers"),
    [
        ([(1, 1, "a\n")], ["@@ -1,4 +1,4 @@"]),
        ([(30, 30, "a\nb\n")], ["@@ -27,4 +27,5 @@"]),
        ([(5, 5, ""), (12, 12, "a\nb\n")], ["@@ -2,14 +2,14 @@"]),
        ([(5, 5, ""), (13, 13, "a\nb\n")], ["@@ -2,7 +2,6 @@", "@@ -10,7 +9,8 @@"]),
        ([(5, 6, "5\nx\n6\n")], ["@@ -3,6 +3,7 @@"]),
    ],
)
def test_hunks_are_counted_as_diff_counts_them(made: list[tuple[int, int, str]], headers: list[str]) -> None:
    assert [h.header for h in hunks_of("a.py", LINES, made)] == headers


def test_a_hunk_of_an_empty_side_is_git_s(tmp_path: Path) -> None:
    (hunk,) = hunks_of("a.py", ["x\n"], [(1, 1, "")])
    assert hunk.header == "@@ -1 +0,0 @@"


def test_five_hundred_findings_cost_little_more_than_the_parsing_of_their_files(tmp_path: Path) -> None:
    call = '        self.log("loss_{n}", loss, on_epoch=True)\n'
    method = "    def validation_step(self, batch, batch_idx):\n        loss = self(batch).mean()\n"
    head = "import lightning.pytorch as pl\n\n\n"
    body = "".join(f"class M{k}(pl.LightningModule):\n{method}" + "".join(call.format(n=n) for n in range(10)) for k in range(10))
    repo = make(tmp_path, {f"m{i}.py": (head + body).encode() for i in range(5)})
    (tree,) = discover([repo])
    report = engine.check(tree, Settings(), all_codemods(), use_cache=False)
    assert len(report.findings) == 500
    started = time.process_time()
    for _ in range(5):
        libcst.parse_module(head + body)
    parsing = time.process_time() - started
    started = time.process_time()
    items = items_of(report.findings, Project(tree.files, engine.disk_reader(repo)))
    spent = time.process_time() - started
    assert all(i.acceptable for i in items)
    assert spent < 60 * parsing, "a parse of its file for every finding would be a hundred and more"


def test_all_items_accepted_are_what_fix_makes_at_first(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    (tree,) = discover([repo])
    fixed = engine.fix(tree, Settings(), selected(Settings().selection), with_unsafe)
    assert {i.id for i in reviewed(repo).items if i.acceptable} == {f.id for f in fixed.fixed}


