"""Commits on a branch of their own: the user's branch, index, files, stash and reflog stay as they are.

Everything up to the switch is git's plumbing with a private index (commits.py). `switch_to` is the one step that writes
the user's files (switching.py). Outside git the files are written in place (in_place.py). Every run is written down
before it is done (journal.py), so that `undo` and `undo_in_place` can take it back.
"""

from __future__ import annotations

from ddpfix.git.branches import check_branch, cut_short
from ddpfix.git.commits import Committed, Step, commit_steps
from ddpfix.git.in_place import undo_in_place, write_in_place
from ddpfix.git.journal import BranchRun, InPlaceRun, runs
from ddpfix.git.refusal import GitRefusal, NothingToUndo, OverLimit
from ddpfix.git.remotes import (
    LARGEST_CHANGE,
    Access,
    Clone,
    MadeCommit,
    Most,
    Pushed,
    RemoteCommit,
    clone_at,
    clone_into,
    head_of,
    tips,
)
from ddpfix.git.runner import journal_folder
from ddpfix.git.snapshots import Blob, Snapshot, code_changed_since, find_root, head, read_blobs, relative_path, snapshot
from ddpfix.git.switching import Undone, check_switch, switch_to, undo
from ddpfix.git.worktrees import passing_copy, write_files

__all__ = [
    "LARGEST_CHANGE",
    "Access",
    "Blob",
    "BranchRun",
    "Clone",
    "Committed",
    "GitRefusal",
    "InPlaceRun",
    "MadeCommit",
    "Most",
    "NothingToUndo",
    "OverLimit",
    "Pushed",
    "RemoteCommit",
    "Snapshot",
    "Step",
    "Undone",
    "check_branch",
    "check_switch",
    "clone_at",
    "clone_into",
    "code_changed_since",
    "commit_steps",
    "cut_short",
    "find_root",
    "head",
    "head_of",
    "journal_folder",
    "passing_copy",
    "read_blobs",
    "relative_path",
    "runs",
    "snapshot",
    "switch_to",
    "tips",
    "undo",
    "undo_in_place",
    "write_files",
    "write_in_place",
]
