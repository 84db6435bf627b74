"""Commits on a branch of their own: the user's branch, index, files, stash and reflog stay as they are.

Everything up to the switch is git's plumbing with a private index, so it also works with uncommitted work in the tree
and in detached, shallow, sparse and bare repositories. `switch_to` is the one step that writes the user's files, and
there git itself refuses, before it writes, if work would be lost. GitPython is the runner only: its own index drops
clean filters, signing and newer index formats.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ddpfix.journal import (
    BranchRun,
    GitRefusal,
    check_relative,
    check_run_id,
    forget,
    named,
    record,
    runs,
    shown,
    undo_in_place,
    write_in_place,
)

if TYPE_CHECKING:
    from git import Repo

__all__ = [
    "Blob",
    "Committed",
    "GitRefusal",
    "Snapshot",
    "Step",
    "Undone",
    "check_branch",
    "check_switch",
    "commit_steps",
    "find_root",
    "journal_folder",
    "read_blobs",
    "relative_path",
    "snapshot",
    "switch_to",
    "undo",
    "undo_in_place",
    "write_in_place",
]

TRAILER = "ddpfix-run"
FALLBACK_IDENTITY = ("ddpfix", "ddpfix@users.noreply.invalid")

# What `git rev-parse --local-env-vars` lists, but for configuration: a hook or an alias that starts ddpfix sets these
# for a repository, an index and an object store that are not ours to write.
_INHERITED = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE"),
    *("GIT_QUARANTINE_PATH", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
_CONFIG = (
    *("core.fsmonitor=false", "core.quotePath=false", "core.splitIndex=false", "gc.auto=0", "maintenance.auto=false"),
    *("protocol.ext.allow=never", "log.showSignature=false", "color.ui=false", "advice.detachedHead=false"),
    *("i18n.commitEncoding=utf-8", "i18n.logOutputEncoding=utf-8"),
)

# Files in the git directory that say what is under way, the command that finishes it and the one that gives it up.
_OPERATIONS = (
    ("merge", "MERGE_HEAD", "git merge --continue", "git merge --abort"),
    ("am", "rebase-apply/applying", "git am --continue", "git am --abort"),
    ("rebase", "rebase-merge", "git rebase --continue", "git rebase --abort"),
    ("rebase", "rebase-apply", "git rebase --continue", "git rebase --abort"),
    ("cherry-pick", "CHERRY_PICK_HEAD", "git cherry-pick --continue", "git cherry-pick --abort"),
    ("revert", "REVERT_HEAD", "git revert --continue", "git revert --abort"),
    ("bisect", "BISECT_LOG", "git bisect good|bad", "git bisect reset"),
)


@dataclass(frozen=True)
class Blob:
    """An ordinary committed file: its mode (100644 or 100755) and the id of its bytes."""

    mode: str
    sha: str


@dataclass(frozen=True)
class Snapshot:
    """What a repository looks like now; paths are relative to `root`, posix, as committed at `base`.

    `head_ref` is None where HEAD is detached; `operation` names a merge, rebase … under way; `dirty` maps tracked
    files with uncommitted changes to their two-letter status. Symbolic links and submodules are no fixable files.
    """

    root: Path
    base: str
    head_ref: str | None
    operation: str | None
    dirty: Mapping[str, str]
    sparse: bool
    shallow: bool
    bare: bool
    committed: Mapping[str, Blob]
    symlinks: tuple[str, ...]
    submodules: tuple[str, ...]


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


@dataclass(frozen=True)
class Undone:
    """What `undo` did. `back_to` is the branch (or commit) that was switched back to, None where HEAD did not move.

    `restored` is the earlier tip of ours the branch has again, None where the branch is gone. `already_gone`: someone
    had deleted the branch before. `merged`: what is checked out contains the commits, so they are still in force.
    """

    run_id: str
    branch: str
    back_to: str | None
    restored: str | None
    already_gone: bool
    merged: bool


def find_root(path: Path) -> Path | None:
    """The root of the work tree that holds `path`; None outside git. Raises GitRefusal: bare, in `.git`, no git."""
    start = path.resolve()
    while not start.is_dir():
        start = start.parent
    if not any((folder / ".git").exists() or (folder / "HEAD").is_file() for folder in (start, *start.parents)):
        return None
    with _clean_environment():
        repo = _open(start, search=True)
        if repo is None:
            return None
        with repo:
            git = _Git(repo, start)
            if git.text("rev-parse", "--is-bare-repository") == "true":
                raise _bare(start)
            if git.text("rev-parse", "--is-inside-work-tree") != "true":
                raise GitRefusal(f"{start} is not analysed", "it is git's own folder", "name the project's folder")
            return Path(git.text("rev-parse", "--show-toplevel"))


def relative_path(root: Path, path: Path) -> str:
    """`path` relative to `root`, posix (`.` for the root itself). Raises GitRefusal for a path outside of it."""
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise GitRefusal(
            f"{shown(str(path))} is left alone", f"it is outside the repository {root}", f"give paths inside {root}"
        ) from None


def snapshot(root: Path) -> Snapshot:
    """Read the state of the repository at `root` (a work tree root, or a bare repository). Writes nothing.

    Raises GitRefusal: not a repository, or no commit yet.
    """
    with _repository(root) as git:
        head = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False)
        if head.status:
            raise GitRefusal(f"{root} has no commit yet", "fixes are commits on top of one", "commit something first")
        bare = git.text("rev-parse", "--is-bare-repository") == "true"
        entries = list(_tree_entries(git, head.text))
        return Snapshot(
            root=root,
            base=head.text,
            head_ref=git.run("symbolic-ref", "--quiet", "HEAD", check=False).text or None,
            operation=next((name for name, mark, *_ in _OPERATIONS if (git.folder / mark).exists()), None),
            dirty={} if bare else _dirty(git),
            sparse=git.flag("core.sparseCheckout"),
            shallow=git.text("rev-parse", "--is-shallow-repository") == "true",
            bare=bare,
            committed={path: Blob(mode, sha) for mode, sha, path in entries if mode in ("100644", "100755")},
            symlinks=tuple(path for mode, _, path in entries if mode == "120000"),
            submodules=tuple(path for mode, _, path in entries if mode == "160000"),
        )


def read_blobs(root: Path, shas: Iterable[str]) -> dict[str, bytes]:
    """The committed bytes of many blobs, by id, in one git process. Raises GitRefusal where one cannot be read."""
    wanted = list(dict.fromkeys(shas))
    if not wanted:
        return {}
    with _repository(root) as git:
        out = git.run("cat-file", "--batch", data="".join(f"{sha}\n" for sha in wanted).encode()).stdout
    found: dict[str, bytes] = {}
    at = 0
    for sha in wanted:
        end = out.index(b"\n", at)
        fields = out[at:end].split()
        if len(fields) != 3:
            raise GitRefusal(
                f"the object {sha} cannot be read", os.fsdecode(out[at:end]), "run `git fetch` or `git fsck`"
            )
        start, size = end + 1, int(fields[2])
        found[sha] = out[start : start + size]
        at = start + size + 1
    return found


def check_branch(snapshot: Snapshot, branch: str) -> str | None:
    """The tip of the branch of ours that a run would replace, None for a new branch. Writes nothing.

    Raises GitRefusal: no valid name, in the way of another branch's name, somebody else's commits, or checked out.
    """
    with _repository(snapshot.root) as git:
        return _claim(git, snapshot, branch)


def check_switch(snapshot: Snapshot, paths: Iterable[str]) -> None:
    """Raises GitRefusal where a switch to commits that change `paths` would be refused. Writes nothing."""
    if snapshot.bare:
        raise _bare(snapshot.root)
    if snapshot.operation:
        raise _under_way(snapshot.operation)
    if conflicts := [path for path, status in snapshot.dirty.items() if "U" in status or status in ("AA", "DD")]:
        raise GitRefusal("files have unresolved conflicts", named(conflicts), "resolve them first, or use --no-switch")
    wanted = sorted(set(paths))
    instead = "commit or stash them, or use --include-dirty (fix them where they stand) or --no-switch (branch only)"
    if dirty := [path for path in wanted if path in snapshot.dirty]:
        raise GitRefusal("files to fix have uncommitted changes", named(dirty), instead)
    new = (path for path in wanted if path not in snapshot.committed)
    if there := [path for path in new if os.path.lexists(snapshot.root / path)]:
        raise GitRefusal(
            "files to add are there already, uncommitted", named(there), "move them away, or use --no-switch"
        )


def commit_steps(
    snapshot: Snapshot,
    steps: Sequence[Step],
    *,
    branch: str,
    run_id: str,
    sign: bool | None = None,
    filters: bool = False,
    run_hooks: bool = False,
) -> Committed:
    """Commit `steps` one by one on top of `snapshot.base` and point `branch` at the last; one journal entry.

    Bytes are stored as they are; with `filters` the repository's clean filters apply. A file keeps its mode. `sign`:
    None = as configured. Steps that change nothing are left out. An untouched branch of an earlier run is replaced,
    or kept if it holds the same already. HEAD, index, files, stash and HEAD's reflog are not touched.

    Raises GitRefusal, with no branch made or moved: see `check_branch`; a path that is no ordinary file inside the
    repository; a signature or a hook that fails.
    """
    check_run_id(run_id)
    for path in {path for step in steps for path in step.files}:
        _check_target(snapshot, path)
    ref = f"refs/heads/{branch}"
    with _repository(snapshot.root) as git, tempfile.TemporaryDirectory(prefix="ddpfix-") as folder:
        previous = _claim(git, snapshot, branch)
        scratch = Path(folder)
        entries = _store(git, snapshot, steps, scratch, filters=filters)
        if not run_hooks:
            planned = _trees(git, snapshot.base, entries, scratch)
            if not planned:
                return Committed(run_id, branch, ref, snapshot.base, ())
            if previous and (kept := _same_as(git, snapshot, previous, planned, branch=branch, run_id=run_id)):
                return kept
        identity, note = _identity(git)
        if run_hooks:
            commits = _commit_with_hooks(git, snapshot.base, entries, scratch, run_id, identity, sign)
            if not commits:
                return Committed(run_id, branch, ref, snapshot.base, ())
        else:
            commits = _commit(git, snapshot.base, planned, run_id, identity, sign)
        _point(git, snapshot, BranchRun(run_id, str(snapshot.root), branch, commits[-1], previous, snapshot.base, None))
        return Committed(
            run_id, branch, ref, snapshot.base, _subjects(git, commits), previous=previous, identity_note=note
        )


def switch_to(root: Path, branch: str, *, run_id: str) -> str | None:
    """Check `branch` out; uncommitted work that is not in the way comes along.

    First the uncommitted tracked work, if any, is stored as a commit under `refs/ddpfix/backup/<run_id>`; returns that
    ref or None. Raises GitRefusal, with nothing changed: an operation under way, no work tree, or (named) files whose
    uncommitted work would be lost.
    """
    check_run_id(run_id)
    now = snapshot(root)
    check_switch(now, ())
    if now.head_ref == f"refs/heads/{branch}":
        return None
    with _repository(root) as git:
        backup = _back_up(git, now, run_id)
        _switch(git, branch, backup=backup)
    return backup


def undo(root: Path, run_id: str | None = None) -> Undone:
    """Take back the last run (or `run_id`): switch away from its branch if that is checked out, then remove it.

    A branch that replaced an earlier one of ours points at that again. Raises GitRefusal, with nothing changed:
    nothing to undo, commits on the branch since, the branch checked out elsewhere, work that would be lost.
    """
    now = snapshot(root)
    with _repository(root) as git:
        run = _run_to_undo(git, run_id)
        ref = f"refs/heads/{run.branch}"
        tip = git.run("rev-parse", "--verify", "--quiet", ref, check=False).text
        if not tip:
            _forget(git, run.run_id)
            return Undone(run.run_id, run.branch, None, None, already_gone=True, merged=False)
        _check_untouched(git, run, tip)
        back_to = None
        if now.head_ref == ref:
            if now.operation:
                raise _under_way(now.operation)
            back_to = _switch_back(git, run)
        elif elsewhere := _checked_out(git).get(ref):
            raise _in_worktree(run.branch, elsewhere)
        if run.previous:
            git.run("update-ref", "-m", f"ddpfix: undo {run.run_id}", ref, run.previous, run.commit)
        else:
            git.run("update-ref", "-d", ref, run.commit)
        _forget(git, run.run_id)
        merged = git.run("merge-base", "--is-ancestor", run.commit, "HEAD", check=False).status == 0
        return Undone(run.run_id, run.branch, back_to, run.previous, already_gone=False, merged=merged)


def journal_folder(root: Path) -> Path:
    """Where the runs of a repository are written down: one folder for all its work trees. Raises GitRefusal."""
    with _repository(root) as git:
        return git.journal


# --- running git ---


@dataclass(frozen=True)
class _Result:
    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return os.fsdecode(self.stdout.removesuffix(b"\n"))


class _Git:
    """git in one repository: bytes in, bytes out."""

    def __init__(self, repo: Repo, root: Path) -> None:
        self._repo = repo
        self.root = root
        self.folder = Path(repo.git_dir)
        self.journal = Path(repo.common_dir).resolve() / "ddpfix"

    def at(self, root: Path) -> _Git:
        return _Git(self._repo, root)

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        env: Mapping[str, str] | None = None,
        hooks: bool = False,
        check: bool = True,
    ) -> _Result:
        config = _CONFIG if hooks else (*_CONFIG, "core.hooksPath=/dev/null")
        options = [part for setting in config for part in ("-c", setting)]
        with tempfile.TemporaryFile() as stream:
            stream.write(data)
            stream.seek(0)
            status, stdout, stderr = self._repo.git.execute(
                [str(self._repo.git.GIT_PYTHON_GIT_EXECUTABLE), *options, "-C", str(self.root), *arguments],
                istream=stream,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={**_ENVIRONMENT, **(env or {})},
            )
        result = _Result(status, stdout, stderr)
        if check and status:
            raise _failed(arguments, result)
        return result

    def text(self, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        return self.run(*arguments, data=data, env=env).text

    def flag(self, setting: str) -> bool:
        return self.run("config", "--type=bool", "--get", setting, check=False).text == "true"


_environment_lock = threading.RLock()


@contextmanager
def _clean_environment() -> Iterator[None]:
    """The process without inherited git variables: GitPython can only add variables for the git it starts."""
    with _environment_lock:
        inherited = {name: os.environ.pop(name) for name in _INHERITED if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(inherited)


def _open(path: Path, *, search: bool = False) -> Repo | None:
    try:
        # 0.13 s, so only where git is really needed.
        from git import InvalidGitRepositoryError, NoSuchPathError, Repo
    except ImportError as error:
        raise GitRefusal("git cannot be run", str(error), "install git, or use --in-place") from error
    try:
        return Repo(path, search_parent_directories=search, expand_vars=False)
    except (InvalidGitRepositoryError, NoSuchPathError):
        return None


@contextmanager
def _repository(root: Path) -> Iterator[_Git]:
    with _clean_environment():
        repo = _open(root)
        if repo is None:
            raise GitRefusal(
                f"{root} is not a git repository", "there is no .git in it", "run `git init`, or --in-place"
            )
        with repo:
            yield _Git(repo, root)


def _failed(arguments: Sequence[str], result: _Result) -> GitRefusal:
    command = f"git {arguments[0]}"
    lines = [line for line in result.stderr.splitlines() if line.strip()] or [f"exit status {result.status}"]
    why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    if "dubious ownership" in why:
        todo = next(
            (line.strip() for line in lines if "safe.directory" in line), "see `git help config`, safe.directory"
        )
        return GitRefusal("git does not trust this repository", why.removeprefix("fatal: "), todo)
    return GitRefusal(
        f"{command} failed", why.removeprefix("fatal: ").removeprefix("error: "), "mend this and run again"
    )


def _bare(root: Path) -> GitRefusal:
    return GitRefusal(f"{root} is a bare repository", "it has no files to work on", "use a clone or a work tree of it")


def _under_way(operation: str) -> GitRefusal:
    _, _, finish, abort = next(row for row in _OPERATIONS if row[0] == operation)
    return GitRefusal(
        f"a {operation} is in progress",
        "switching branches now would disturb it",
        f"{finish} or {abort}, or --no-switch",
    )


def _in_worktree(branch: str, folder: str) -> GitRefusal:
    return GitRefusal(
        f"the branch {branch} is left alone",
        f"it is checked out in {folder}",
        "switch that work tree away, or --branch",
    )


# --- reading ---


def _tree_entries(git: _Git, base: str) -> Iterator[tuple[str, str, str]]:
    """(mode, id, path) of everything committed at `base`."""
    for entry in git.run("ls-tree", "-r", "-z", "--full-tree", base).stdout.split(b"\0")[:-1]:
        facts, _, path = entry.partition(b"\t")
        mode, _, sha = facts.decode().split()
        yield mode, sha, os.fsdecode(path)


def _dirty(git: _Git) -> dict[str, str]:
    command = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
    rows = git.run(*command).stdout.split(b"\0")[:-1]
    return {os.fsdecode(row[3:]): row[:2].decode() for row in rows}


def _check_target(snapshot: Snapshot, path: str) -> None:
    check_relative(path)
    closed = {**dict.fromkeys(snapshot.symlinks, "symbolic link"), **dict.fromkeys(snapshot.submodules, "submodule")}
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        if kind := closed.get("/".join(parts[:end])):
            raise GitRefusal(f"{shown(path)} is not written", f"it is (in) a {kind}", "leave it out")


# --- whose branch ---


def _claim(git: _Git, snapshot: Snapshot, branch: str) -> str | None:
    ref = f"refs/heads/{branch}"
    valid = not branch.startswith("-") and branch != "HEAD" and "\0" not in branch
    if not valid or git.run("check-ref-format", ref, check=False).status:
        raise GitRefusal(
            f"{shown(branch)!r} is not a branch name", "git does not allow it", "choose another with --branch"
        )
    _check_clash(git, ref)
    if snapshot.head_ref == ref:
        raise GitRefusal(
            f"the branch {branch} is checked out now",
            "a new run replaces it, on top of your own branch",
            "switch back to your branch or run `ddpfix undo` first, or choose another with --branch",
        )
    if elsewhere := _checked_out(git).get(ref):
        raise _in_worktree(branch, elsewhere)
    tip = git.run("rev-parse", "--verify", "--quiet", ref, check=False).text
    if tip and (foreign := _foreign_commit(git, branch, tip)):
        raise GitRefusal(
            f"the branch {branch} is left alone",
            f"it holds {foreign}, which is not from ddpfix",
            "choose another with --branch, or rename or delete that one",
        )
    return tip or None


def _check_clash(git: _Git, ref: str) -> None:
    """A ref is a file where git keeps it loose: `ddpfix` and `ddpfix/fixes` cannot both be."""
    parts = ref.split("/")
    above = {"/".join(parts[:end]) for end in range(3, len(parts))}
    refs = git.text("for-each-ref", "--format=%(refname)", "--", *above, ref).split("\n")
    if other := next((name for name in refs if name in above or name.startswith(f"{ref}/")), None):
        raise GitRefusal(
            f"the branch {ref.removeprefix('refs/heads/')} cannot be made",
            f"git cannot hold it beside the branch {other.removeprefix('refs/heads/')}",
            "choose another with --branch",
        )


def _checked_out(git: _Git) -> dict[str, str]:
    """ref -> work tree that has it checked out."""
    found: dict[str, str] = {}
    folder = ""
    for line in git.text("worktree", "list", "--porcelain").split("\n"):
        key, _, value = line.partition(" ")
        if key == "worktree":
            folder = value
        elif key == "branch":
            found[value] = folder
    # A branch under a rebase has no HEAD on it, but is written when the rebase ends.
    for mark in ("rebase-merge", "rebase-apply"):
        with suppress(OSError):
            found[(git.folder / mark / "head-name").read_text().strip()] = str(git.root)
    return found


def _foreign_commit(git: _Git, branch: str, tip: str) -> str | None:
    """A commit on `branch` that no run made, in words; None where all are ours.

    A tip that the journal knows was left by us as it is; one with the trailer of a run that left another tip was
    amended. Without an entry (a branch fetched from elsewhere) every commit that stands on no other branch must carry
    the trailer.
    """
    left = [run for run in _branch_runs(git) if run.branch == branch]
    if any(run.commit == tip for run in left):
        return None
    if _run_of(git, tip) in {run.run_id for run in left}:
        return _described(git, tip)
    own = git.text("rev-list", tip, "--not", f"--exclude={branch}", "--branches", "HEAD", "--").split()
    return next((_described(git, commit) for commit in (tip, *own) if not _run_of(git, commit)), None)


def _run_of(git: _Git, commit: str) -> str:
    return git.text("log", "-1", f"--format=%(trailers:key={TRAILER},valueonly,separator=%x2C)", commit, "--").strip()


def _described(git: _Git, commit: str) -> str:
    return git.text("log", "-1", "--format=%h (%s, by %an)", commit, "--")


# --- making commits ---


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
    git: _Git, snapshot: Snapshot, steps: Sequence[Step], scratch: Path, *, filters: bool
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


def _trees(git: _Git, base: str, steps: Sequence[_Entries], scratch: Path) -> list[_Planned]:
    """The tree after each step that changes something, through a private index."""
    env = {"GIT_INDEX_FILE": str(scratch / "index")}
    git.run("read-tree", base, env=env)
    last = git.text("rev-parse", "--verify", f"{base}^{{tree}}")
    planned = []
    for step in steps:
        git.run("update-index", "-z", "--index-info", data=step.lines, env=env)
        tree = git.text("write-tree", env=env)
        if tree != last:
            planned.append(_Planned(step.message, tree))
            last = tree
    return planned


def _message(text: str, run_id: str) -> str:
    return f"{text}\n\n{TRAILER}: {run_id}\n"


def _identity(git: _Git) -> tuple[dict[str, str], str | None]:
    """Variables that name an author where git would have to guess one, and the note that says so."""
    name, email = FALLBACK_IDENTITY
    # `user.useConfigOnly` keeps git from guessing out of the host and login names, but also from reading $EMAIL.
    given = os.environ.get("EMAIL", "")
    missing = [
        role
        for role in ("AUTHOR", "COMMITTER")
        if git.run(
            *("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT"),
            env={f"GIT_{role}_EMAIL": given} if given else None,
            check=False,
        ).status
    ]
    env = {f"GIT_{role}_{key}": value for role in missing for key, value in (("NAME", name), ("EMAIL", email))}
    note = f"git has no user.name and user.email here, so the commits are by {name} <{email}>" if missing else None
    return env, note


def _commit(
    git: _Git, base: str, planned: Sequence[_Planned], run_id: str, identity: Mapping[str, str], sign: bool | None
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
                "the commits could not be signed", why, "mend the key, or `git config commit.gpgsign false` here"
            )
        if made.status:
            raise _failed(command, made)
        commits.append(made.text)
    return commits[1:]


def _commit_with_hooks(
    git: _Git,
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
                    "a commit was refused by git or a hook", " / ".join(said[:3]), "mend this, or leave --run-hooks out"
                )
            commits.append(inside.text("rev-parse", "HEAD"))
    finally:
        git.run("worktree", "remove", "--force", "--force", str(folder), check=False)
    return commits


def _same_as(
    git: _Git, snapshot: Snapshot, tip: str, planned: Sequence[_Planned], *, branch: str, run_id: str
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
    entry = next((run for run in _branch_runs(git) if (run.branch, run.commit) == (branch, tip)), None)
    if entry is None:
        entry = BranchRun(run_id, str(snapshot.root), branch, tip, None, snapshot.base, None)
    # `undo` goes back to where the user is now.
    record(git.journal, replace(entry, head_ref=snapshot.head_ref))
    ref = f"refs/heads/{branch}"
    return Committed(entry.run_id, branch, ref, snapshot.base, _subjects(git, commits[1:]), kept=True)


def _point(git: _Git, snapshot: Snapshot, run: BranchRun) -> None:
    """Journal first, so that no branch is ever without its way back; then one compare-and-swap."""
    record(git.journal, replace(run, head_ref=snapshot.head_ref))
    try:
        expected = run.previous or "0" * len(run.base)
        reason = f"ddpfix: {run.run_id}"
        command = ("update-ref", "--create-reflog", "-m", reason, f"refs/heads/{run.branch}", run.commit, expected)
        moved = git.run(*command, check=False)
        if moved.status:
            why = _failed(command, moved).why
            raise GitRefusal(f"the branch {run.branch} could not be moved", why, "look at it and run again")
    except BaseException:
        forget(git.journal, run.run_id)
        raise


def _subjects(git: _Git, commits: Sequence[str]) -> tuple[tuple[str, str], ...]:
    data = "".join(f"{commit}\n" for commit in commits).encode()
    rows = git.text("log", "--no-walk=unsorted", "--stdin", "--format=%H %s", data=data).split("\n")
    return tuple((sha, subject) for sha, _, subject in (row.partition(" ") for row in rows))


# --- switching and taking back ---


def _back_up(git: _Git, snapshot: Snapshot, run_id: str) -> str | None:
    """Uncommitted tracked work as a commit under a ref of ours; through a copy of the index, which it refreshes."""
    with tempfile.TemporaryDirectory(prefix="ddpfix-") as folder:
        copy = Path(folder, "index")
        with suppress(FileNotFoundError):
            copy.write_bytes((git.folder / "index").read_bytes())
        env = {"GIT_INDEX_FILE": str(copy), **_identity(git)[0]}
        # What `git add -N` announced must be added for `git stash create` to take it.
        announced = b"".join(os.fsencode(path) + b"\0" for path, status in snapshot.dirty.items() if status == " A")
        git.run("update-index", "--add", "--remove", "-z", "--stdin", data=announced, env=env)
        stash = git.text("stash", "create", f"before ddpfix {run_id}", env=env)
    if not stash:
        return None
    ref = _backup_ref(run_id)
    git.run("update-ref", "-m", f"ddpfix: {run_id}", ref, stash)
    return ref


def _backup_ref(run_id: str) -> str:
    return f"refs/ddpfix/backup/{run_id}"


def _switch(git: _Git, *target: str, backup: str | None = None) -> None:
    command = ("switch", "--quiet", "--no-guess", "--no-overwrite-ignore", "--no-recurse-submodules", *target)
    done = git.run(*command, check=False)
    if not done.status:
        return
    in_the_way = [line.strip() for line in done.stderr.splitlines() if line.startswith("\t")]
    if "would be overwritten" in done.stderr and in_the_way:
        if backup:
            git.run("update-ref", "-d", backup)
        raise GitRefusal(
            f"not switched to {target[-1]}",
            f"your uncommitted work in {named(in_the_way)} would be overwritten",
            f"commit, stash or move it, then `git switch {' '.join(target)}`",
        )
    refusal = _failed(command, done)
    kept = f"; your uncommitted work is also kept as {backup}" if backup else ""
    raise GitRefusal(f"not switched to {target[-1]}", refusal.why, refusal.todo + kept)


def _switch_back(git: _Git, run: BranchRun) -> str:
    there = run.head_ref and not git.run("show-ref", "--verify", "--quiet", run.head_ref, check=False).status
    if there and run.head_ref:
        name = run.head_ref.removeprefix("refs/heads/")
        _switch(git, name)
        return name
    _switch(git, "--detach", run.base)
    return run.base


def _branch_runs(git: _Git) -> list[BranchRun]:
    return [run for run in runs(git.journal) if isinstance(run, BranchRun)]


def _run_to_undo(git: _Git, run_id: str | None) -> BranchRun:
    found = [run for run in _branch_runs(git) if run_id in (None, run.run_id)]
    if not found:
        which = "no run" if run_id is None else f"no run {shown(run_id)}"
        raise GitRefusal("nothing to undo", f"{which} has made a branch here", "see `git branch --list 'ddpfix/*'`")
    return found[-1]


def _check_untouched(git: _Git, run: BranchRun, tip: str) -> None:
    if tip == run.commit:
        return
    later = next(
        (other.run_id for other in _branch_runs(git) if (other.branch, other.commit) == (run.branch, tip)), None
    )
    why = f"the run {later} has replaced it" if later else f"it has moved on to {_described(git, tip)}"
    todo = f"undo {later} first" if later else f"keep what you need, then `git branch -D {run.branch}`"
    raise GitRefusal(f"the branch {run.branch} is not taken back", why, todo)


def _forget(git: _Git, run_id: str) -> None:
    git.run("update-ref", "-d", _backup_ref(run_id), check=False)
    forget(git.journal, run_id)
