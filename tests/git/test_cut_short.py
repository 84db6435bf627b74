"""A switch that stops half-way, by a kill or by what cannot be written, and what `undo` makes of it.

git itself is stopped between two files: by a filter of the repository, which git runs for each file that it checks out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, at_work, journal, whole_files
from tests.git.runs import BRANCH, SUMMARY, go
from tests.gitrepos import make, put, sh, visible
from tests.programs import ddpfix

FILES = {f"pkg/f{number}.py": f"x{number} = 1\n".encode() for number in range(8)}
COUNTED = """\
echo >> {folder}/count
[ -e {folder}/armed ] && [ $(wc -l < {folder}/count) -ge 4 ] && {do}
exec cat
"""
KILL_GIT = "{ rm ARMED; p=$PPID; while [ $(cat /proc/$p/comm) != git ]; do p=$(cut -d' ' -f4 /proc/$p/stat); done; kill -9 $p; }"
KILL_ALL = "kill -9 0"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Eight files to fix and work of the user's beside them."""
    made = make(tmp_path, {**FILES, "notes.md": b"notes\n"})
    put(made, {"notes.md": b"my notes\n", "staged.md": b"staged\n", "new.txt": b"mine\n"})
    sh(made, "add", "staged.md")
    return made


def trap(repo: Path, do: str, *, required: bool = False) -> Path:
    """From the fourth file on, git's next check-out comes to `do`; the file that arms it."""
    folder = repo.parent
    script = folder / "filter.sh"
    script.write_text(COUNTED.format(folder=folder, do=do))
    sh(repo, "config", "filter.trap.smudge", f"sh {script}")
    sh(repo, "config", "filter.trap.clean", "cat")
    sh(repo, "config", "filter.trap.required", str(required).lower())
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("*.py filter=trap\n")
    (folder / "armed").touch()
    return folder / "armed"


def in_a_child(repo: Path, call: str) -> int:
    """`call` of `ddpfix.git` in a process group of its own; how it ended."""
    code = f"from pathlib import Path; from ddpfix import git; git.{call}"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.PIPE)
    child.communicate()
    return child.returncode


def switched(repo: Path) -> str:
    return f"switch_to(Path({str(repo)!r}), {BRANCH!r}, run_id='run1')"


def fixed_files(repo: Path) -> int:
    return sum((repo / path).exists() and (repo / path).read_bytes() != content for path, content in FILES.items())


def killed_in_the_switch(repo: Path) -> None:
    go(repo)
    armed = trap(repo, KILL_ALL)
    assert in_a_child(repo, switched(repo)) == -signal.SIGKILL
    armed.unlink()
    assert (repo / ".git/index.lock").exists()
    assert 0 < fixed_files(repo) < len(FILES)


def test_undo_puts_the_files_of_a_killed_switch_back(repo: Path) -> None:
    before = visible(repo)
    killed_in_the_switch(repo)
    undone = dgit.undo(repo)
    assert undone.put_back
    assert visible(repo) == before
    assert not (repo / ".git/ddpfix").exists()
    assert dgit.snapshot(repo).dirty.keys() == {"notes.md", "staged.md"}


def test_apply_after_a_killed_switch_asks_for_undo_first(repo: Path) -> None:
    killed_in_the_switch(repo)
    with pytest.raises(GitRefusal, match="cut short") as refused:
        go(repo, "run2")
    assert refused.value.todo == "run `ddpfix undo` first"


def test_what_the_user_wrote_after_the_kill_is_kept_and_named_until_it_is_seen_to(repo: Path) -> None:
    before = visible(repo)
    killed_in_the_switch(repo)
    put(repo, {"pkg/f0.py": b"x0 = 2  # mine\n"})
    for _ in range(2):
        with pytest.raises(GitRefusal, match=r"not all is as it was: pkg/f0\.py: changed since"):
            dgit.undo(repo)
        assert (repo / "pkg/f0.py").read_bytes() == b"x0 = 2  # mine\n"
        assert sh(repo, "for-each-ref", "refs/ddpfix/backup")
        assert sh(repo, "branch", "--list", BRANCH)
        assert fixed_files(repo) == 1
    done = ddpfix(repo, "undo")
    assert (done.returncode, b"pkg/f0.py" in done.stderr) == (2, True), done.stderr
    sh(repo, "checkout", "--", "pkg/f0.py")
    dgit.undo(repo)
    assert visible(repo) == before


def test_a_killed_undo_is_gone_on_with(repo: Path) -> None:
    before = visible(repo)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    armed = trap(repo, KILL_ALL)
    assert in_a_child(repo, f"undo(Path({str(repo)!r}))") == -signal.SIGKILL
    armed.unlink()
    assert 0 < fixed_files(repo) < len(FILES)
    assert dgit.undo(repo).put_back
    assert visible(repo) == before


def test_a_git_that_is_killed_alone_is_put_back_at_once(repo: Path) -> None:
    go(repo)
    before = visible(repo)
    armed = trap(repo, KILL_GIT.replace("ARMED", str(repo.parent / "armed")))
    with pytest.raises(GitRefusal, match="not switched to"):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert not armed.exists()
    assert visible(repo) == before
    assert not (repo / ".git/index.lock").exists()


def test_a_filter_that_fails_leaves_every_file_as_it_was(repo: Path) -> None:
    go(repo)
    before = visible(repo)
    trap(repo, f"rm {repo.parent}/armed && exit 1", required=True)
    with pytest.raises(GitRefusal, match=r"external filter .* failed") as refused:
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert "every file is as it was" in refused.value.todo
    assert visible(repo) == before


def test_a_file_that_the_filters_of_git_would_normalise_is_no_failure(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", ".gitattributes": b"*.py text\n"})
    crlf = [dgit.Step("Add a file", {"new.py": b"x = 1\r\n"})]
    dgit.commit_steps(dgit.snapshot(repo), crlf, branch=BRANCH, run_id="run1")
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert sh(repo, "branch", "--show-current") == BRANCH
    dgit.undo(repo)
    assert sh(repo, "branch", "--show-current") == "main"


def test_a_lock_of_somebody_elses_git_stays(repo: Path) -> None:
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    lock = repo / ".git/index.lock"
    lock.write_bytes(b"")
    os.utime(lock, (1, 1))
    with pytest.raises(GitRefusal, match=r"index\.lock"):
        dgit.undo(repo)
    assert lock.exists()
    assert fixed_files(repo) == len(FILES)
    lock.unlink()
    dgit.undo(repo)
    assert fixed_files(repo) == 0


@pytest.fixture
def another_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(at_work, "PATIENCE", 0.2)
    folder = tmp_path / "repo/.git/ddpfix"
    code = f"import sys; from pathlib import Path; from ddpfix.git.at_work import at_work\nwith at_work(Path({str(folder)!r})):\n"
    code += "    print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        yield
        child.kill()


def test_one_ddpfix_at_a_time(repo: Path, another_at_work: None) -> None:
    with pytest.raises(GitRefusal, match="another ddpfix is at work here"):
        go(repo)


def test_whoever_waited_for_a_folder_that_was_taken_away_locks_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "repo" / "ddpfix"
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with at_work.at_work(folder):
            assert (folder / "at-work").exists()

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(second)
        with at_work.at_work(folder):
            inside.set()
            time.sleep(0.1)  # it waits by now
        waiting.result(timeout=20)
    assert not folder.exists()


def test_a_branch_that_stands_where_it_stood_before_is_taken_back_already(repo: Path) -> None:
    """As a kill leaves it between the journal and the branch, and an undo between the branch and the journal."""
    go(repo, "run1")
    earlier = sh(repo, "rev-parse", BRANCH)
    sh(repo, "commit", "-qm", "staged")
    go(repo, "run2")
    sh(repo, "update-ref", f"refs/heads/{BRANCH}", earlier)
    assert dgit.undo(repo).restored == earlier
    assert [run.run_id for run in journal.runs(repo / ".git/ddpfix")] == ["run1"]
    assert sh(repo, "rev-parse", BRANCH) == earlier


def test_a_journal_that_cannot_be_read_is_not_taken_for_an_empty_one(repo: Path) -> None:
    go(repo)
    entry = repo / ".git/ddpfix/run1.json"
    entry.unlink()
    entry.mkdir()
    with pytest.raises(OSError):
        dgit.undo(repo)


def test_somebody_elses_repository_is_told_as_that_and_keeps_its_way_back(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(repo)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for call in (dgit.snapshot, dgit.undo):
        with pytest.raises(GitRefusal, match="dubious ownership") as refused:
            call(repo)
        assert refused.value.todo.startswith("git config --global --add safe.directory")
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    assert dgit.undo(repo).branch == BRANCH


def test_passing_files_on_another_file_system_are_beside_the_file_and_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    put(tmp_path, {"plain/a.py": b"1\n"})
    monkeypatch.setattr(whole_files, "_device", {tmp_path / "state": 1, tmp_path / "plain": 2}.get)
    whole_files.replace_file(tmp_path / "plain/a.py", b"2\n", None, by=tmp_path / "state")
    assert (tmp_path / "plain/a.py").read_bytes() == b"2\n"
    put(tmp_path, {"plain/.ddpfix-0123456789ab": b"half", "plain/.ddpfix-mine": b"mine"})
    whole_files.sweep(tmp_path / "state", [tmp_path / "plain"])
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == [".ddpfix-mine", "a.py"]


def test_the_summary_that_stays_is_seen(repo: Path) -> None:
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / SUMMARY).exists()
    dgit.undo(repo)
    assert not (repo / SUMMARY).exists()
