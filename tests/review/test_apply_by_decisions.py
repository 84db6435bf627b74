"""`apply --decisions` on real repositories: exactly what was accepted, and what it says of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from codemods.engine.user_edits import EditedLines
from ddpfix import decisions as files
from ddpfix.decisions import Decision, Decisions
from ddpfix.review.items import Review, ReviewItem
from tests.gitrepos import blob, make, own_settings, put, sh
from tests.programs import ddpfix
from tests.review.project import FILES, at, classifier, reviewed

BRANCH = "ddpfix/fixes"


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def save(repo: Path, found: Review, accept: Iterable[ReviewItem], reject: Iterable[tuple[ReviewItem, str]] = ()) -> Path:
    of = {i.id: Decision("accept") for i in accept} | {i.id: Decision("reject", why) for i, why in reject}
    path = repo.parent / "decisions.json"
    files.write(path, Decisions(found.base, of))
    return path


def changed(repo: Path) -> list[str]:
    return sh(repo, "diff", "--name-only", "main", BRANCH).split()


def test_only_what_was_accepted_is_committed_and_diff_showed_it(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    unsafe, safe = at(found, "classifier/resnet.py", 41, "DDP101"), at(found, "train.py", 34, "DDP204")
    why = "the console of each rank is read"
    path = save(repo, found, [unsafe, safe], [(at(found, "train.py", 60, "DDP203"), why)])
    shown = ddpfix(repo, "diff", "--decisions", str(path))
    assert shown.returncode == 1, shown.stderr
    done = ddpfix(repo, "apply", "--decisions", str(path))
    assert done.returncode == 0, done.stderr
    assert changed(repo) == ["DDPFIX_SUMMARY.md", "classifier/resnet.py", "train.py"]
    assert unified(shown.stdout) == unified(sh(repo, "diff", "main", BRANCH, "--", "*.py").encode())
    assert blob(repo, f"{BRANCH}:train.py").count(b"exist_ok=True") == 1
    assert b"Reviewed: 2 accepted, 1 rejected, 20 not decided (`ddpfix review` goes on there)." in done.stdout
    summary = blob(repo, f"{BRANCH}:DDPFIX_SUMMARY.md").decode()
    assert why in summary and "### Rejected" in summary
    assert "`train.py` 60: the console of each rank is read" in summary


def unified(patch: bytes) -> list[bytes]:
    """Changed lines and their places; git's own hunks name the function and the blobs, too."""
    rows = [row for row in patch.split(b"\n") if row and not row.startswith(b"index ")]
    return [row.split(b" @@")[0] if row.startswith(b"@@") else row for row in rows]


def test_everything_accepted_is_what_unsafe_fixes_makes(tmp_path: Path) -> None:
    one, other = classifier(tmp_path, name="one"), classifier(tmp_path, name="other")
    found = reviewed(one)
    path = save(one, found, [i for i in found.items if i.acceptable])
    assert ddpfix(one, "apply", "--decisions", str(path), "--no-summary-commit").returncode == 0
    assert ddpfix(other, "apply", "--unsafe-fixes", "--no-summary-commit").returncode == 0
    assert sh(one, "rev-parse", f"{BRANCH}^{{tree}}") == sh(other, "rev-parse", f"{BRANCH}^{{tree}}")
    messages = [sh(repo, "log", "--format=%s%n%b", f"main..{BRANCH}").split("ddpfix-run:")[0] for repo in (one, other)]
    assert messages[0] == messages[1]


def test_what_a_rejected_hook_holds_is_not_fixed_through_the_back_door(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    start, end = [i for i in found.items if i.finding.path == "classifier/stopwatch.py"]
    path = save(repo, found, [start], [(end, "")])
    done = ddpfix(repo, "apply", "--decisions", str(path))
    assert done.returncode == 0, done.stderr
    assert b"belongs together with classifier/stopwatch.py" in done.stdout
    assert sh(repo, "branch", "--list", BRANCH) == ""


def test_nothing_accepted_is_nothing_done(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    done = ddpfix(repo, "apply", "--decisions", str(save(repo, found, [])))
    assert done.returncode == 0, done.stderr
    assert b"Reviewed: 0 accepted, 0 rejected, 23 not decided" in done.stdout
    assert sh(repo, "branch", "--list", BRANCH) == ""


def test_a_told_finding_cannot_be_accepted(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    done = ddpfix(repo, "apply", "--decisions", str(save(repo, found, [i for i in found.items if not i.acceptable])))
    assert b"accepted, but there is no fix to make: classifier/callbacks/text_log.py:12 DDP202" in done.stdout
    assert sh(repo, "branch", "--list", BRANCH) == ""


def test_unknown_ids_are_told(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"version": 1, "decisions": {"0123456789ab": "accept"}}))
    shown = ddpfix(repo, "diff", "--decisions", str(path))
    assert shown.returncode == 0
    assert b"1 decision (0123456789ab) is dropped: no such finding here" in shown.stderr


# A base that is not HEAD any more


def test_another_commit_is_fine_while_all_that_was_accepted_stands(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    path = save(repo, found, [at(found, "train.py", 34, "DDP204")])
    put(repo, {"train.py": b"# a line above\n" + FILES["train.py"]})
    sh(repo, "commit", "-qam", "second")
    done = ddpfix(repo, "apply", "--decisions", str(path))
    assert done.returncode == 0, done.stderr
    assert f"stale: decided on {found.base[:12]}, HEAD is ".encode() in done.stdout
    assert b"all of them still stand" in done.stdout
    assert blob(repo, f"{BRANCH}:train.py").count(b"exist_ok=True") == 1


def test_another_commit_without_what_was_accepted_is_refused(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    gone, stays = at(found, "train.py", 34, "DDP204"), at(found, "train.py", 60, "DDP203")
    path = save(repo, found, [gone, stays])
    line = FILES["train.py"].splitlines(keepends=True)[33]
    put(repo, {"train.py": FILES["train.py"].replace(line, line.replace(b"plots_dir", b"str(plots_dir)"))})
    sh(repo, "commit", "-qam", "second")
    for command in ("apply", "diff"):
        done = ddpfix(repo, command, "--decisions", str(path))
        assert done.returncode == 2
        assert b"ddpfix: the decisions are stale: they were made on " in done.stderr
        assert f"1 of 2 accepted findings are not there any more ({gone.id})".encode() in done.stderr
        assert done.stderr.count(b"\n") == 1
    assert sh(repo, "branch", "--list", BRANCH) == ""
    done = ddpfix(repo, "apply", "--decisions", str(path), "--allow-stale")
    assert done.returncode == 0, done.stderr
    assert f"1 decision ({gone.id}) is dropped: found no more".encode() in done.stdout
    assert changed(repo) == ["DDPFIX_SUMMARY.md", "train.py"]


def test_a_bad_file_and_options_without_one_are_one_line(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    done = ddpfix(repo, "apply", "--decisions", "no.json")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"ddpfix: no.json does not exist: no decisions were saved there. Make one with `ddpfix review`" in done.stderr
    done = ddpfix(repo, "diff", "--write-suppressions")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"go with --decisions" in done.stderr


# Rejections as comments


def test_rejections_become_comments_in_a_commit_of_their_own(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    rejected = [i for i in found.items if i.finding.path == "train.py" and i.finding.code == "DDP203"]
    told = [i for i in found.items if not i.acceptable]
    accepted = at(found, "train.py", 34, "DDP204")
    path = save(repo, found, [accepted], [(i, "wanted\non each rank") for i in [*rejected, *told]])
    shown = ddpfix(repo, "diff", "--decisions", str(path), "--write-suppressions")
    done = ddpfix(repo, "apply", "--decisions", str(path), "--write-suppressions")
    assert done.returncode == 0, done.stderr
    _, subject, _ = sh(repo, "log", "--format=%s", f"main..{BRANCH}").splitlines()
    assert subject == "Silence the findings that were rejected in review"
    assert unified(shown.stdout) == unified(sh(repo, "diff", "main", BRANCH, "--", "*.py").encode())
    text = blob(repo, f"{BRANCH}:train.py").decode()
    assert text.count("    # ddpfix: ignore[DDP203] wanted on each rank\n") == len(rejected)
    left = {i.id for i in reviewed(repo).items}
    assert not left & {i.id for i in [*rejected, *told, accepted]}
    assert left == {i.id for i in found.items} - {i.id for i in [*rejected, *told, accepted]}


def test_only_rejections_are_comments_alone(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    found = reviewed(repo)
    path = save(repo, found, [], [(at(found, "train.py", 60, "DDP203"), "")])
    done = ddpfix(repo, "apply", "--decisions", str(path), "--write-suppressions")
    assert done.returncode == 0, done.stderr
    assert b"    # ddpfix: ignore[DDP203] rejected in review\n" in blob(repo, f"{BRANCH}:train.py")
    assert changed(repo) == ["DDPFIX_SUMMARY.md", "train.py"]


def test_several_rejections_of_one_statement_are_one_comment_and_extend_what_stands_there(tmp_path: Path) -> None:
    source = b"""\
import os

import lightning.pytorch as pl


class Notes(pl.Callback):
    # ddpfix: ignore[DDP999] older
    def on_train_start(self, trainer, pl_module):
        print("start")
"""
    repo = make(tmp_path, {"notes.py": source})
    found = reviewed(repo)
    path = save(repo, found, [], [(i, "read by people") for i in found.items])
    done = ddpfix(repo, "apply", "--decisions", str(path), "--write-suppressions", "--in-place")
    assert done.returncode == 0, done.stderr
    text = (repo / "notes.py").read_text()
    assert "    # ddpfix: ignore[DDP999, DDP201] older; read by people\n    def on_train_start" in text
    assert {item.finding.code for item in reviewed(repo).items} == {"DDP000"}  # there is no DDP999


def test_in_place_by_decisions(tmp_path: Path) -> None:
    put(tmp_path / "plain", {**FILES, "pyproject.toml": b""})
    repo = tmp_path / "plain"
    found = reviewed(repo)
    path = save(repo, found, [at(found, "train.py", 34, "DDP204")])
    done = ddpfix(repo, "apply", "--decisions", str(path), "--in-place")
    assert done.returncode == 0, done.stderr
    assert (repo / "train.py").read_bytes().count(b"exist_ok=True") == 1
    assert (repo / "classifier/resnet.py").read_bytes() == FILES["classifier/resnet.py"]


def test_edited_lines_of_a_file_that_the_fix_does_not_touch_are_not_taken(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    put(repo, {"secret.py": b"allowed = False\n"})
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "more")
    found = reviewed(repo)
    item = next(i for i in found.items if i.acceptable)
    edited = (EditedLines("secret.py", 1, "allowed = False\n", "allowed = True\n"),)
    path = repo.parent / "decisions.json"
    files.write(path, Decisions(found.base, {item.id: Decision("accept", "", edited)}))
    done = ddpfix(repo, "apply", "--decisions", str(path), ".")
    assert (repo / "secret.py").read_bytes() == b"allowed = False\n", done
    assert b"Nothing to fix" in done.stdout
