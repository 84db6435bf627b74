"""Commits on a branch of their own, by git's plumbing and a private index.

The user's branch, index, files, stash and reflog stay as they are, so this also works with uncommitted work in the tree
and in detached, shallow, sparse and bare repositories.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddpfix.git.at_work import holding
from ddpfix.git.branches import TRAILER, branch_runs, claim
from ddpfix.git.identity import as_author, author
from ddpfix.git.journal import BranchRun, forget, record
from ddpfix.git.refusal import GitRefusal, check_relative, check_run_id, shown
from ddpfix.git.runner import Git, failed, repository
from ddpfix.git.snapshots import Snapshot


@dataclass(frozen=True)
class Step:
    """One commit: its message, and the whole new contents of its files by path."""

    message: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Committed:
    """The branch as it stands now.

    `commits` are (id, subject), oldest first, none if the steps change nothing (then no branch was made or moved).
    `previous` is the tip of ours that was replaced. `run_id` is an earlier run's where its commits were kept because
    the result is the same (`kept`). `identity_note` says whose name stands in the commits if not the user's.
    """

    run_id: str
    branch: str
    ref: str
    base: str
    commits: tuple[tuple[str, str], ...]
    previous: str | None = None
    kept: bool = False
    identity_note: str | None = None


def commit_steps(
    snapshot: Snapshot,
    steps: Sequence[Step],
    *,
    branch: str,
    run_id: str,
    sign: bool | None = None,
    filters: bool = False,
    run_hooks: bool = False,
    identity: tuple[str, str] | None = None,
) -> Committed:
    """Commit `steps` one by one on top of `snapshot.base` and point `branch` at the last; one journal entry.

    Bytes are stored as they are; with `filters` the repository's clean filters apply. A file keeps its mode. `sign`:
    None = as configured. Steps that change nothing are left out. An untouched branch of an earlier run is replaced,
    or kept if it holds the same already. HEAD, index, files, stash and HEAD's reflog are not touched. `identity`: the name
    and address of the commits, if not the user's.

    Raises GitRefusal, with no branch made or moved: see `check_branch`; a path that is no ordinary file inside the
    repository; a signature or a hook that fails.
    """
    check_run_id(run_id)
    for path in {path for step in steps for path in step.files}:
        _check_target(snapshot, path)
    ref = f"refs/heads/{branch}"
    with repository(snapshot.root) as git, holding(git), tempfile.TemporaryDirectory(prefix="ddpfix-") as folder:
        previous = claim(git, snapshot, branch)
        scratch = Path(folder)
        entries = _store(git, snapshot, steps, scratch, filters=filters)
        if not run_hooks:
            planned = _trees(git, snapshot.base, entries, scratch)
            if not planned:
                return Committed(run_id, branch, ref, snapshot.base, ())
            if previous and (kept := _same_as(git, snapshot, previous, planned, branch=branch, run_id=run_id)):
                return kept
        who, note = author(git) if identity is None else (as_author(*identity), None)
        if run_hooks:
            commits = _commit_with_hooks(git, snapshot.base, entries, scratch, run_id, who, sign)
            if not commits:
                return Committed(run_id, branch, ref, snapshot.base, ())
        else:
            commits = _commit(git, snapshot.base, planned, run_id, who, sign)
        _point(git, snapshot, BranchRun(run_id, str(snapshot.root), branch, commits[-1], previous, snapshot.base, None))
        return Committed(
            run_id, branch, ref, snapshot.base, _subjects(git, commits), previous=previous, identity_note=note
        )


def _check_target(snapshot: Snapshot, path: str) -> None:
    check_relative(path)
    closed = {**dict.fromkeys(snapshot.symlinks, "symbolic link"), **dict.fromkeys(snapshot.submodules, "submodule")}
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        if kind := closed.get("/".join(parts[:end])):
            raise GitRefusal(f"{shown(path)} is not written", f"it is (in) a {kind}", "leave it out")


@dataclass(frozen=True)
class _Entries:
    """A step whose bytes are stored: `lines` is what update-index reads, `paths` what checkout-index reads."""

    message: str
    lines: bytes
    paths: bytes


@dataclass(frozen=True)
class _Planned:
    message: str
    tree: str


def _store(
    git: Git, snapshot: Snapshot, steps: Sequence[Step], scratch: Path, *, filters: bool
) -> tuple[_Entries, ...]:
    contents = [(path, content) for step in steps for path, content in step.files.items()]
    if filters:
        shas = [git.text("hash-object", "-w", "--stdin", f"--path={path}", data=content) for path, content in contents]
    else:
        names = [scratch / str(number) for number in range(len(contents))]
        for name, (_, content) in zip(names, contents, strict=True):
            name.write_bytes(content)
        listed = "".join(f"{name}\n" for name in names).encode()
        shas = git.text("hash-object", "-w", "--no-filters", "--stdin-paths", data=listed).split() if names else []
    ids = iter(shas)
    return tuple(
        _Entries(
            # A file name that is no text may stand in a message.
            message=step.message.strip().encode("utf-8", "backslashreplace").decode(),
            lines=b"".join(
                f"{blob.mode if (blob := snapshot.committed.get(path)) else '100644'} {next(ids)}\t".encode()
                + os.fsencode(path)
                + b"\0"
                for path in step.files
            ),
            paths=b"".join(os.fsencode(path) + b"\0" for path in step.files),
        )
        for step in steps
    )


def _trees(git: Git, base: str, steps: Sequence[_Entries], scratch: Path) -> list[_Planned]:
    """The tree after each step that changes something, through a private index."""
    env = {"GIT_INDEX_FILE": str(scratch / "index")}
    git.run("read-tree", base, env=env)
    last = git.text("rev-parse", "--verify", f"{base}^{{tree}}")
    planned = []
    for step in steps:
        git.run("update-index", "-z", "--index-info", data=step.lines, env=env)
        # --missing-ok: a sparse or partial clone lacks objects of files that no step touches.
        tree = git.text("write-tree", "--missing-ok", env=env)
        if tree != last:
            planned.append(_Planned(step.message, tree))
            last = tree
    return planned


def _message(text: str, run_id: str) -> str:
    # trailers are the last paragraph: one that the text ends with already goes on
    goes_on = re.fullmatch(r"(?:ddpfix-[a-z]+: .*\n?)+", text.rpartition("\n\n")[2])
    whole = f"{text}{'' if goes_on else chr(10)}\n{TRAILER}: {run_id}\n"
    return whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # a file's name may be no UTF-8


def _commit(
    git: Git, base: str, planned: Sequence[_Planned], run_id: str, identity: Mapping[str, str], sign: bool | None
) -> list[str]:
    # commit-tree does not read commit.gpgsign.
    options = ["-S"] if (git.flag("commit.gpgsign") if sign is None else sign) else ["--no-gpg-sign"]
    commits = [base]
    for step in planned:
        command = ("commit-tree", step.tree, "-p", commits[-1], *options, "-F", "-")
        made = git.run(*command, data=_message(step.message, run_id).encode(), env=identity, check=False)
        if made.status and "-S" in options:
            why = next((line for line in made.stderr.splitlines() if line.strip()), "no reason given")
            raise GitRefusal(
                "the commits could not be signed", why, "repair the key, or `git config commit.gpgsign false` here"
            )
        if made.status:
            raise failed(command, made)
        commits.append(made.text)
    return commits[1:]


def _commit_with_hooks(
    git: Git,
    base: str,
    steps: Sequence[_Entries],
    scratch: Path,
    run_id: str,
    identity: Mapping[str, str],
    sign: bool | None,
) -> list[str]:
    """The same commits by `git commit` in a passing work tree, where the hooks find the files they look for."""
    folder = scratch / "worktree"
    signing = [] if sign is None else ["-S" if sign else "--no-gpg-sign"]
    commits = []
    git.run("worktree", "add", "--quiet", "--detach", str(folder), base, env={"GIT_LFS_SKIP_SMUDGE": "1"})
    try:
        inside = git.at(folder)
        for step in steps:
            inside.run("update-index", "-z", "--index-info", data=step.lines)
            inside.run("checkout-index", "--force", "-u", "-z", "--stdin", data=step.paths)
            if inside.run("diff-index", "--cached", "--quiet", "HEAD", "--", check=False).status == 0:
                continue
            command = ("commit", "--quiet", "--cleanup=verbatim", *signing, "-F", "-")
            message = _message(step.message, run_id).encode()
            made = inside.run(*command, data=message, env=identity, hooks=True, check=False)
            if made.status:
                said = [line for line in (made.stderr or os.fsdecode(made.stdout)).splitlines() if line.strip()]
                raise GitRefusal(
                    "a commit was refused by git or a hook", " / ".join(said[:3]), "repair this, or leave --run-hooks out"
                )
            commits.append(inside.text("rev-parse", "HEAD"))
    finally:
        git.run("worktree", "remove", "--force", "--force", str(folder), check=False)
    return commits


def _same_as(
    git: Git, snapshot: Snapshot, tip: str, planned: Sequence[_Planned], *, branch: str, run_id: str
) -> Committed | None:
    """The branch as an earlier run left it, if it holds what is planned: same base, trees and messages."""
    found = git.run("log", "-z", "--reverse", "--format=%H%n%P%n%T%n%B", f"{snapshot.base}..{tip}", "--").stdout
    commits: list[str] = [snapshot.base]
    content = []
    for row in found.removesuffix(b"\0").split(b"\0"):
        sha, parents, tree, message = (os.fsdecode(row).split("\n", 3) + [""] * 3)[:4]
        if parents != commits[-1]:
            return None
        commits.append(sha)
        content.append((tree, re.sub(rf"\n{TRAILER}: .*\s*\Z", "", message).strip()))
    if content != [(step.tree, step.message) for step in planned]:
        return None
    entry = next((run for run in branch_runs(git) if (run.branch, run.commit) == (branch, tip)), None)
    if entry is None:
        entry = BranchRun(run_id, str(snapshot.root), branch, tip, None, snapshot.base, None)
    # `undo` goes back to where the user is now.
    record(git.journal, replace(entry, head_ref=snapshot.head_ref))
    ref = f"refs/heads/{branch}"
    return Committed(entry.run_id, branch, ref, snapshot.base, _subjects(git, commits[1:]), kept=True)


def _point(git: Git, snapshot: Snapshot, run: BranchRun) -> None:
    """Journal first, so that no branch is ever without its way back; then one compare-and-swap."""
    record(git.journal, replace(run, head_ref=snapshot.head_ref))
    try:
        expected = run.previous or "0" * len(run.base)
        reason = f"ddpfix: {run.run_id}"
        command = ("update-ref", "--create-reflog", "-m", reason, f"refs/heads/{run.branch}", run.commit, expected)
        moved = git.run(*command, check=False)
        if moved.status:
            why = failed(command, moved).why
            raise GitRefusal(f"the branch {run.branch} could not be moved", why, "look at it and run again")
    except BaseException:
        # Also a git that failed may have moved the branch: then the way back stays.
        tip = git.commit_of(f"refs/heads/{run.branch}")
        if tip != run.commit:
            forget(git.journal, run.run_id)
        raise


def _subjects(git: Git, commits: Sequence[str]) -> tuple[tuple[str, str], ...]:
    data = "".join(f"{commit}\n" for commit in commits).encode()
    rows = git.text("log", "--no-walk=unsorted", "--stdin", "--format=%H %s", data=data).split("\n")
    return tuple((sha, subject) for sha, _, subject in (row.partition(" ") for row in rows))
