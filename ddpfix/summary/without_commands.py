"""What is said where no command is shown to test a change: how the repository itself starts the program, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.markdown import code, fence, plural

MOST_PROGRAMS = 3
MOST_LINES = 14  # of the commands that are quoted
MOST_FILES = 6


def without_a_command(fixed: Fixed, context: Context) -> list[str]:
    """The repository's own commands, word for word; else the programs; else the files that are to be called."""
    if programs := programs_without(context):
        return as_started(programs)
    changed = [path for path in sorted(fixed.after) if not path.endswith(NOTEBOOK)]
    shown = ", ".join(map(code, changed[:MOST_FILES]))
    more = f" and {plural(len(changed) - MOST_FILES, 'more file')}" if len(changed) > MOST_FILES else ""
    return [f"No program in the repository was found that runs the changed lines of {shown}{more}.", ""]


def programs_without(context: Context) -> list[Launch]:
    """One for each program of which no command is shown."""
    found: dict[str, Launch] = {}
    for launch in context.launches:
        if launch.script and not launch.command and (launch.script not in found or _is_better(launch, found[launch.script])):
            found[launch.script] = launch
    return list(found.values())[:MOST_PROGRAMS]


def _is_better(launch: Launch, than: Launch) -> bool:
    return (bool(launch.quoted), bool(launch.quoted_at)) > (bool(than.quoted), bool(than.quoted_at))


def as_started(programs: Sequence[Launch]) -> list[str]:
    """How the repository starts them, then the others by their files."""
    typed: list[Launch] = []
    for launch in programs:
        told = [row for other in typed for row in other.quoted.split("\n")]
        if launch.quoted and (not typed or len(told) + len(launch.quoted.split("\n")) <= MOST_LINES):
            typed.append(launch)
    out = []
    if typed:
        rows = [row for launch in typed for row in (f"# {launch.quoted_at}", *launch.quoted.split("\n"))]
        out += ["As the repository starts it:", "", *fence(rows, "sh"), ""]
    if rest := [_named(launch) for launch in programs if launch not in typed]:
        lead = "Other programs" if typed else "Program" if len(rest) == 1 else "Programs"
        out += [f"{lead}: {', '.join(rest)}.", ""]
    return out


def _named(launch: Launch) -> str:
    return f"{code(launch.script)}{f' ({code(launch.quoted_at)})' if launch.quoted_at else ''}"
