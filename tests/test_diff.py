"""Patches beside git itself: what `git apply` makes of them is the new file, byte for byte."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from ddpfix.diff import patch, quoted, unified
from tests.gitrepos import make, own_settings


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def apply(folder: Path, before: dict[str, bytes], after: dict[str, bytes]) -> bytes:
    """Lay `before` out, apply the patch, see that `after` came of it; the patch."""
    repo = make(folder, before)
    data = patch(before, after)
    done = subprocess.run(["git", "-C", str(repo), "apply", "--whitespace=nowarn"], input=data, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, data)
    assert {name: (repo / name).read_bytes() for name in after} == after
    return data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", b"a\r\nB\nc\r\n"),
        (b"a\rb\rc\r", b"a\rB\rc\r"),
        (b"a\nb", b"a\nB"),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a\nb", b"A\nb"),
        (b"a", b"a\nb"),
        (b"a\nb", b"a"),
        (b"a\x0cb\nc\n\x0c\nd\n", b"a\x0cb\nC\n\x0c\nd\n"),
        (b"a\x0b\x1c\x1d\x85\nb\n", b"a\x0b\x1c\x1d\x85\nB\n"),
        ("a\u2028b\nc\n".encode(), "a\u2028b\nC\n".encode()),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
        (b"# coding: latin-1\n'\xe9\xff'\n", b"# coding: latin-1\n'\xe9\xfe'\n"),
        (b"--- a\n+++ b\n@@ -1 +1 @@\n-x\n", b"--- a\n+++ b\n@@ -1 +1 @@\n+x\n"),
        (b"\n\n\n", b"\n\nx\n\n"),
        (b"a \nb\t\n", b"a\nb\n"),
        (b"".join(b"%d\n" % i for i in range(60)), b"".join(b"%d\n" % (i if i not in (3, 9, 40) else -i) for i in range(60))),
    ],
)
def test_git_takes_the_patch(tmp_path: Path, before: bytes, after: bytes) -> None:
    apply(tmp_path, {"a.py": before}, {"a.py": after})


@pytest.mark.parametrize(
    "name",
    ["a b.py", "tab\there.py", "new\nline.py", 'quo"te.py', "back\\slash.py", "ü日.py", "-dash.py", "bell\a.py", "a/b c/d.py",
     "'.py", os.fsdecode(b"caf\xe9.py"), "\x7f.py", " lead.py", "trail ", "$HOME.py", "a => b.py"],
)  # fmt: skip
def test_odd_names(tmp_path: Path, name: str) -> None:
    apply(tmp_path, {name: b"a\n", "other.py": b"x\n"}, {name: b"b\n"})


def test_several_files_in_one_patch(tmp_path: Path) -> None:
    before = {"z.py": b"a\n", "a/b.py": b"c", "same.py": b"s\n"}
    data = apply(tmp_path, before, {"z.py": b"b\n", "a/b.py": b"d", "same.py": b"s\n"})
    assert data.index(b"a/b.py") < data.index(b"z.py") and b"same.py" not in data


def test_the_patch_is_the_one_git_writes(tmp_path: Path) -> None:
    before = b"".join(b"line %d\n" % i for i in range(30))
    repo = make(tmp_path, {"a b.py": before})
    after = before.replace(b"line 7\n", b"LINE\n").replace(b"line 20\n", b"")
    (repo / "a b.py").write_bytes(after)
    command = ["git", "-C", str(repo), "-c", "diff.noprefix=false", "diff", "--no-color", "--no-ext-diff"]
    theirs = subprocess.run(command, capture_output=True, check=True).stdout
    lines = [line.split(b" @@")[0] for line in theirs.splitlines() if not line.startswith(b"index ")]
    ours = [line.split(b" @@")[0] for line in unified("a b.py", before, after).splitlines()]
    assert ours == lines


def test_nothing_changed_no_patch() -> None:
    assert unified("a.py", b"a", b"a") == b""
    assert patch({"a.py": b"a"}, {"a.py": b"a"}) == b""


def test_generated_files(tmp_path: Path) -> None:
    chance = random.Random(7)
    ends = [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\x0c\n", b""]
    words = [b"x", b"yy", b" ", b"\t", b"- a", b"+ b", b"\\ No newline at end of file", b"\xff"]
    before, after = {}, {}
    for i in range(40):
        lines = [chance.choice(words) + chance.choice(ends) for _ in range(chance.randrange(1, 30))]
        other = chance.choice(words) + chance.choice(ends)
        new = [line if chance.random() > 0.2 else other for line in lines if chance.random() > 0.1]
        before[f"f{i}.py"], after[f"f{i}.py"] = b"".join(lines) or b"a", b"".join(new) or b"b"
    apply(tmp_path, before, after)


def test_quoted_names() -> None:
    assert quoted("plain ü.py") == "plain ü.py"
    assert quoted('a"b\\c\n\x01') == '"a\\"b\\\\c\\n\\001"'
    assert quoted(os.fsdecode(b"\xff\t")) == '"\\377\\t"'
