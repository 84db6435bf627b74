"""The repository that an apply finds: why it is refused, what of it is read, and what the reader of a summary should know."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.files.text_file import READ_KINDS
from ddpfix import engine, summary
from ddpfix.decided import Decided
from ddpfix.discovery import find_root
from ddpfix.results import Fixed

if TYPE_CHECKING:
    from ddpfix.git import Snapshot
    from ddpfix.summary import ShownProof

Read = Callable[[str], bytes | None]


class NotInGit(Exception):
    """There is no repository to commit in, and writing in place was not asked for: what, why, what to do."""

    def __init__(self, root: Path, files: int) -> None:
        self.what, self.why = f"{root} is not in a git repository", f"{files} of its files would be changed where they stand"
        self.todo = "give --in-place to `ddpfix apply`, or make it a repository (`git init`) and commit first"
        super().__init__(self.what, self.why, self.todo)


def place_of(root: Path) -> str:
    """How a project is named from the working directory; "" from within."""
    return "" if find_root(Path()) == root.resolve() else os.path.relpath(root)


def refuse_bare(root: Path) -> None:
    """Raises GitRefusal for the folder of a bare repository: it has no files to work on."""
    from ddpfix.git import GitRefusal

    if not (root / ".git").exists() and (root / "HEAD").is_file() and (root / "objects").is_dir():
        raise GitRefusal(f"{root.name} is a bare repository", "it has no files to work on", "use a clone of it")


def refuse_other_proof(proof: ShownProof | None, base: str, fixed: Fixed) -> None:
    """Raises GitRefusal for a proof that was made of another commit or of other fixes than these."""
    from ddpfix.git import GitRefusal

    if proof is None:
        return
    again = "run `ddpfix prove` again, with the same --select and --unsafe-fixes as here"
    if proof.base != base:
        ran_on = proof.base[:12] or "no commit"
        raise GitRefusal("the proof is of another commit", f"it ran on {ran_on}, HEAD is {base[:12]}", again)
    if proof.digest != summary.digest(fixed.after):
        raise GitRefusal("the proof is of other fixes", "what it ran is not what would be committed", again)


def refuse_stale(made: Decided, *, allowed: bool) -> None:
    """Raises GitRefusal where decisions were made on another commit and something that was accepted there is found no more."""
    from ddpfix.git import GitRefusal

    if not made.decided_on or not made.gone_accepted or allowed:
        return
    all_of_it = made.gone_accepted + len(made.accepted) + len(made.without_fix)
    raise GitRefusal(
        "the decisions are stale",
        f"they were made on {made.decided_on[:12]}, HEAD is {made.base[:12]}, and {made.gone_accepted} of {all_of_it} accepted "
        f"findings are not there any more ({', '.join(made.gone[:3])})",
        "look again with `ddpfix review`, which keeps what still stands, or take that alone with --allow-stale",
    )


def refuse_uncommitted(state: Snapshot, touched: Sequence[str], *, tracked_only: bool = False) -> None:
    """Raises GitRefusal, naming them, where files to be changed differ from HEAD."""
    from ddpfix import git

    changed = [p for p in touched if p in state.dirty]
    new = [] if tracked_only else [p for p in touched if p not in state.committed and p not in state.dirty]
    ways = "Commit or stash them; or use --no-switch (fix what is committed, on the branch) or --include-dirty (fix in place)."
    if changed:
        raise git.GitRefusal("uncommitted changes in files that would be fixed", ", ".join(changed[:8]), ways)
    if new:
        raise git.GitRefusal("files that would be fixed are not in the last commit", ", ".join(new[:8]), ways)


def committed_reader(state: Snapshot, root: Path, paths: Sequence[str]) -> Read:
    """Bytes of a file as HEAD has them for the files that change or are uncommitted; of all others from the work tree."""
    from ddpfix import git

    disk = engine.disk_reader(root)
    wanted = [p for p in {*paths, *state.dirty} if p in state.committed]
    blobs = git.read_blobs(root, [state.committed[p].sha for p in wanted])
    kept: dict[str, bytes | None] = {p: blobs[state.committed[p].sha] for p in wanted}
    kept.update({p: None for p in (*paths, *state.dirty) if p not in state.committed})
    return lambda path: kept[path] if path in kept else disk(path)


def notes(state: Snapshot, touched: Sequence[str]) -> tuple[str, ...]:
    """What the reader of the summary should know of the repository's state."""
    out = []
    kinds = (".py", ".toml", ".txt", ".cfg", *READ_KINDS)
    if dirty := sorted(p for p in state.dirty if p.endswith(kinds) and p not in touched):
        out.append(f"uncommitted changes were read as facts, and are in no commit: {', '.join(dirty[:5])}")
    if links := [p for p in state.symlinks if p.endswith(".py")]:
        out.append(f"left alone, symbolic links: {', '.join(links[:5])}")
    if state.submodules:
        out.append(f"left alone, submodules: {', '.join(state.submodules[:5])}")
    return tuple(out)


def head_of(root: Path) -> str:
    """The id of the commit a repository stands on; "" outside git and before the first commit."""
    from ddpfix import git

    return git.head(root) if (root / ".git").exists() else ""


def snapshot_if_born(root: Path) -> Snapshot | None:
    """The state of a repository, None where it has no commit yet and so nothing uncommitted to mix with."""
    from ddpfix import git

    try:
        return git.snapshot(root)
    except git.GitRefusal:
        return None


def state_folder(root: Path) -> Path:
    """Where originals are kept for `undo`: inside .git, or in the user's state folder where there is none."""
    from ddpfix import git
    from ddpfix.git.journal import user_state

    if (root / ".git").exists():
        return git.journal_folder(root)
    return user_state() / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
