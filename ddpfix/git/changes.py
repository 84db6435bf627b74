"""Which lines of the work tree changed since a branch began: `git diff` against the merge base, and untracked files."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ddpfix.git.refusal import GitRefusal
from ddpfix.git.runner import Git, repository

Ranges = tuple[tuple[int, int], ...]
WHOLE: Ranges = ((1, 1 << 31),)
# A patch that is the same whatever the user's settings and attributes say of colours, prefixes, tools and binary files.
_PATCH = (
    *("--unified=0", "--inter-hunk-context=0", "--text", "--find-renames", "--ignore-submodules=all"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def changed_since(root: Path, ref: str) -> Mapping[str, Ranges]:
    """path -> first and last line of each change since the merge base of `ref` and HEAD; an untracked file is all change.

    Where lines were only taken out, the lines on both sides of the gap stand for them. Raises GitRefusal.
    """
    with repository(root) as git:
        base = _merge_base(git, ref)
        done = git.run("-c", "core.quotePath=true", "diff", *_PATCH, base, "--")
        found = read_patch(done.stdout)
        untracked = os.fsdecode(git.run("ls-files", "-z", "--others", "--exclude-standard").stdout).split("\0")
    return {**found, **{path: WHOLE for path in untracked if path}}


def _merge_base(git: Git, ref: str) -> str:
    if ref.startswith("-") or not git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", check=False).text:
        todo = "name a commit, a tag or a branch (in CI: fetch it first)"
        raise GitRefusal(f"cannot find out what changed since {ref!r}", "git knows no commit of that name", todo)
    found = git.run("merge-base", ref, "HEAD", check=False).text
    if not found:
        shallow = git.run("rev-parse", "--is-shallow-repository", check=False).text == "true"
        why = "the history fetched here is too short to hold it" if shallow else "they have no common commit"
        todo = "fetch more of it (`git fetch --unshallow`; `fetch-depth: 0` in CI)" if shallow else "name another commit"
        raise GitRefusal(f"cannot find out where HEAD left {ref!r}", why, todo)
    return found


def read_patch(patch: bytes) -> dict[str, Ranges]:
    """path -> changed lines of the new side, out of a patch without context lines."""
    out: dict[str, list[tuple[int, int]]] = {}
    path = ""
    inside = 0  # lines of a hunk still to come: what looks like a header there is text
    for line in patch.split(b"\n"):
        if inside:
            inside -= not line.startswith(b"\\")
        elif line.startswith(b"+++ "):
            path = _path(line[4:])
        elif match := _HUNK.match(line):
            start, count = int(match[1]), int(match[2] or b"1")
            removed = re.match(rb"@@ -\d+(?:,(\d+))?", line)
            inside = count + int((removed and removed[1]) or b"1")
            if path:
                out.setdefault(path, []).append((start, start + count - 1) if count else (start, start + 1))
    return {name: tuple(ranges) for name, ranges in out.items()}


def _path(name: bytes) -> str:
    """The path of a `+++` line; "" for a file that is gone. git quotes as Python does in bytes, but for the letter in front."""
    name = name.removesuffix(b"\t")
    if name.startswith(b'"'):
        name = ast.literal_eval("b" + name.decode("ascii"))
    return os.fsdecode(name[2:]) if name.startswith(b"b/") else ""
