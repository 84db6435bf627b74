"""What a repository looks like now, read without writing anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ddpfix.git.refusal import GitRefusal, bare_refusal, shown
from ddpfix.git.runner import Git, clean_environment, open_repo, repository

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


def find_root(path: Path) -> Path | None:
    """The root of the work tree that holds `path`; None outside git. Raises GitRefusal: bare, in `.git`, no git."""
    start = path.resolve()
    while not start.is_dir():
        start = start.parent
    if not any((folder / ".git").exists() or (folder / "HEAD").is_file() for folder in (start, *start.parents)):
        return None
    with clean_environment():
        repo = open_repo(start, search=True)
        if repo is None:
            return None
        with repo:
            git = Git(repo, start)
            if git.text("rev-parse", "--is-bare-repository") == "true":
                raise bare_refusal(start)
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

    Raises GitRefusal: not a repository, somebody else's, or no commit yet.
    """
    with repository(root) as git:
        base = git.commit_of("HEAD^{commit}")
        if not base:
            raise GitRefusal(f"{root} has no commit yet", "fixes are commits on top of one", "commit something first")
        bare = git.text("rev-parse", "--is-bare-repository") == "true"
        entries = list(_tree_entries(git, base))
        return Snapshot(
            root=root,
            base=base,
            head_ref=git.head_ref() or None,
            operation=next((name for name, mark, *_ in _OPERATIONS if (git.folder / mark).exists()), None),
            dirty={} if bare else _dirty(git),
            sparse=git.flag("core.sparseCheckout"),
            shallow=git.text("rev-parse", "--is-shallow-repository") == "true",
            bare=bare,
            committed={path: Blob(mode, sha) for mode, sha, path in entries if mode in ("100644", "100755")},
            symlinks=tuple(path for mode, _, path in entries if mode == "120000"),
            submodules=tuple(path for mode, _, path in entries if mode == "160000"),
        )


def head(root: Path) -> str:
    """The id of the commit that HEAD stands on, "" before the first one. Raises GitRefusal."""
    with repository(root) as git:
        return git.commit_of("HEAD^{commit}")


def read_blobs(root: Path, shas: Iterable[str]) -> dict[str, bytes]:
    """The committed bytes of many blobs, by id, in one git process. Raises GitRefusal where one cannot be read."""
    wanted = list(dict.fromkeys(shas))
    if not wanted:
        return {}
    with repository(root) as git:
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


def code_changed_since(root: Path, commit: str) -> str:
    """What of the Python code committed at HEAD is another than at `commit`, in a few words; "" where nothing is."""
    with repository(root) as git:
        result = git.run("diff", "--name-only", "--no-renames", "-z", commit, "HEAD", "--", "*.py", "*.ipynb", check=False)
    if result.status:
        return f"{commit[:12]} is no commit of this repository"
    names = [os.fsdecode(name) for name in result.stdout.split(b"\0") if name]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def under_way(operation: str) -> GitRefusal:
    """For a switch while a merge, rebase … waits to be finished."""
    _, _, finish, abort = next(row for row in _OPERATIONS if row[0] == operation)
    return GitRefusal(
        f"a {operation} is in progress",
        "switching branches now would disturb it",
        f"{finish} or {abort}, or --no-switch",
    )


def _tree_entries(git: Git, base: str) -> Iterator[tuple[str, str, str]]:
    """(mode, id, path) of everything committed at `base`."""
    for entry in git.run("ls-tree", "-r", "-z", "--full-tree", base).stdout.split(b"\0")[:-1]:
        facts, _, path = entry.partition(b"\t")
        mode, _, sha = facts.decode().split()
        yield mode, sha, os.fsdecode(path)


def _dirty(git: Git) -> dict[str, str]:
    command = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
    rows = git.run(*command).stdout.split(b"\0")[:-1]
    return {os.fsdecode(row[3:]): row[:2].decode() for row in rows}
