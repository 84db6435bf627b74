"""Files written outside git, and given back."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, journal
from tests.gitrepos import put


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    folder = tmp_path / "plain"
    put(folder, {"a.py": b"x = 1\r\n", "pkg/b.py": b"y = 1\n", "c.py": b"z = 1\n"})
    (folder / "a.py").chmod(0o750)
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
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
    assert not state.exists()
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
    assert not state.exists()
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
    assert not (tmp_path / "state").exists()


def test_in_place_state_that_cannot_be_made_leaves_the_files_alone(tmp_path: Path, plain: Path) -> None:
    before = contents(plain)
    (tmp_path / "state").write_bytes(b"a file where the folder should be")
    with pytest.raises(GitRefusal, match=r"could not write .*state"):
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
