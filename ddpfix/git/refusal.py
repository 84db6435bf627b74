"""What is refused and why, the checks of run ids and paths, and how paths are named in a sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

# A run id becomes a file name, a part of a ref name and a trailer.
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


class GitRefusal(Exception):
    """What is not done to a repository or folder (`what`), `why`, and what to do instead (`todo`): a line each."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        self.what, self.why, self.todo = (" ".join(text.split()) for text in (what, why, todo))
        super().__init__(self.what, self.why, self.todo)

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.todo}"


class OverLimit(GitRefusal):
    """A repository that asks for more than one job may have. Trying it again would come to the same.

    kind: of what it asks for too much: size, timeout or memory; crash where the work on it ended by itself.
    """

    def __init__(self, what: str, why: str, todo: str, kind: str = "size") -> None:
        super().__init__(what, why, todo)
        self.kind = kind


class NothingToUndo(GitRefusal):
    """No run is written down that could be undone."""


def check_run_id(run_id: str) -> None:
    """Raises GitRefusal for a run id that cannot be a file name and a part of a ref."""
    if not _RUN_ID.fullmatch(run_id):
        raise GitRefusal(
            f"{shown(run_id)} is not a run id", "it may hold letters, digits, - and _ only", "give the id of a run"
        )


def check_relative(path: str) -> None:
    """Raises GitRefusal unless `path` is a plain posix path below a root (never absolute, `..` or in `.git`)."""
    parts = path.split("/")
    if "\0" in path or os.path.isabs(path) or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise GitRefusal(
            f"{shown(path)} is not written",
            "it is not a path inside the project",
            "give paths below the project's root",
        )


def shown(path: str) -> str:
    """A path as one readable line: control characters and bytes that are no text are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def named(paths: Iterable[str], limit: int = 8) -> str:
    """Paths as part of a sentence, with the number of those left out."""
    names = sorted(shown(path) for path in paths)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def bare_refusal(root: Path) -> GitRefusal:
    """For what needs files in a repository that has none."""
    return GitRefusal(f"{root} is a bare repository", "it has no files to work on", "use a clone or a work tree of it")


def in_worktree(branch: str, folder: str) -> GitRefusal:
    """For a branch that another work tree stands on."""
    return GitRefusal(
        f"the branch {branch} is left alone",
        f"it is checked out in {folder}",
        "switch that work tree away, or --branch",
    )
