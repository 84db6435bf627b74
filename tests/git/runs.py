"""Runs as the tests make them: every 1 becomes a 2."""

from __future__ import annotations

from pathlib import Path

from ddpfix import git as dgit
from ddpfix.git import Snapshot, Step

BRANCH = "ddpfix/fixes"
SUMMARY = "DDPFIX_SUMMARY.md"


def fixes(now: Snapshot) -> list[Step]:
    """Every 1 becomes a 2 in every Python file, in one commit; the summary is a second."""
    wanted = {path: entry.sha for path, entry in now.committed.items() if path.endswith(".py")}
    blobs = dgit.read_blobs(now.root, wanted.values())
    changed = {path: blobs[sha].replace(b"1", b"2") for path, sha in wanted.items()}
    return [Step("Fix ones\n\nOnes are twos.", changed), Step("Add the summary", {SUMMARY: b"# Fixes\n"})]


def go(
    repo: Path,
    run_id: str = "run1",
    *,
    branch: str = BRANCH,
    sign: bool | None = None,
    filters: bool = False,
    run_hooks: bool = False,
) -> dgit.Committed:
    now = dgit.snapshot(repo)
    return dgit.commit_steps(
        now, fixes(now), branch=branch, run_id=run_id, sign=sign, filters=filters, run_hooks=run_hooks
    )
