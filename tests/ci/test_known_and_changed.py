"""An old repository starts today: known findings keep quiet, and a change answers for what it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddpfix.git.changes import read_patch
from tests.ci.conftest import run
from tests.gitrepos import make, put, sh
from tests.programs import MODULE

BASE = ("check", "--baseline", "known.json")


def written(folder: Path, **files: bytes) -> Path:
    repo = make(folder, {f"{name}.py": data for name, data in (files or {"model": MODULE}).items()})
    done = run(repo, *BASE, "--write-baseline", ".")
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    return repo


def said(done: object) -> str:
    return done.stderr.decode()  # type: ignore[attr-defined,no-any-return]


def entries(repo: Path) -> list[dict[str, str]]:
    return json.loads((repo / "known.json").read_text())["findings"]  # type: ignore[no-any-return]


def test_what_is_written_is_known_and_does_not_fail(tmp_path: Path) -> None:
    repo = written(tmp_path)
    assert [(e["path"], e["code"], e["symbol"]) for e in entries(repo)] == [
        ("model.py", "DDP101", "Model.validation_step"), ("model.py", "DDP103", "Model.validation_step"),
    ]  # fmt: skip
    done = run(repo, *BASE, ".")
    assert (done.returncode, done.stdout) == (0, b"")
    assert "known.json: 2 known findings left out" in said(done)


def test_a_known_finding_stays_known_when_its_line_moves(tmp_path: Path) -> None:
    repo = written(tmp_path)
    put(repo, {"model.py": b"# a line\n# another\n" + MODULE})
    assert run(repo, *BASE, ".").returncode == 0
    before = (repo / "known.json").read_bytes()
    run(repo, *BASE, "--write-baseline", ".")
    assert (repo / "known.json").read_bytes() == before


def test_a_renamed_file_takes_its_known_findings_along(tmp_path: Path) -> None:
    repo = written(tmp_path)
    (repo / "model.py").rename(repo / "renamed.py")
    done = run(repo, *BASE, ".")
    assert (done.returncode, done.stdout) == (0, b"")
    assert "can go" not in said(done)
    run(repo, *BASE, "--write-baseline", ".")
    assert {e["path"] for e in entries(repo)} == {"renamed.py"}
    # a copy is another one: the file of the entry is there still
    put(repo, {"copy.py": MODULE})
    done = run(repo, *BASE, ".")
    assert done.returncode == 1
    assert done.stdout.decode().startswith("copy.py:")


def test_a_new_finding_fails_alone(tmp_path: Path) -> None:
    repo = written(tmp_path)
    put(repo, {"model.py": MODULE + b'        self.log("val/new", loss)\n'})
    done = run(repo, *BASE, ".")
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[0].startswith("model.py:17:9: DDP101") and done.stdout.count(b"\n") == 1


def test_every_format_leaves_known_findings_out(tmp_path: Path) -> None:
    repo = written(tmp_path)
    put(repo, {"model.py": MODULE + b'        self.log("val/new", loss)\n'})
    run(repo, *BASE, ".", "-o", "sarif=out/x.sarif", "-o", "json=out/x.json")
    sarif = json.loads((repo / "out/x.sarif").read_text())["runs"][0]
    assert [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in sarif["results"]] == [17]
    report = json.loads((repo / "out/x.json").read_text())
    assert [f["line"] for f in report["findings"]] == [17]
    assert report["baseline"] == {"known": 2, "gone": []}


def test_what_was_mended_is_told_and_taken_out(tmp_path: Path) -> None:
    repo = written(tmp_path, model=MODULE, other=MODULE)
    run(repo, "apply", "--in-place", "--select", "DDP101", "model.py")
    (repo / "other.py").unlink()
    done = run(repo, *BASE, ".")
    assert "3 entries can go" in said(done)
    assert "  model.py: DDP101 Model.validation_step\n" in said(done)
    assert "  other.py: DDP103 Model.validation_step\n" in said(done)
    run(repo, *BASE, "--write-baseline", ".")
    assert [(e["path"], e["code"]) for e in entries(repo)] == [("model.py", "DDP103")]
    assert "can go" not in said(run(repo, *BASE, "."))


def test_what_nobody_asked_about_is_not_gone(tmp_path: Path) -> None:
    repo = written(tmp_path, model=MODULE, other=MODULE)
    for words in (["model.py"], ["--select", "DDP101", "."], ["--exclude", "other.py", "."]):
        assert "can go" not in said(run(repo, *BASE, *words)), words
    run(repo, *BASE, "--write-baseline", "--select", "DDP101", "model.py")
    assert len(entries(repo)) == 4


@pytest.mark.parametrize(
    ("content", "words", "says"),
    [
        (None, [], "known.json cannot be used as a baseline: No such file or directory. Make one with --write-baseline"),
        (b"[]", [], "cannot be used as a baseline: it holds something else"),
        (b'{"version": 2}', [], "its version is 2, this program reads 1"),
        (b"\xff", [], "it holds something else (UnicodeDecodeError"),
        (None, ["--write-baseline", "--changed-since", "HEAD"], "Leave --changed-since and --stdin-filename out"),
    ],
)
def test_a_baseline_that_is_none_is_an_error(tmp_path: Path, content: bytes | None, words: list[str], says: str) -> None:
    repo = make(tmp_path, {"model.py": MODULE, **({"known.json": content} if content is not None else {})})
    done = run(repo, *BASE, *words, ".")
    assert done.returncode == 2
    assert says in said(done)


# Changes

TWO = MODULE + b'\n    def test_step(self, batch, batch_idx):\n        loss = self(batch)\n        self.log("test/loss", loss)\n'


def lines(repo: Path, *words: str) -> list[str]:
    done = run(repo, "check", "--output-format", "concise", "--changed-since", *words)
    assert done.returncode in (0, 1), done.stderr
    return [":".join(line.split(":")[:2]) for line in done.stdout.decode().splitlines()]


def test_a_change_answers_for_the_functions_it_touches(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": TWO, "other.py": MODULE})
    sh(repo, "switch", "-qc", "work")
    assert lines(repo, "main", ".") == []
    put(repo, {"model.py": TWO.replace(b"loss = self(batch)", b"loss = self(batch).mean()")})
    assert lines(repo, "main", ".") == ["model.py:20"]  # not committed
    sh(repo, "commit", "-qam", "work")
    assert lines(repo, "main", ".") == ["model.py:20"]
    put(repo, {"new.py": MODULE})  # git does not know it yet
    assert lines(repo, "main", ".") == ["model.py:20", "new.py:15", "new.py:16"]
    assert lines(repo, "HEAD", ".") == ["new.py:15", "new.py:16"]


def test_what_the_other_branch_did_since_is_not_ours(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": TWO})
    sh(repo, "switch", "-qc", "work")
    sh(repo, "switch", "-q", "main")
    put(repo, {"model.py": MODULE})
    sh(repo, "commit", "-qam", "main goes on")
    sh(repo, "switch", "-q", "work")
    assert lines(repo, "main", ".") == []


def test_lines_taken_out_are_a_change_of_their_function(tmp_path: Path) -> None:
    with_line = TWO.replace(b'        self.log("test/loss"', b'        loss = loss.mean()\n        self.log("test/loss"')
    repo = make(tmp_path, {"model.py": with_line})
    put(repo, {"model.py": TWO})
    assert lines(repo, "HEAD", ".") == ["model.py:20"]


def test_a_finding_whose_reason_changed_belongs_to_the_change(tmp_path: Path) -> None:
    plain = MODULE.replace(b'torchmetrics.Accuracy(task="multiclass", num_classes=10)', b"make()")
    repo = make(tmp_path, {"model.py": plain})
    put(repo, {"model.py": MODULE})  # in __init__; DDP103 is found in validation_step because of it
    assert lines(repo, "HEAD", ".") == ["model.py:16"]


def test_odd_names_and_the_users_own_diff_settings(tmp_path: Path) -> None:
    names = ['träin "x".py', "with blank.py", "tab\there.py", "line\nbreak.py"]
    settings = {"diff.noprefix": "true", "color.diff": "always", "diff.external": "false"}
    repo = make(tmp_path, {**dict.fromkeys(names, b"x = 1\n"), ".gitattributes": b"*.py -diff\n"}, settings)
    put(repo, dict.fromkeys(names, MODULE))
    found = json.loads(run(repo, "check", "--output-format", "json", "--changed-since", "HEAD", ".").stdout)["findings"]
    assert {f["path"] for f in found} == set(names)


def test_a_file_that_only_moved_did_not_change(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": TWO})
    sh(repo, "mv", "model.py", "moved.py")
    assert lines(repo, "HEAD", ".") == []
    put(repo, {"moved.py": TWO.replace(b"loss = self(batch)", b"loss = self(batch).mean()")})
    assert lines(repo, "HEAD", ".") == ["moved.py:20"]


def test_text_that_looks_like_a_header_is_text() -> None:
    patch = (
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1 @@\n--- a/x\n-b\n+++ b/evil.py\n"
        b"\\ No newline at end of file\n@@ -9,0 +9,2 @@ def f():\n+@@ -1 +1 @@\n+y\n@@ -20 +21,0 @@\n-z\n"
    )
    assert read_patch(patch) == {"a.py": ((1, 1), (9, 10), (21, 22))}


def test_what_git_cannot_tell_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = run(repo, "check", "--changed-since", "origin/main", ".")
    assert done.returncode == 2
    assert "cannot find out what changed since 'origin/main': git knows no commit of that name" in said(done)
    for i in range(2):
        put(repo, {"a.py": b"x = %d\n" % i})
        sh(repo, "add", "-A")
        sh(repo, "commit", "-qm", "more")
    sh(repo, "branch", "old", "HEAD~2")
    shallow = tmp_path / "shallow"
    sh(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", str(shallow))
    sh(shallow, "fetch", "-q", "--depth=1", "origin", "old:old")
    done = run(shallow, "check", "--changed-since", "old", ".")
    assert done.returncode == 2
    assert "the history fetched here is too short to hold it" in said(done) and "fetch-depth: 0" in said(done)
    put(tmp_path, {"plain/model.py": MODULE})
    done = run(tmp_path / "plain", "check", "--changed-since", "HEAD", ".")
    assert done.returncode == 2 and "is not a git repository" in said(done)
