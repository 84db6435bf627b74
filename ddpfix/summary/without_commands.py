"""What is said where no command is shown to test a change: the program of each changed line, and the options that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.markdown import code, plural

MOST_PROGRAMS = 3
MOST_NEEDS = 3
MOST_FILES = 6


def without_a_command(fixed: Fixed, context: Context) -> list[str]:
    """A sentence for each program; else the files that are to be called."""
    if rows := started_without(context):
        return ["No command is given: none is shown to start two processes and to come to the changed lines.", *rows, ""]
    changed = [path for path in sorted(fixed.after) if not path.endswith(NOTEBOOK)]
    shown = ", ".join(map(code, changed[:MOST_FILES]))
    more = f" and {plural(len(changed) - MOST_FILES, 'more file')}" if len(changed) > MOST_FILES else ""
    none = f"No program or command that comes to the change was found in the repository: {shown}{more}."
    return [f"{none} Call what was changed from a program of yours, on two processes.", ""]


def started_without(context: Context) -> list[str]:
    """A row for each program of which no command is shown."""
    return [f"- {_of(launch)}" for launch in context.launches if launch.script][:MOST_PROGRAMS]


def _of(launch: Launch) -> str:
    comes_to = f", which comes to {code(launch.comes_to)}" if launch.comes_to else ""
    return f"{'; '.join((f'{code(launch.script)} starts the program{comes_to}', *_needs(launch), *_faults(launch)))}."


def _needs(launch: Launch) -> Iterator[str]:
    """Those first that an option answers: a long list of tests helps nobody."""
    by_options = sorted(launch.needs, key=_unanswered)
    for need in by_options[:MOST_NEEDS]:
        where, _, asked = need.partition(" needs ")
        given, comma, rest = asked.partition(", and ")
        yield f"{code(where)} needs {code(given) if given.startswith('-') else given}{comma}{rest}"
    if len(by_options) > MOST_NEEDS:
        yield f"{plural(len(by_options) - MOST_NEEDS, 'more stretch', 'more stretches')} of changed lines need something else"


def _unanswered(need: str) -> tuple[bool, int]:
    asked = need.partition(" needs ")[2]
    return not asked.startswith("-"), asked.count("`")


def _faults(launch: Launch) -> Iterator[str]:
    if launch.line and launch.faults:
        yield f"the command in {code(f'{launch.path}:{launch.line}')} {launch.faults[0]}"
