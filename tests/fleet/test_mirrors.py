"""Clones that are kept: of a changed repository only what is new comes, and all together hold no more than they may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpfix import git as ddpfix_git
from ddpfix.bot.child import MOST
from ddpfix.bot.inside import Inside
from ddpfix.fleet.mirrors import Mirrors
from ddpfix.fleet.work import Job, work_on
from tests.bot.githost import git, import_commit
from tests.fleet.conftest import MODULE
from tests.fleet.test_clones import Host

FILES = {f"m{number}.py": os.urandom(3000).hex().encode() for number in range(30)} | {"train.py": MODULE.encode()}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "host")
    made.create("a/b", FILES)
    yield made
    made.close()


def survey(host: Host, root: Path, branch: str = "main") -> list[str]:
    """What is found, by a clone in that place."""
    access = ddpfix_git.Access(f"{host.url}/a/b.git")
    return [row[2] for row in Inside(root, MOST).survey(access, branch, select=("DDP203",), ignore=()).rows]


def test_only_what_is_new_comes_over_the_wire(host: Host, tmp_path: Path) -> None:
    root = tmp_path / "kept.git"
    assert survey(host, root) == ["train.py"]
    objects = set(git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())
    import_commit(host.repository("a/b"), "main", {"late.py": MODULE.encode()}, "more", parent="refs/heads/main^0")
    assert survey(host, root) == ["late.py", "train.py"]
    new = set(git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()) - objects
    assert len(new) == 2, "a commit and its tree: the bytes of the file were there under another name"
    git(host.repository("a/b"), "branch", "-m", "main", "trunk")
    assert survey(host, root, "trunk") == ["late.py", "train.py"], "another default branch"


def test_a_clone_that_was_cut_off_is_made_anew(host: Host, tmp_path: Path) -> None:
    root = tmp_path / "kept.git"
    survey(host, root)
    for pack in (root / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(b"PACK")
    assert survey(host, root) == ["train.py"]
    (root / "HEAD").unlink()
    assert survey(host, root) == ["train.py"]


def test_a_campaign_keeps_them_and_the_oldest_go_first(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "mirrors"
    job = Job(f"{host.url}/a/b.git", mirrors=str(folder), budget=100)
    assert work_on(job.plain())["cause"] == ""
    (kept,) = folder.glob("*.git")
    held = sum(int(path.name.split(".")[1]) for path in folder.glob("*.size"))
    assert held > 100_000
    assert "http" in git(kept, "config", "remote.origin.url") and not list(folder.rglob("*.tmp"))
    mirrors = Mirrors(folder, 2 * held)
    for number in range(3):
        with mirrors.held(f"https://h/{number}") as place:
            assert place
            place.mkdir(exist_ok=True)
            (place / "pack").write_bytes(os.urandom(held * 3 // 4))
            os.utime(next(folder.glob("*.size")), (0, 0)) if number == 0 else None
    assert not kept.exists() and len(list(folder.glob("*.git"))) == 2
    assert sum(int(path.name.split(".")[1]) for path in folder.glob("*.size")) <= 2 * held


def test_one_that_another_worker_has_is_not_waited_for(tmp_path: Path) -> None:
    mirrors = Mirrors(tmp_path / "mirrors", 1 << 30)
    with mirrors.held("https://h/a") as first, mirrors.held("https://h/a") as second, mirrors.held("https://h/b") as other:
        assert first and second is None and other and other != first
    with mirrors.held("https://h/a") as again:
        assert again == first
