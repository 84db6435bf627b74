"""What a user's repository looks like before and after: real git, real folders, none of the tester's settings."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix import journal
from ddpfix.git import GitRefusal, Snapshot, Step
from tests.gitrepos import blob, everything, make, own_settings, put, sh, start_merge, visible

BRANCH = "ddpfix/fixes"
SUMMARY = "DDPFIX_SUMMARY.md"


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path / "home")


def fixes(now: Snapshot) -> list[Step]:
    """Every 1 becomes a 2 in every Python file, in one commit; the summary is a second."""
    wanted = {path: entry.sha for path, entry in now.committed.items() if path.endswith(".py")}
    blobs = dgit.read_blobs(now.root, wanted.values())
    changed = {path: blobs[sha].replace(b"1", b"2") for path, sha in wanted.items()}
    return [Step("Fix ones\n\nOnes are twos.", changed), Step("Add the summary", {SUMMARY: b"# Fixes\n"})]


def go(repo: Path, run_id: str = "run1", *, branch: str = BRANCH, **options: bool) -> dgit.Committed:
    now = dgit.snapshot(repo)
    return dgit.commit_steps(now, fixes(now), branch=branch, run_id=run_id, **options)


# --- what a snapshot says ---


def test_root_is_found_from_anywhere_inside_and_none_outside(tmp_path: Path) -> None:
    repo = make(tmp_path)
    (tmp_path / "plain").mkdir()
    assert dgit.find_root(repo) == dgit.find_root(repo / "pkg") == dgit.find_root(repo / "pkg/b.py") == repo
    assert dgit.find_root(repo / "pkg/not/there.py") == repo
    assert dgit.find_root(tmp_path / "plain") is None


def test_root_outside_git_does_not_load_gitpython(tmp_path: Path) -> None:
    code = "import sys, pathlib, ddpfix.git as g; print(g.find_root(pathlib.Path(sys.argv[1])), 'git' in sys.modules)"
    home = Path(dgit.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=home, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "None False"


def test_root_of_a_bare_repository_and_of_git_s_own_folder_are_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    with pytest.raises(GitRefusal, match="is a bare repository"):
        dgit.find_root(tmp_path / "bare.git")
    with pytest.raises(GitRefusal, match="git's own folder"):
        dgit.find_root(repo / ".git")


def test_snapshot_tells_base_branch_and_uncommitted_files(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"x = 1\nmine\n", "pkg/b.py": b"staged\n", "new.py": b"untracked\n"})
    sh(repo, "add", "pkg/b.py")
    sh(repo, "rm", "-q", "--cached", "README.md")
    now = dgit.snapshot(repo)
    assert (now.base, now.head_ref, now.operation) == (sh(repo, "rev-parse", "main"), "refs/heads/main", None)
    assert now.dirty == {"a.py": " M", "pkg/b.py": "M ", "README.md": "D "}
    assert (now.sparse, now.shallow, now.bare) == (False, False, False)
    assert dgit.read_blobs(repo, [now.committed["a.py"].sha]) == {now.committed["a.py"].sha: b"x = 1\n"}


def test_blobs_of_every_kind_come_back_byte_for_byte(tmp_path: Path) -> None:
    files = {"empty": b"", "nul": b"a\0b\n\n", "big": b"0123456789\n" * 200_000, "latin": b"\xe9\r\n"}
    repo = make(tmp_path, files)
    now = dgit.snapshot(repo)
    found = dgit.read_blobs(repo, [entry.sha for entry in now.committed.values()])
    assert {path: found[entry.sha] for path, entry in now.committed.items()} == files
    with pytest.raises(GitRefusal, match="cannot be read"):
        dgit.read_blobs(repo, ["0" * 40])


def test_no_repository_and_no_commit_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(GitRefusal, match="is not a git repository") as refused:
        dgit.snapshot(tmp_path)
    assert "git init" in refused.value.todo
    sh(tmp_path, "init", "-q")
    with pytest.raises(GitRefusal, match="no commit yet") as refused:
        dgit.snapshot(tmp_path)
    assert refused.value.todo == "commit something first"


def test_a_path_outside_the_repository_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    assert dgit.relative_path(repo, repo / "pkg" / "b.py") == "pkg/b.py"
    assert dgit.relative_path(repo, repo) == "."
    with pytest.raises(GitRefusal, match="outside the repository"):
        dgit.relative_path(repo, tmp_path / "x.py")
    for path in ("../x.py", "/etc/x.py", ".git/hooks/pre-commit", "pkg/../../x.py", "", "a//b"):
        with pytest.raises(GitRefusal, match="not a path inside"):
            dgit.commit_steps(dgit.snapshot(repo), [Step("x", {path: b""})], branch=BRANCH, run_id="r")
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_a_refusal_is_three_plain_lines() -> None:
    refusal = GitRefusal("a\nb", "c", "d")
    assert (refusal.what, refusal.why, refusal.todo, str(refusal)) == ("a b", "c", "d", "a b: c; d")


# --- nothing of the user's moves ---


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


def test_bare_repository_gets_the_branch_but_no_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    bare = tmp_path / "bare.git"
    go(bare)
    assert blob(bare, f"{BRANCH}:a.py") == b"x = 2\n"
    with pytest.raises(GitRefusal, match="is a bare repository"):
        dgit.switch_to(bare, BRANCH, run_id="run1")
    assert dgit.undo(bare).branch == BRANCH
    assert sh(bare, "branch", "--list", "ddpfix/*") == ""


def test_shallow_clone_can_be_fixed_and_pushed(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"second\n"})
    sh(repo, "commit", "-qam", "second")
    sh(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    clone = tmp_path / "shallow"
    assert dgit.snapshot(clone).shallow
    before = everything(clone)
    made = go(clone)
    assert everything(clone) == before
    sh(clone, "push", "-q", "origin", BRANCH)
    assert sh(repo, "rev-parse", BRANCH) == made.commits[-1][0]
    assert go(clone, "run2").kept


def test_sparse_checkout_keeps_the_files_that_are_not_laid_out(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n", "far/c.py": b"z = 1\n"})
    sh(repo, "sparse-checkout", "set", "pkg")
    assert not (repo / "far").exists()
    before = everything(repo)
    assert dgit.snapshot(repo).sparse
    go(repo)
    assert everything(repo) == before
    assert sh(repo, "ls-tree", "-r", "--name-only", BRANCH).splitlines() == [SUMMARY, "a.py", "far/c.py", "pkg/b.py"]
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / "pkg/b.py").read_bytes() == b"y = 2\n"
    assert not (repo / "far").exists()
    assert sh(repo, "status", "--porcelain") == ""


def test_repository_with_sha256_ids(tmp_path: Path) -> None:
    if subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path / "x"], check=False).returncode:
        pytest.skip("this git has no SHA-256 repositories")
    repo = tmp_path / "x"
    put(repo, {"a.py": b"x = 1\n"})
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "first")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / "a.py").read_bytes() == b"x = 2\n"
    dgit.undo(repo)
    assert (repo / "a.py").read_bytes() == b"x = 1\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else_is_refused_with_git_s_own_advice(tmp_path: Path) -> None:
    repo = make(tmp_path)
    for path in (repo, repo / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(GitRefusal, match="does not trust this repository") as refused:
        dgit.find_root(repo)
    assert refused.value.todo == f"git config --global --add safe.directory {repo}"


def test_sparse_index_index_v4_and_split_index(tmp_path: Path) -> None:
    for number, setting in enumerate(
        (
            ("sparse-checkout", "set", "--cone", "--sparse-index", "pkg"),
            ("update-index", "--index-version", "4"),
            ("update-index", "--split-index"),
        )
    ):
        repo = make(tmp_path, name=f"repo{number}")
        sh(repo, "config", "core.splitIndex", "true" if "--split-index" in setting else "false")
        sh(repo, *setting)
        put(repo, {"pkg/b.py": b"y = 1\nmine\n"})
        before = everything(repo)
        go(repo)
        assert everything(repo) == before, setting
        sh(repo, "restore", "pkg/b.py")
        dgit.switch_to(repo, BRANCH, run_id="run1")
        assert (repo / "pkg/b.py").read_bytes() == b"y = 2\n"


def test_linked_worktree_shares_the_branch_and_the_journal(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
    linked = tmp_path / "linked"
    assert dgit.find_root(linked) == linked
    assert dgit.journal_folder(linked) == dgit.journal_folder(repo) == repo / ".git/ddpfix"
    before = everything(repo)
    go(linked)
    assert everything(repo) == before
    dgit.switch_to(linked, BRANCH, run_id="run1")
    assert (linked / "a.py").read_bytes() == b"x = 2\n"
    with pytest.raises(GitRefusal, match=f"checked out in {linked}"):
        go(repo, "run2")
    with pytest.raises(GitRefusal, match=f"checked out in {linked}"):
        dgit.undo(repo)
    assert dgit.undo(linked).back_to == "feature"
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_submodule_and_symlink_are_told_and_left_alone(tmp_path: Path) -> None:
    sub = make(tmp_path, {"s.py": b"s = 1\n"}, name="sub")
    repo = make(tmp_path)
    sh(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "vendored")
    (repo / "link.py").symlink_to("a.py")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "more")
    now = dgit.snapshot(repo)
    assert (now.symlinks, now.submodules) == (("link.py",), ("vendored",))
    assert not {"link.py", "vendored", "vendored/s.py"} & set(now.committed)
    for path, kind in (("link.py", "symbolic link"), ("vendored", "submodule"), ("vendored/s.py", "submodule")):
        with pytest.raises(GitRefusal, match=kind):
            dgit.commit_steps(now, [Step("x", {path: b"x"})], branch=BRANCH, run_id="run1")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert sh(repo, "ls-tree", BRANCH, "vendored", "link.py") == sh(repo, "ls-tree", "main", "vendored", "link.py")
    assert (repo / "vendored/s.py").read_bytes() == b"s = 1\n"
    assert (repo / "link.py").is_symlink()


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
    for number, options in enumerate(({}, {"filters": True}, {"run_hooks": True})):
        made = dgit.commit_steps(now, steps, branch=f"odd{number}", run_id=f"run{number}", **options)
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


# --- under way ---


def test_merge_in_progress_allows_the_branch_and_refuses_the_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    start_merge(repo)
    before = everything(repo)
    assert dgit.snapshot(repo).operation == "merge"
    go(repo)
    with pytest.raises(GitRefusal, match="a merge is in progress") as refused:
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert refused.value.todo == "git merge --continue or git merge --abort, or --no-switch"
    assert everything(repo) == before
    dgit.undo(repo)
    assert everything(repo) == before


@pytest.mark.parametrize("kind", ["rebase", "rebase --apply", "cherry-pick", "revert", "bisect"])
def test_other_operations_in_progress(tmp_path: Path, kind: str) -> None:
    repo = make(tmp_path)
    start_merge(repo)
    sh(repo, "merge", "--abort")
    if kind == "bisect":
        sh(repo, "bisect", "start", "main", "main~1")
    elif kind == "revert":
        put(repo, {"README.md": b"third\n"})
        sh(repo, "commit", "-qam", "third")
        sh(repo, "revert", "--no-edit", "HEAD~1", ok=False)
    else:
        sh(repo, *kind.split(), "other", ok=False)
    before = everything(repo)
    name = kind.split()[0]
    assert dgit.snapshot(repo).operation == name
    go(repo)
    with pytest.raises(GitRefusal, match=f"a {name} is in progress") as refused:
        dgit.check_switch(dgit.snapshot(repo), [])
    assert f"git {name}" in refused.value.todo
    assert everything(repo) == before


# --- whose branch ---


@pytest.mark.parametrize("name", ["", "-x", "a b", "a..b", "x.lock", "HEAD", "@{-1}", "a\nb", "/x", "x/"])
def test_invalid_branch_names_are_refused(tmp_path: Path, name: str) -> None:
    repo = make(tmp_path)
    with pytest.raises(GitRefusal, match="is not a branch name"):
        go(repo, branch=name)


def test_a_branch_name_that_is_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "branch", "ddpfix")
    with pytest.raises(GitRefusal, match="cannot hold it beside the branch ddpfix;"):
        go(repo)
    sh(repo, "branch", "team/fixes/one")
    with pytest.raises(GitRefusal, match="beside the branch team/fixes/one;"):
        go(repo, branch="team/fixes")


def test_a_foreign_branch_of_the_same_name_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "branch", BRANCH)
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=r"it holds \w+ \(first, by Ada\), which is not from ddpfix") as refused:
        go(repo)
    assert "--branch" in refused.value.todo
    assert everything(repo, ours=("none",)) == before


@pytest.mark.parametrize("how", ["on top", "amended", "below", "on top, journal lost"])
def test_our_branch_with_somebody_s_commit_is_refused(tmp_path: Path, how: str) -> None:
    repo = make(tmp_path)
    go(repo)
    sh(repo, "switch", "-q", BRANCH)
    put(repo, {"README.md": b"by hand\n"})
    if how == "amended":
        sh(repo, "commit", "-qa", "--amend", "--no-edit")
    else:
        sh(repo, "commit", "-qam", "By hand")
    if how == "below":
        sh(repo, "commit", "-q", "--allow-empty", "-m", "x\n\nddpfix-run: lost")
    sh(repo, "switch", "-q", "main")
    if how.endswith("lost"):
        shutil.rmtree(repo / ".git/ddpfix")
    tip = sh(repo, "rev-parse", BRANCH)
    with pytest.raises(GitRefusal, match="which is not from ddpfix" if how != "below" else r"By hand, by Ada"):
        go(repo, "run2")
    assert sh(repo, "rev-parse", BRANCH) == tip


def test_our_branch_that_is_checked_out_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    with pytest.raises(GitRefusal, match="is checked out now") as refused:
        go(repo, "run2")
    assert "ddpfix undo" in refused.value.todo
    assert "--branch" in refused.value.todo


def test_a_second_run_with_the_same_result_keeps_the_commits(tmp_path: Path) -> None:
    repo = make(tmp_path)
    first = go(repo)
    sh(repo, "switch", "-qc", "feature")
    second = go(repo, "run2")
    assert (second.kept, second.commits, second.run_id) == (True, first.commits, "run1")
    dgit.switch_to(repo, BRANCH, run_id=second.run_id)
    assert dgit.undo(repo).back_to == "feature"


def test_a_branch_fetched_from_elsewhere_is_kept_or_replaced_and_can_be_undone(tmp_path: Path) -> None:
    repo = make(tmp_path)
    first = go(repo)
    sh(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    sh(clone, "branch", "-q", "--no-track", BRANCH, f"origin/{BRANCH}")
    again = go(clone, "run2")
    assert (again.kept, again.commits, again.run_id) == (True, first.commits, "run2")
    now = dgit.snapshot(clone)
    other = dgit.commit_steps(now, [Step("x", {"a.py": b"x = 3\n"})], branch=BRANCH, run_id="run3")
    assert (other.kept, other.previous) == (False, first.commits[-1][0])
    assert [dgit.undo(clone).run_id, dgit.undo(clone).run_id] == ["run3", "run2"]
    assert sh(clone, "branch", "--list", "ddpfix/*") == ""


def test_our_branch_under_a_rebase_is_left_alone(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    put(repo, {"a.py": b"x = 5\n"})
    sh(repo, "commit", "-qam", "In the way")
    sh(repo, "rebase", "main", BRANCH, ok=False)
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=f"checked out in {repo}"):
        go(repo, "run2")
    with pytest.raises(GitRefusal, match=f"checked out in {repo}"):
        dgit.undo(repo)
    assert everything(repo, ours=("none",)) == before


def test_a_second_run_replaces_and_undo_goes_back_one_by_one(tmp_path: Path) -> None:
    repo = make(tmp_path)
    clean = everything(repo)
    first = go(repo)
    put(repo, {"README.md": b"a new commit of the user\n"})
    sh(repo, "commit", "-qam", "more")
    second = go(repo, "run2")
    assert second.previous == first.commits[-1][0]
    assert sh(repo, "rev-parse", f"{BRANCH}~2") == sh(repo, "rev-parse", "main")
    with pytest.raises(GitRefusal, match="the run run2 has replaced it; undo run2 first"):
        dgit.undo(repo, "run1")
    undone = dgit.undo(repo)
    assert (undone.run_id, undone.restored, undone.back_to) == ("run2", first.commits[-1][0], None)
    assert sh(repo, "rev-parse", BRANCH) == first.commits[-1][0]
    assert dgit.undo(repo).restored is None
    assert sh(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo(repo)
    assert clean.keys() == everything(repo).keys()


def test_our_branch_from_another_base_is_still_ours(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "switch", "-qc", "feature")
    put(repo, {"README.md": b"feature\n"})
    sh(repo, "commit", "-qam", "feature")
    go(repo)
    sh(repo, "switch", "-q", "main")
    assert go(repo, "run2").previous
    dgit.undo(repo)
    shutil.rmtree(repo / ".git/ddpfix")
    assert go(repo, "run3").previous


def test_a_branch_that_moves_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make(tmp_path)
    now = dgit.snapshot(repo)
    steps = fixes(now)

    class Late(dict[str, bytes]):
        """Somebody makes the branch while the contents are being stored."""

        def items(self):
            if not sh(repo, "branch", "--list", BRANCH):
                sh(repo, "branch", BRANCH)
            return super().items()

    with pytest.raises(GitRefusal, match="could not be moved"):
        dgit.commit_steps(now, [Step("x", Late(steps[0].files))], branch=BRANCH, run_id="run1")
    assert sh(repo, "rev-parse", BRANCH) == sh(repo, "rev-parse", "main")
    assert journal.runs(repo / ".git/ddpfix") == []


# --- the switch ---


def test_the_switch_carries_unrelated_work_along_and_undo_brings_all_back(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"my edit\n", "new.py": b"untracked\n", "staged.py": b"staged\n"})
    sh(repo, "add", "staged.py")
    before = visible(repo)
    go(repo)
    dgit.check_switch(dgit.snapshot(repo), ["a.py", "pkg/b.py", SUMMARY])
    assert dgit.switch_to(repo, BRANCH, run_id="run1") == "refs/ddpfix/backup/run1"
    assert (repo / "a.py").read_bytes() == b"x = 2\n"
    assert (repo / "README.md").read_bytes() == b"my edit\n"
    assert blob(repo, "refs/ddpfix/backup/run1:README.md") == b"my edit\n"
    assert sh(repo, "status", "--porcelain").splitlines() == [" M README.md", "A  staged.py", "?? new.py"]
    undone = dgit.undo(repo)
    assert (undone.branch, undone.back_to, undone.merged) == (BRANCH, "main", False)
    assert visible(repo) == before


def test_no_backup_where_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    assert dgit.switch_to(repo, BRANCH, run_id="run1") is None
    assert dgit.switch_to(repo, BRANCH, run_id="run1") is None


def test_a_file_announced_with_add_n_comes_along_and_is_backed_up(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"new.py": b"announced\n", "README.md": b"mine\n"})
    sh(repo, "add", "-N", "new.py")
    before = visible(repo)
    go(repo)
    assert dgit.switch_to(repo, BRANCH, run_id="run1") == "refs/ddpfix/backup/run1"
    assert (repo / "new.py").read_bytes() == blob(repo, "refs/ddpfix/backup/run1:new.py") == b"announced\n"
    assert sh(repo, "status", "--porcelain").splitlines() == [" M README.md", " A new.py"]
    dgit.undo(repo)
    assert visible(repo) == before


def test_dirty_files_that_a_fix_would_touch_are_named_and_nothing_moves(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"x = 1\nmine\n", "pkg/b.py": b"staged\n"})
    sh(repo, "add", "pkg/b.py")
    with pytest.raises(GitRefusal, match=r"a\.py, pkg/b\.py") as refused:
        dgit.check_switch(dgit.snapshot(repo), ["a.py", "pkg/b.py", SUMMARY])
    assert "--include-dirty" in refused.value.todo
    assert "--no-switch" in refused.value.todo
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=r"work in a\.py, pkg/b\.py would be overwritten"):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before
    assert sh(repo, "for-each-ref", "refs/ddpfix") == ""


@pytest.mark.parametrize("ignored", [True, False])
def test_a_precious_file_in_the_way_is_kept(tmp_path: Path, ignored: bool) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", ".gitignore": b"*.md\n" if ignored else b""})
    put(repo, {SUMMARY: b"precious\n"})
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=SUMMARY):
        dgit.check_switch(dgit.snapshot(repo), ["a.py", SUMMARY])
    with pytest.raises(GitRefusal, match=SUMMARY):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before


def test_conflicts_without_a_merge_refuse_the_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"stashed\n"})
    sh(repo, "stash")
    put(repo, {"README.md": b"committed\n"})
    sh(repo, "commit", "-qam", "second")
    sh(repo, "stash", "pop", ok=False)
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=r"unresolved conflicts: README\.md; "):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before


# --- undo ---


def test_undo_off_the_branch_does_not_move_head(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"mine\n"})
    before = everything(repo)
    go(repo)
    undone = dgit.undo(repo)
    assert (undone.back_to, undone.restored, undone.already_gone) == (None, None, False)
    assert everything(repo) == before
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_undo_after_a_detached_head(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "checkout", "-q", "--detach")
    before = visible(repo)
    assert dgit.snapshot(repo).head_ref is None
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert dgit.undo(repo).back_to == sh(repo, "rev-parse", "main")
    assert visible(repo) == before


def test_undo_when_the_old_branch_is_gone_goes_back_to_its_commit(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "switch", "-qc", "feature")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    sh(repo, "branch", "-qD", "feature")
    assert dgit.undo(repo).back_to == sh(repo, "rev-parse", "main") == sh(repo, "rev-parse", "HEAD")


def test_undo_refuses_a_branch_that_has_moved_on(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    put(repo, {"a.py": b"by hand\n"})
    sh(repo, "commit", "-qam", "By hand")
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=r"moved on to \w+ \(By hand, by Ada\)"):
        dgit.undo(repo)
    assert everything(repo, ours=("none",)) == before


def test_undo_refuses_where_work_would_be_lost(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    put(repo, {"a.py": b"x = 2\nmine\n"})
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=r"work in a\.py would be overwritten"):
        dgit.undo(repo)
    assert everything(repo, ours=("none",)) == before


def test_undo_of_a_deleted_and_of_a_merged_branch_says_so(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    sh(repo, "merge", "-q", BRANCH)
    assert dgit.undo(repo).merged
    sh(repo, "reset", "-q", "--hard", "HEAD~2")
    go(repo, "run2")
    sh(repo, "branch", "-D", BRANCH)
    assert dgit.undo(repo).already_gone
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo(repo)


def test_undo_of_a_named_run_and_of_an_unknown_one(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo, "run1", branch="one")
    go(repo, "run2", branch="two")
    with pytest.raises(GitRefusal, match="no run run9"):
        dgit.undo(repo, "run9")
    assert dgit.undo(repo, "run1").branch == "one"
    assert dgit.undo(repo).branch == "two"


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "-x", "a b", "x" * 200])
def test_a_run_id_is_a_plain_word(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(GitRefusal, match="is not a run id"):
        go(make(tmp_path), run_id)


# --- outside git ---


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    folder = tmp_path / "plain"
    put(folder, {"a.py": b"x = 1\r\n", "pkg/b.py": b"y = 1\n", "c.py": b"z = 1\n"})
    (folder / "a.py").chmod(0o750)
    return folder


def contents(folder: Path) -> dict[str, object]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if path.is_file()
    }


NEW = {"a.py": b"x = 2\r\n", "pkg/b.py": b"y = 2\n", "new.py": b"n = 1\n"}


def test_in_place_keeps_modes_and_undo_gives_everything_back(tmp_path: Path, plain: Path) -> None:
    before, state = contents(plain), tmp_path / "state"
    run = dgit.write_in_place(plain, NEW, run_id="run1", state_dir=state)
    assert sorted(file.path for file in run.files) == ["a.py", "new.py", "pkg/b.py"]
    after = contents(plain)
    assert after["a.py"] == (b"x = 2\r\n", 0o750)
    assert after["c.py"] == before["c.py"]
    assert {path: after[path][0] for path in NEW} == NEW
    assert set(after) == {*before, "new.py"}
    assert (state / "run1").stat().st_mode & 0o077 == 0
    assert dgit.undo_in_place(plain, state).run_id == "run1"
    assert contents(plain) == before
    assert list(state.iterdir()) == []
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo_in_place(plain, state)


def test_in_place_undo_refuses_changed_files_and_names_them(tmp_path: Path, plain: Path) -> None:
    state = tmp_path / "state"
    dgit.write_in_place(plain, NEW, run_id="run1", state_dir=state)
    put(plain, {"pkg/b.py": b"by hand\n"})
    (plain / "new.py").unlink()
    (plain / "other").mkdir()
    before = contents(plain)
    with pytest.raises(GitRefusal, match=r"changed since: pkg/b\.py; "):
        dgit.undo_in_place(plain, state)
    assert contents(plain) == before
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo_in_place(plain / "other", state)


def test_in_place_never_writes_through_a_symbolic_link(tmp_path: Path, plain: Path) -> None:
    (plain / "link.py").symlink_to("c.py")
    (plain / "there").symlink_to(tmp_path)
    put(tmp_path, {"out.py": b"outside\n"})
    before = contents(plain)
    for path in ("link.py", "there/out.py"):
        with pytest.raises(GitRefusal, match="is a symbolic link"):
            dgit.write_in_place(plain, {**NEW, path: b"no\n"}, run_id="run1", state_dir=tmp_path / "state")
    for path in ("../out.py", str(tmp_path / "out.py")):
        with pytest.raises(GitRefusal, match="not a path inside"):
            dgit.write_in_place(plain, {path: b"no\n"}, run_id="run1", state_dir=tmp_path / "state")
    with pytest.raises(GitRefusal, match="not an ordinary file"):
        dgit.write_in_place(plain, {"pkg": b"no\n"}, run_id="run1", state_dir=tmp_path / "state")
    assert contents(plain) == before
    assert (tmp_path / "out.py").read_bytes() == b"outside\n"


def test_in_place_writes_all_files_or_none(tmp_path: Path, plain: Path) -> None:
    before, state = contents(plain), tmp_path / "state"
    with pytest.raises(GitRefusal, match="every file is as it was") as refused:
        dgit.write_in_place(plain, {**NEW, "zz/missing/d.py": b"no such folder\n"}, run_id="run1", state_dir=state)
    assert "zz/missing" in refused.value.what
    assert contents(plain) == before
    assert list(state.iterdir()) == []
    assert not list(plain.rglob(".ddpfix-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files there")
def test_in_place_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, plain: Path) -> None:
    import resource

    before, limits = contents(plain), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(GitRefusal, match="every file is as it was"):
            dgit.write_in_place(plain, {**NEW, "c.py": b"#" * (2 << 20)}, run_id="run1", state_dir=tmp_path / "state")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(plain) == before
    assert list((tmp_path / "state").iterdir()) == []


def test_in_place_state_that_cannot_be_made_leaves_the_files_alone(tmp_path: Path, plain: Path) -> None:
    before = contents(plain)
    (tmp_path / "state").write_bytes(b"a file where the folder should be")
    with pytest.raises(GitRefusal, match="every file is as it was"):
        dgit.write_in_place(plain, NEW, run_id="run1", state_dir=tmp_path / "state")
    assert contents(plain) == before


def test_in_place_run_that_was_cut_short_can_be_undone(tmp_path: Path, plain: Path) -> None:
    before, state = contents(plain), tmp_path / "state"
    dgit.write_in_place(plain, NEW, run_id="run1", state_dir=state)
    put(plain, {"pkg/b.py": b"y = 1\n"})  # as if the power had gone before this file's turn
    dgit.undo_in_place(plain, state)
    assert contents(plain) == before


def test_a_used_run_id_and_a_broken_journal_entry(tmp_path: Path, plain: Path) -> None:
    state = tmp_path / "state"
    dgit.write_in_place(plain, NEW, run_id="run1", state_dir=state)
    with pytest.raises(GitRefusal, match="run1 exists already"):
        dgit.write_in_place(plain, {"a.py": b"3"}, run_id="run1", state_dir=state)
    (state / "torn.json").write_bytes(b"{")
    (state / "list.json").write_text(json.dumps([1]))
    (state / "later.json").write_text(json.dumps({"kind": "Later", "x": 1}))
    assert [run.run_id for run in journal.runs(state)] == ["run1"]
    assert dgit.undo_in_place(plain, state, run_id="run1").run_id == "run1"
