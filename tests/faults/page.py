"""docs/reliability.md, out of the counts of the last run of all fault points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COUNTS = Path(__file__).parent / "counts.json"
HEAD = """\
# What `apply` and `undo` survive

Each write, rename, link, unlink, new folder, change of mode, sync and start of a program, in ddpfix and in each git that it
starts, is a numbered point. `make faults` runs every command below once for each point and each kind of fault there: the whole
process group is killed before the call, or after it; the call fails with ENOSPC, or with EACCES; or the disk is full from
there on to the end of the command.

After each of these runs it is checked that uncommitted bytes (changed, staged, not known to git) and `main` are what they were,
that `git fsck` is content, that no `.ddpfix-*` file lies in the project, that the message names no defect, and that a plain
`ddpfix undo` then gives back HEAD, branches, files, index and stash as they were, or says with exit 2 what is left. A file of
decisions is the old or the new one, whole; after a fault in the cache the next `check` answers what it answers without a cache.
"""
STOPPED = """
Where the runs are fewer than points times kinds, the count was stopped before its end; the points taken lie all over the command.
A point is not reached where the run before it took one step less (two objects of git may share a folder).
"""
TAIL = """
This page is made by `make faults` (Linux, with a C compiler); the test suite takes a sample of the points each time. What it does
not show: a loss of power, which can also take what the kernel had not written yet; `--run-hooks`; Windows.
"""


def page() -> str:
    counts: dict[str, Any] = json.loads(COUNTS.read_text(encoding="utf-8"))
    kinds = counts["kinds"]
    rows = [
        f"| {name} | {row['points']} | {row['runs']:,} of {row['points'] * len(kinds):,} | "
        + "; ".join(f"{end} {number:,}" for end, number in sorted(row["ends"].items()))
        + " |"
        for name, row in counts["scenarios"].items()
    ]
    points = sum(row["points"] for row in counts["scenarios"].values())
    runs = sum(row["runs"] for row in counts["scenarios"].values())
    failed = sum(row["failed"] for row in counts["scenarios"].values())
    lines = [
        HEAD,
        f"With git {counts['git']}: {points:,} points, {len(kinds)} kinds of fault, {runs:,} runs, {failed} with a loss.",
        "",
        "| command | points | runs | what `undo` came to |",
        "| --- | --- | --- | --- |",
        *rows,
        *([STOPPED] if any(row["runs"] < row["points"] * len(kinds) for row in counts["scenarios"].values()) else []),
        TAIL,
    ]
    return "\n".join(lines).rstrip() + "\n"
