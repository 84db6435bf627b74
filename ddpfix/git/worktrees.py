"""A passing copy of a project outside of it: a git worktree of its own, or outside git a plain copy.

The user's index, files, HEAD, branches and reflog are not written. git keeps a note of a worktree in `.git/worktrees`
(git-worktree(1)); it is gone when the copy is.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ddpfix.git.refusal import GitRefusal, check_relative
from ddpfix.git.runner import Git, repository

_NEVER_COPIED = shutil.ignore_patterns(".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache")


@contextmanager
def passing_copy(root: Path, *, is_git: bool, links: Sequence[str] = ()) -> Iterator[Path]:
    """A folder that holds the project as its work tree holds it now, uncommitted work included; removed at the end.

    is_git: a detached worktree of HEAD with the uncommitted changes and the new files that git does not ignore; else a copy.
    links: paths below `root` that are linked to, not copied (data that git ignores). Raises GitRefusal.
    """
    with tempfile.TemporaryDirectory(prefix="ddpfix-prove-", ignore_cleanup_errors=True) as base:
        # a program may name things after the folder it runs in
        folder = Path(base) / root.resolve().name
        if not is_git:
            shutil.copytree(root, folder, symlinks=True, ignore=_NEVER_COPIED)
            _link(root, folder, links)
            yield folder
            return
        try:
            with repository(root) as git:
                git.run("worktree", "add", "--detach", "--quiet", str(folder), "HEAD")
                _copy_uncommitted(git, root, folder)
            _link(root, folder, links)
            yield folder
        finally:
            with repository(root) as git:
                git.run("worktree", "remove", "--force", "--force", str(folder), check=False)
                shutil.rmtree(folder, ignore_errors=True)
                git.run("worktree", "prune", check=False)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a passing copy. Raises GitRefusal for a path that leads out of it."""
    for path, data in files.items():
        check_relative(path)
        target = folder / path
        if not target.parent.resolve().is_relative_to(folder.resolve()):
            raise GitRefusal(f"{path} is not written", "a link leads out of the copy", "run without --link for its folder")
        target.write_bytes(data)


def _copy_uncommitted(git: Git, root: Path, folder: Path) -> None:
    """Bring what differs from HEAD, and what git does not know and does not ignore, into the worktree."""
    changed = git.run("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", "HEAD").stdout
    new = git.run("ls-files", "--others", "--exclude-standard", "-z").stdout
    for name in (*changed.split(b"\0"), *new.split(b"\0")):
        if name and not name.endswith(b"/"):
            _copy(root / os.fsdecode(name), folder / os.fsdecode(name))


def _copy(source: Path, target: Path) -> None:
    if target.is_symlink() or target.is_file():
        target.unlink()
    if source.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(source))
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _link(root: Path, folder: Path, links: Sequence[str]) -> None:
    for name in links:
        path = name.rstrip("/")
        check_relative(path)
        if not (root / path).exists():
            raise GitRefusal(f"{path} cannot be linked to", "it is not there", "give a path below the project's root")
        target = folder / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to((root / path).resolve())
