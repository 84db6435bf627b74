"""How to take the fixes back: all of them, one codemod's, one place, the summary."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ddpfix.discovery import SUMMARY
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import fence, folded_up


def how_to_take_back(codes: Sequence[str], context: Context) -> list[str]:
    """Folded up; the commands as they can be pasted."""
    return folded_up("Undo", _ways_back(codes, context))


def _ways_back(codes: Sequence[str], context: Context) -> list[str]:
    one = codes[0]
    place = f"One place: put `# ddpfix: ignore[{one}] reason` on its line and run again."
    if context.pull_request and context.branch:
        return [
            f"One codemod: comment `/ddpfix ignore {one}`, and it is made again without it. One place: put "
            f"`# ddpfix: ignore[{one}] reason` on its line. All of it: close this."
        ]
    if not context.branch:
        return [f"All of it: `ddpfix undo`. {place}"]
    branch = shlex.quote(context.branch)
    home = shlex.quote(context.home) if context.home else ""
    start = f"git switch {home}" if home else f"git switch --detach {(context.base or 'HEAD')[:12]}"
    fresh = shlex.quote(f"{context.branch}-without-{one.lower()}")
    rows = [
        "# all of it, as long as nobody has committed on the branch",
        "ddpfix undo",
        f"# again, without {one}",
        f"{start} && {context.command} --ignore {one} --branch {fresh}",
    ]
    if context.summary_commit:
        rows += [f"# merge without {SUMMARY}, the last commit", f"git switch {home or 'YOUR-BRANCH'} && git merge {branch}~1"]
    return [*fence(rows, "sh"), "", place]
