"""The last apply undone: which run it was, and what became of it in a few lines."""

from __future__ import annotations

from pathlib import Path

from ddpfix.discovery import find_root
from ddpfix.repository_state import refuse_bare, state_folder


def undo(path: Path) -> str:
    """Take back the last apply of the repository that holds `path`; what was done, in a few lines. Raises GitRefusal."""
    from ddpfix import git

    root = find_root(path)
    refuse_bare(root)
    try:
        return _undone(root)
    except git.NothingToUndo:
        return f"Nothing to undo: no apply is recorded for {root}.\n"


def _undone(root: Path) -> str:
    from ddpfix import git
    from ddpfix.git.journal import InPlaceRun, runs

    journal = [run for run in runs(state_folder(root)) if not isinstance(run, InPlaceRun) or run.root == str(root.resolve())]
    if (journal and isinstance(journal[-1], InPlaceRun)) or not (root / ".git").exists():
        done = git.undo_in_place(root, state_folder(root))
        return f"{_files(len(done.files))} as before.\n"
    back = git.undo(root)
    lines = [f"The branch {back.branch} was gone already." if back.already_gone else f"The branch {back.branch} is undone."]
    if back.put_back:
        lines.append(f"The switch to it was cut short: {_files(len(back.put_back))} put back.")
    if back.restored:
        lines.append(f"It stands again where it stood before the last run ({back.restored[:10]}).")
    if back.back_to:
        lines.append(f"You are on {back.back_to.removeprefix('refs/heads/')} again.")
    if back.merged:
        lines.append("Its commits are merged elsewhere: the fixes are still in force there.")
    return "\n".join(lines) + "\n"


def _files(count: int) -> str:
    return "1 file is" if count == 1 else f"{count} files are"
