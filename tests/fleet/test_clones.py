"""What a campaign fetches of a repository: the files that are looked at, in few requests, and nothing of it is run."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from ddpfix import git as ddpfix_git
from ddpfix.bot.child import MOST
from ddpfix.bot.inside import Inside
from ddpfix.fleet.work import Job, work_on
from ddpfix.git.reading import FEW
from tests.bot.githost import GitHost, git, send
from tests.fleet.conftest import MODULE

USED = {
    "train.py": MODULE.encode(), "requirements.txt": b"torch==2.5\n", "README.rst": b"pip install torch\n",
    "conf/run.yaml": b"a: 1\n", "run.sh": b"torchrun train.py\n", "setup.cfg": b"[metadata]\n", "notes.ipynb": b"{}",
}  # fmt: skip
NOT_USED = {
    "picture.png": os.urandom(50_000), "weights.pt": os.urandom(3_000_000), "data/table.csv": b"1,2\n", "src/kernel.cu": b"//\n",
    ".gitmodules": b'[submodule "other"]\n\tpath = other\n\turl = ../secret/other.git\n', "web/app.js": b"1;\n",
    ".gitattributes": b"*.py filter=evil\n*.pt filter=lfs diff=lfs merge=lfs -text\n",
}  # fmt: skip


class Host(GitHost):
    """A git server that everybody may read, and that knows nothing else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[bool] = []

    def may(self, token: str, slug: str, *, push: bool) -> int:
        return 403 if push else 200

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        send(request, 404, b"", {})

    def fetches(self) -> int:
        """Requests in which objects were asked for."""
        return sum(self.asked)

    def _git(self, request: BaseHTTPRequestHandler, slug: str, path: str, body: bytes) -> None:
        plain = gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body
        self.asked.append(b"command=fetch" in plain)
        super()._git(request, slug, path, body)

    def no_filters(self, slug: str) -> None:
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            git(self.repository(slug), "config", key, "false")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "host")
    yield made
    made.close()


def survey(host: Host, folder: Path, slug: str = "a/b") -> set[str]:
    """The paths of HEAD whose bytes are in the clone, once everything was looked for."""
    root = folder / "clone.git"
    access = ddpfix_git.Access(f"{host.url}/{slug}.git")
    found = Inside(root, MOST).survey(access, "main", select=(), ignore=())
    assert [row[2] for row in found.rows if row[0] == "DDP203"] == ["train.py"]
    here = set(git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())
    rows = [row.split("\t") for row in git(root, "ls-tree", "-r", "HEAD").splitlines()]
    return {path for facts, path in rows if facts.split()[2] in here}


def test_what_is_looked_at_comes_in_one_request_and_nothing_else_comes(host: Host, tmp_path: Path) -> None:
    host.create("a/b", {**USED, **NOT_USED})
    host.create("secret/other", {"x.py": b"x = 1\n"})
    assert survey(host, tmp_path) == USED.keys()
    assert host.fetches() == 2, host.log  # the commit with its trees, the files
    assert all(path.startswith("/a/b.git/") for _, path in host.log), "a submodule, or files of LFS"


def test_a_server_that_knows_no_filters_is_asked_once(host: Host, tmp_path: Path) -> None:
    host.create("a/b", {**USED, **NOT_USED})
    host.no_filters("a/b")
    assert survey(host, tmp_path) == {*USED, *NOT_USED}
    assert host.fetches() == 1, host.log


def test_files_of_unknown_kinds_come_together_as_soon_as_several_are_asked_for(host: Host, tmp_path: Path) -> None:
    names = [f"part{number}.proto" for number in range(60)]
    host.create("a/b", {"train.py": b"x = 1\n", **{name: name.encode() for name in names}, "a.png": b"picture"})
    access = ddpfix_git.Access(f"{host.url}/a/b.git")
    clone = ddpfix_git.clone_into(tmp_path / "c.git", lambda: access, "main")
    blobs = ddpfix_git.snapshot(clone.root).committed
    read = clone.read(blobs, ["train.py"], largest=1 << 20, rest=names)
    before = host.fetches()
    assert [read(name) for name in names] == [name.encode() for name in names]
    assert host.fetches() - before == FEW + 1
    assert read("missing.py") is None and read("a.png") == b"picture"


def test_texts_beyond_what_is_held_are_read_all_the_same(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddpfix.git.reading.HELD", 1000)
    files = {f"label{number}.txt": b"%d" % number * 300 for number in range(9)} | {"large.txt": b"x" * 5000}
    host.create("a/b", files)
    access = ddpfix_git.Access(f"{host.url}/a/b.git")
    clone = ddpfix_git.clone_into(tmp_path / "c.git", lambda: access, "main")
    read = clone.read(ddpfix_git.snapshot(clone.root).committed, [], largest=4000, soon=files)
    assert [read(name) for name in files] == [*list(files.values())[:-1], None]


def test_no_hook_and_no_filter_of_anybody_is_run(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.create("a/b", {**USED, **NOT_USED})
    hooks, mark = tmp_path / "template" / "hooks", tmp_path / "was run"
    hooks.mkdir(parents=True)
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "gitconfig").write_text(f'[filter "evil"]\n\tsmudge = touch \'{mark}\'\n\tclean = touch \'{mark}\'\n')
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hooks.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    # they would be run by a plain clone
    git(tmp_path, "clone", "-q", f"{host.url}/a/b.git", "plain")
    assert mark.exists()
    mark.unlink()
    result = work_on(Job(f"{host.url}/a/b.git").plain())
    assert result["cause"] == "" and [row[2] for row in result["findings"] if row[0] == "DDP203"] == ["train.py"]
    assert not mark.exists()


def test_a_repository_that_is_too_large_is_told_as_such(host: Host) -> None:
    host.create("a/b", {**USED, **NOT_USED})
    url = f"{host.url}/a/b.git"
    assert work_on(Job(url, size=1).plain())["cause"] == "", "what is not fetched is not too large"
    few = work_on(Job(url, files=10).plain())
    assert few["cause"] == "size" and "more than 10 files" in few["error"]
    host.no_filters("a/b")
    large = work_on(Job(url, size=1).plain())
    assert large["cause"] == "size" and re.search(r"larger than one file may be", large["error"]), large
