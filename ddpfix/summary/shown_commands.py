"""The commands to test a change by, as they are shown: where each is from, what is to be given, and what none of them tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.markdown import code, fence, plural
from ddpfix.summary.places import offered, told
from ddpfix.summary.without_commands import as_started, programs_without, without_a_command

MOST_COMMANDS = 3
MOST_MISSED = 6
MOST_NEEDS = 4
WIDEST = 100
_INDENT = "    "
_OPTION = re.compile(r"--?[A-Za-z]|[+~]{0,2}[\w./]+=")
_WORD = re.compile(r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\(\([^()]*\)\)|\$\([^()]*\)|\\.|[^\s\"'])+")


def shown_commands(fixed: Fixed, context: Context) -> list[str]:
    """The repository's own commands; where none is shown to come to the change, its program, and what its lines need."""
    typed = [launch for launch in context.launches if launch.command]
    shown, more = typed[:MOST_COMMANDS], typed[MOST_COMMANDS:]
    if not shown:
        return without_a_command(fixed, context)
    out = [_lead(shown), "", *fence([row for launch in shown for row in (*_heading(launch), *wrapped(launch.command))], "sh"), ""]
    if to_fill := dict.fromkeys(word for launch in shown for word in launch.to_fill):
        out += [f"Fill in: {', '.join(map(code, to_fill))}.", ""]
    out += _stopped_before(fixed, shown)
    if more:
        out += [f"More commands that run changed lines: {_places(more)}.", ""]
    if programs := programs_without(context):
        return [*out, *as_started(programs)]
    return [*out, *_not_started(fixed, context)]


def _lead(shown: Sequence[Launch]) -> str:
    if all(map(is_import, shown)):
        return "The imports alone are changed, and one process is enough:"
    return "From the root of the repository, on two processes:"


def _stopped_before(fixed: Fixed, shown: Sequence[Launch]) -> list[str]:
    """A crash that was found in a script that is started, and is not repaired here."""
    scripts = {launch.script for launch in shown}
    found = {f.code: f for f in reversed((*told(fixed), *offered(fixed))) if f.severity == "crash" and f.path in scripts}
    rows = [f"{code(f.place)} ({key}, under Left alone) may stop the run first." for key, f in sorted(found.items())]
    return [*rows, ""] if rows else []


def wrapped(command: str) -> list[str]:
    """The command on lines of at most 100 columns, as far as its options allow it."""
    if len(command) <= WIDEST:
        return [command]
    lines, line = [], ""
    for part in (piece for option in _options(command) for piece in _pieces(option)):
        if line and len(line) + len(part) + 3 > WIDEST:
            lines.append(f"{line} \\")
            line = _INDENT + part
        else:
            line = f"{line} {part}" if line else part
    return [*lines, line]


def _pieces(option: str) -> list[str]:
    """One that is too wide for a line by its words, but for an option with its only value."""
    words = _WORD.findall(option)
    return [option] if len(option) < WIDEST or len(words) < 3 else words


def _options(command: str) -> Iterator[str]:
    """Its start, up to the first option of the launcher or the program, then each option with its values."""
    part: list[str] = []
    started = False
    for word in _WORD.findall(command):
        if started and _OPTION.match(word):
            yield " ".join(part)
            part = []
        part.append(word)
        started = started or word.endswith((".py", "torchrun", "launch", "deepspeed")) or part[-2:-1] == ["-m"]
    yield " ".join(part)


def _heading(launch: Launch) -> Iterator[str]:
    """Where the command stands, how it differs from what stands there, and what it does not reach as it is."""
    added = [f"with {launch.short}"] if launch.short else []
    notes = [*added, *launch.edits[:1], *_devices(launch)]
    yield f"# {_origin(launch)}{''.join(f', {note}' for note in notes)}"
    if launch.comes_to:
        yield f"# runs {launch.comes_to}"
    yield from (f"# {need}" for need in launch.needs[:MOST_NEEDS])
    if len(launch.needs) > MOST_NEEDS:
        yield f"# {plural(len(launch.needs) - MOST_NEEDS, 'more stretch', 'more stretches')} of changed lines need options too"


def _origin(launch: Launch) -> str:
    if not launch.made:
        return f"from {launch.path}:{launch.line}"
    return f"imports {launch.path}"


def is_import(launch: Launch) -> bool:
    """True for a command that imports a file and does nothing else."""
    return launch.made and "python -c " in launch.command


def _devices(launch: Launch) -> list[str]:
    """What the command itself does not say: plain `python` gets its processes from the script's settings."""
    if launch.counted:
        return [f"its two devices are set in {launch.devices}"] if launch.devices else []
    return [f"set two devices in {launch.devices}" if launch.devices else "set two devices"]


def _places(launches: Sequence[Launch]) -> str:
    found = list(dict.fromkeys(f"{launch.path}:{launch.line}" if launch.line else launch.path for launch in launches))
    more = f" and {len(found) - MOST_MISSED} more places" if len(found) > MOST_MISSED else ""
    return f"{', '.join(map(code, found[:MOST_MISSED]))}{more}"


def _not_started(fixed: Fixed, context: Context) -> list[str]:
    """The changed programs that no command of the repository tests."""
    reached = {path for launch in context.launches for path in launch.programs}
    missed = [path for path in sorted(fixed.after) if path.endswith(".py") and path not in reached]
    if not missed or not any(launch.programs for launch in context.launches):
        return []
    shown = ", ".join(map(code, missed[:MOST_MISSED]))
    more = f" and {plural(len(missed) - MOST_MISSED, 'more file')}" if len(missed) > MOST_MISSED else ""
    return [f"No command was found that runs the changed lines of {shown}{more}.", ""]
