"""What is committed, byte for byte, and by whom; nothing of the user's moves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, Step
from tests.git.runs import BRANCH, SUMMARY, go
from tests.gitrepos import blob, everything, make, put, sh


def test_dirty_staged_and_untracked_work_stays_as_it_is(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"stashed\n"})
    sh(repo, "stash")
    put(repo, {"a.py": b"x = 1\nmine = 1\n", "pkg/b.py": b"y = 1\nstaged = 1\n", "new.py": b"untracked = 1\n"})
    sh(repo, "add", "pkg/b.py")
    before = everything(repo)
    made = go(repo)
    assert everything(repo) == before
    assert blob(repo, f"{BRANCH}:a.py") == b"x = 2\n"
    assert sh(repo, "log", "--format=%s", f"main..{BRANCH}").splitlines() == ["Add the summary", "Fix ones"]
    assert [subject for _, subject in made.commits] == ["Fix ones", "Add the summary"]
    assert made.commits[-1][0] == sh(repo, "rev-parse", BRANCH)
    assert sh(repo, "rev-parse", f"{BRANCH}~2") == made.base == sh(repo, "rev-parse", "main")
    assert sh(repo, "log", "-1", "--format=%B", f"{BRANCH}~1") == "Fix ones\n\nOnes are twos.\n\nddpfix-run: run1"
    assert sh(repo, "log", "-1", "--format=%an <%ae>", BRANCH) == "Ada <ada@example.test>"
    assert made.identity_note is None
    assert sh(repo, "fsck", "--strict", "--no-dangling") == ""


def test_steps_that_change_nothing_make_no_commit_and_no_branch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    now = dgit.snapshot(repo)
    same = Step("nothing", {"a.py": b"x = 1\n"})
    assert dgit.commit_steps(now, [same, Step("none", {})], branch=BRANCH, run_id="r").commits == ()
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""
    real = Step("real", {"a.py": b"x = 3\n"})
    assert len(dgit.commit_steps(now, [same, real, real], branch=BRANCH, run_id="r").commits) == 1


@pytest.mark.parametrize(
    ("attributes", "autocrlf"),
    [(b"", "false"), (b"", "true"), (b"", "input"), (b"* text=auto eol=crlf\n", "false"), (b"*.py -text\n", "true")],
)
def test_line_endings_are_stored_as_they_are(tmp_path: Path, attributes: bytes, autocrlf: str) -> None:
    repo = make(
        tmp_path, {"crlf.py": b"x = 1\r\ny = 5\r\n", "lf.py": b"x = 1\ny = 5\n", "mixed.py": b"x = 1\r\ny = 5\n"}
    )
    put(repo, {".gitattributes": attributes})
    sh(repo, "config", "core.autocrlf", autocrlf)
    sh(repo, "add", ".gitattributes")
    sh(repo, "commit", "-qm", "attributes")
    before = everything(repo)
    go(repo)
    assert everything(repo) == before
    assert blob(repo, f"{BRANCH}:crlf.py") == b"x = 2\r\ny = 5\r\n"
    assert blob(repo, f"{BRANCH}:lf.py") == b"x = 2\ny = 5\n"
    assert blob(repo, f"{BRANCH}:mixed.py") == b"x = 2\r\ny = 5\n"
    changed = sh(repo, "diff-tree", "-r", "--numstat", "main", BRANCH, "--", "*.py").splitlines()
    assert [row.split("\t")[:2] for row in changed] == [["1", "1"]] * 3


def test_filters_apply_only_where_they_are_asked_for(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", ".gitattributes": b"*.py filter=mark\n"})
    sh(repo, "config", "filter.mark.clean", "sed s/^/CLEAN:/")
    go(repo, branch="raw")
    go(repo, branch="clean", filters=True)
    assert blob(repo, "raw:a.py") == b"x = 2\n"
    assert blob(repo, "clean:a.py") == b"CLEAN:x = 2\n"


def test_hooks_do_not_run_and_cannot_block(tmp_path: Path) -> None:
    repo = make(tmp_path)
    for hook in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
    ):
        path = repo / ".git/hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{hook}\nexit 1\n")
        path.chmod(0o755)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    dgit.undo(repo)
    assert not list(tmp_path.glob("ran-*"))


def test_hooks_run_where_they_are_asked_for(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\r\n", "pkg/b.py": b"y = 1\n"})
    put(repo, {"a.py": b"mine\n"})
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text(
        f"#!/bin/sh\ncat pkg/b.py >> {tmp_path}/seen\ngrep -q 3 pkg/b.py && echo no threes && exit 1\nexit 0\n"
    )
    hook.chmod(0o755)
    before = everything(repo)
    made = go(repo, run_hooks=True)
    assert everything(repo) == before
    assert (tmp_path / "seen").read_text() == "y = 2\ny = 2\n"
    assert [subject for _, subject in made.commits] == ["Fix ones", "Add the summary"]
    assert blob(repo, f"{BRANCH}:a.py") == b"x = 2\r\n"
    assert sh(repo, "rev-parse", f"{BRANCH}~2") == sh(repo, "rev-parse", "main")
    assert len(sh(repo, "worktree", "list").splitlines()) == 1
    now = dgit.snapshot(repo)
    with pytest.raises(GitRefusal, match="no threes"):
        dgit.commit_steps(now, [Step("x", {"pkg/b.py": b"3\n"})], branch="two", run_id="run2", run_hooks=True)
    assert everything(repo) == before
    assert sh(repo, "branch", "--list", "two") == ""


def test_the_executable_bit_is_kept_and_new_files_have_none(tmp_path: Path) -> None:
    repo = make(tmp_path)
    (repo / "a.py").chmod(0o755)
    sh(repo, "commit", "-qam", "executable")
    go(repo)
    modes = {row.split("\t")[1]: row.split()[0] for row in sh(repo, "ls-tree", "-r", BRANCH).splitlines()}
    assert (modes["a.py"], modes["pkg/b.py"], modes[SUMMARY]) == ("100755", "100644", "100644")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed, so nothing can be signed")
def test_commits_are_signed_as_configured(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (tmp_path / "allowed").write_text("ada@example.test " + key.with_suffix(".pub").read_text())
    signing = {
        "gpg.format": "ssh",
        "user.signingkey": str(key) + ".pub",
        "gpg.ssh.allowedSignersFile": str(tmp_path / "allowed"),
    }
    repo = make(tmp_path, config=signing)
    sh(repo, "config", "commit.gpgsign", "true")
    sh(repo, "config", "log.showSignature", "true")
    go(repo)
    assert sh(repo, "-c", "log.showSignature=false", "log", "--format=%G?", f"main..{BRANCH}").split() == ["G", "G"]
    assert go(repo, "run2").kept
    go(repo, "run3", branch="plain", sign=False)
    assert sh(repo, "-c", "log.showSignature=false", "log", "-1", "--format=%G?", "plain") == "N"
    sh(repo, "config", "user.signingkey", str(tmp_path / "gone.pub"))
    with pytest.raises(GitRefusal, match="could not be signed"):
        go(repo, "run4", branch="unsigned")
    assert sh(repo, "branch", "--list", "unsigned") == ""


def test_without_an_identity_the_commits_are_by_ddpfix_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make(tmp_path)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME")
        monkeypatch.delenv(f"GIT_{role}_EMAIL")
    put(repo, {"README.md": b"mine\n"})
    made = go(repo)
    assert sh(repo, "log", "-1", "--format=%an <%ae> %cn", BRANCH) == "ddpfix <ddpfix@users.noreply.invalid> ddpfix"
    assert made.identity_note is not None
    assert "user.name" in made.identity_note
    assert dgit.switch_to(repo, BRANCH, run_id="run1") == "refs/ddpfix/backup/run1"
    dgit.undo(repo)
    monkeypatch.setenv("EMAIL", "ada@elsewhere.test")
    assert go(repo).identity_note is not None
    dgit.undo(repo)
    sh(repo, "config", "user.name", "Grace")
    assert go(repo).identity_note is None
    assert sh(repo, "log", "-1", "--format=%an <%ae>", BRANCH) == "Grace <ada@elsewhere.test>"
    dgit.undo(repo)
    sh(repo, "config", "user.email", "grace@example.test")
    assert go(repo).identity_note is None
    assert sh(repo, "log", "-1", "--format=%an %cn", BRANCH) == "Grace Grace"


def test_odd_file_names(tmp_path: Path) -> None:
    names = [
        "with blank.py",
        "dé b/ö x.py",
        "new\nline.py",
        "-dash.py",
        "--help",
        "tab\there.py",
        'quo"te.py',
        ":(top)x.py",
    ]
    repo = make(tmp_path, dict.fromkeys(names, b"x = 1\n"))
    put(repo, dict.fromkeys(names, b"mine\n"))
    now = dgit.snapshot(repo)
    assert set(now.committed) == set(now.dirty) == set(names)
    before = everything(repo)
    steps = [Step("odd", dict.fromkeys(names, b"x = 2\n"))]
    for number, (filters, hooks) in enumerate(((False, False), (True, False), (False, True))):
        made = dgit.commit_steps(
            now, steps, branch=f"odd{number}", run_id=f"run{number}", filters=filters, run_hooks=hooks
        )
        assert everything(repo, ours=("ddpfix", "odd")) == before
        after = sh(repo, "diff-tree", "-r", "-z", "--name-only", "main", made.ref).split("\0")
        assert set(after) == {*names, ""}
        assert blob(repo, f"{made.ref}:new\nline.py") == b"x = 2\n"
    with pytest.raises(GitRefusal, match=r"new\\nline\.py"):
        dgit.check_switch(now, ["new\nline.py"])
    with pytest.raises(GitRefusal, match=r"-dash\.py"):
        dgit.switch_to(repo, "odd0", run_id="run0")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are no text")
def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    repo = make(tmp_path)
    name = os.fsdecode(b"caf\xe9.py")
    put(repo, {name: b"x = 1\n"})
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "latin")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / name).read_bytes() == b"x = 2\n"


def test_variables_inherited_from_a_hook_are_dropped_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, other = make(tmp_path), make(tmp_path, name="other")
    before, others = everything(repo), everything(other)
    inherited = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_PREFIX": "pkg/",
    }
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    assert dgit.find_root(repo / "pkg") == repo
    made = go(repo)
    assert {name: os.environ.get(name) for name in inherited} == inherited
    for name in inherited:
        monkeypatch.delenv(name)
    assert everything(repo) == before
    assert everything(other) == others
    assert sh(repo, "rev-parse", BRANCH) == made.commits[-1][0]
    assert sh(other, "branch", "--list", "ddpfix/*") == ""
