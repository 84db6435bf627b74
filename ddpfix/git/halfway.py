"""A switch that stopped half-way, by a kill, a full disk or a folder that cannot be written: seen, and put back.

What a switch between two commits changes is known beforehand: the paths that differ between them. Each of these is, in the work
tree and in the index, as one side has it, or half written, or somebody else's. Only the first three are ever written, so the
same call can be made again after any end, until HEAD, index and files are the user's again.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ddpfix.git.at_work import clear_locks
from ddpfix.git.journal import BranchRun
from ddpfix.git.refusal import GitRefusal, named
from ddpfix.git.runner import Git
from ddpfix.git.whole_files import replace_file, sweep

_NONE, _LINK = "000000", "120000"


@dataclass(frozen=True)
class Side:
    """A path in a commit: git's mode (000000: not there) and the id of its bytes."""

    mode: str
    sha: str


@dataclass(frozen=True)
class _Wanted:
    """What a path is to be: as the user's commit has it, and as the other side has it, in the bytes of a work tree."""

    path: str
    own: Side
    other: Side
    own_bytes: bytes | None
    other_bytes: bytes | None


def put_back(git: Git, run: BranchRun) -> tuple[str, ...]:
    """Bring the files, index entries and HEAD that a switch of `run` changes to the user's side; the paths that were written.

    Raises GitRefusal for what is left: files or entries that are of neither side, and those that cannot be written. All others
    are put back then.
    """
    assert run.away_from
    clear_locks(git)
    ref = f"refs/heads/{run.branch}"
    on_branch = git.head_ref() == ref
    # Who has committed or switched since is where they want to be: then that commit is the user's side.
    own = run.away_from if on_branch else git.text("rev-parse", "--verify", "HEAD^{commit}")
    both = differences(git, own, run.commit)
    # The index first: where some other git has locked it, nothing is written yet.
    staged = _put_index_back(git, both)
    left, written = _put_files_back(git, _wanted(git, both))
    left = {**staged, **left}
    # A file with the right bytes and another time is no change, and exit 1 only says that others did change.
    git.run("update-index", "-q", "--refresh", check=False)
    if on_branch and run.away_ref:
        git.run("symbolic-ref", "-m", f"ddpfix: {run.run_id} put back", "HEAD", run.away_ref)
    elif on_branch:
        git.run("update-ref", "--no-deref", "-m", f"ddpfix: {run.run_id} put back", "HEAD", own)
    if left:
        reasons = sorted(set(left.values()))
        raise GitRefusal(
            f"not all is as it was: {named(left)}",
            "; ".join(reasons),
            "see to these files (`git diff` shows them), then run `ddpfix undo` again; nothing of the way back is removed",
        )
    if wrong := not_as_in(git, {path: sides[0] for path, sides in both.items()}):
        raise GitRefusal("not all is as it was", f"these files differ from {own[:12]}: {named(wrong)}", "run `ddpfix undo` again")
    return written


def differences(git: Git, own: str, other: str) -> dict[str, tuple[Side, Side]]:
    """path -> its two sides, for what differs between two commits; submodules stay out, no switch here touches them."""
    fields = git.run("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", own, other, "--").stdout.split(b"\0")
    found = {}
    for about, path in zip(fields[:-1:2], fields[1::2], strict=True):
        old_mode, new_mode, old, new, _ = about.decode().removeprefix(":").split()
        if "160000" not in (old_mode, new_mode):
            found[os.fsdecode(path)] = (Side(old_mode, old), Side(new_mode, new))
    return found


def not_as_in(git: Git, sides: Mapping[str, Side]) -> tuple[str, ...]:
    """The paths whose file is not what a check-out of `sides` (of the commit where HEAD is) would write."""
    command = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
    rows = git.run(*command).stdout.split(b"\0")[:-1]
    changed = {path: sides[path] for row in rows if (path := os.fsdecode(row[3:])) in sides}
    # git calls a file changed whose bytes its own filters would normalise; what it wrote is right all the same.
    bytes_of = _bytes(git, changed)
    wrong = [path for path in changed if _current(git.root, path) != bytes_of[path]]
    return (*wrong, *(p for p, side in sides.items() if side.mode == _NONE and os.path.lexists(git.root / p) and p not in wrong))


def _wanted(git: Git, both: Mapping[str, tuple[Side, Side]]) -> list[_Wanted]:
    own = _bytes(git, {path: sides[0] for path, sides in both.items()})
    other = _bytes(git, {path: sides[1] for path, sides in both.items()})
    return [_Wanted(path, *sides, own[path], other[path]) for path, sides in both.items()]


def _bytes(git: Git, sides: Mapping[str, Side]) -> dict[str, bytes | None]:
    """path -> the bytes that a check-out writes there (for a link: where it leads), None where there is nothing."""
    out: dict[str, bytes | None] = {path: None for path, side in sides.items() if side.mode == _NONE}
    together = []
    for path, side in sides.items():
        if side.mode == _LINK:
            out[path] = git.run("cat-file", "blob", side.sha).stdout
        elif "\n" in path:
            out[path] = git.run("cat-file", "--filters", f"--path={path}", side.sha).stdout
        elif side.mode != _NONE:
            together.append((path, side.sha))
    if together:
        # The sizes that git says are those before its filters, so a word that it does not know stands between two files.
        word = f"ddpfix-{secrets.token_hex(16)}"
        asked = b"".join(sha.encode() + b" " + os.fsencode(path) + f"\n{word} x\n".encode() for path, sha in together)
        parts = git.run("cat-file", "--batch", "--filters", data=asked).stdout.split(f"\n{word} missing\n".encode())
        for (path, _), part in zip(together, parts[:-1], strict=True):
            out[path] = part.partition(b"\n")[2]
    return out


def _current(root: Path, path: str) -> bytes | None:
    """The bytes of a file, or where a link leads; None where there is nothing. Raises OSError, also for a folder."""
    target = root / path
    if target.is_symlink():
        return os.fsencode(os.readlink(target))
    try:
        return target.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _put_files_back(git: Git, wanted: Iterable[_Wanted]) -> tuple[dict[str, str], tuple[str, ...]]:
    """(path -> why it is left, the paths that were written)."""
    left, written = {}, []
    outside = _skipped(git)
    for one in wanted:
        if one.path in outside:
            continue
        try:
            now = _current(git.root, one.path)
            if now == one.own_bytes:
                continue
            if not _ours(one, now) or _through_link(git.root, one.path):
                left[one.path] = "changed since by somebody else"
                continue
            _put(git, one)
            written.append(one.path)
        except OSError as error:
            left[one.path] = error.strerror or str(error)
    sweep(git.journal, {(git.root / one.path).parent for one in wanted})
    return left, tuple(written)


def _ours(one: _Wanted, now: bytes | None) -> bool:
    """True for what a switch leaves: nothing, the whole of the other side, or the beginning of either (git writes in place)."""
    return now is None or any(side is not None and side.startswith(now) for side in (one.own_bytes, one.other_bytes))


def _through_link(root: Path, path: str) -> bool:
    parts = path.split("/")[:-1]
    return any((root / "/".join(parts[:end])).is_symlink() for end in range(1, len(parts) + 1))


def _put(git: Git, one: _Wanted) -> None:
    target = git.root / one.path
    if one.own_bytes is None:
        target.unlink(missing_ok=True)
        with suppress(OSError):  # as git: a folder that is empty goes, too
            for folder in target.parents:
                if folder == git.root:
                    break
                folder.rmdir()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if one.own.mode == _LINK:
        target.unlink(missing_ok=True)
        target.symlink_to(os.fsdecode(one.own_bytes))
        return
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    replace_file(target, one.own_bytes, _mode(target, executable=one.own.mode == "100755"), by=git.journal)


def _mode(target: Path, *, executable: bool) -> int:
    try:
        mode = stat.S_IMODE(target.stat().st_mode) & ~0o111
    except OSError:
        umask = os.umask(0o077)
        os.umask(umask)
        mode = 0o666 & ~umask
    return mode | ((mode & 0o444) >> 2) if executable else mode


def _skipped(git: Git) -> frozenset[str]:
    """Paths that a sparse checkout keeps out of the work tree."""
    if not git.flag("core.sparseCheckout"):
        return frozenset()
    return frozenset(path for path, (tag, _) in _index(git).items() if tag in "sS")


def _index(git: Git) -> dict[str, tuple[str, Side]]:
    """path -> (the letter of its state, what is staged); a conflict has no side."""
    found = {}
    for row in git.run("ls-files", "-t", "-s", "-z").stdout.split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        tag, mode, sha, stage = about.decode().split()
        found[os.fsdecode(path)] = (tag, Side(mode, sha) if stage == "0" else Side("", ""))
    return found


def _put_index_back(git: Git, both: Mapping[str, tuple[Side, Side]]) -> dict[str, str]:
    """Give entries of the other side the user's; path -> why, for entries that are of neither side."""
    now = _index(git)
    lines, skipped = [], []
    left = {}
    for path, (own, other) in both.items():
        tag, staged = now.get(path, ("H", Side(_NONE, "")))
        if _same(staged, own):
            continue
        if not _same(staged, other):
            left[path] = "staged since by somebody else"
            continue
        sha = own.sha if own.mode != _NONE else re.sub(".", "0", other.sha)
        lines.append(f"{own.mode.lstrip('0') or '0'} {sha}\t".encode() + os.fsencode(path) + b"\0")
        if tag in "sS" and own.mode != _NONE:
            skipped.append(os.fsencode(path) + b"\0")
    if lines:
        git.run("update-index", "-z", "--index-info", data=b"".join(lines))
    if skipped:
        git.run("update-index", "--skip-worktree", "-z", "--stdin", data=b"".join(skipped))
    return left


def _same(one: Side, other: Side) -> bool:
    return one.mode == other.mode and (one.mode == _NONE or one.sha == other.sha)
