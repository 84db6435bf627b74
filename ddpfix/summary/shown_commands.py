"""The commands to test a change by, as they are shown: where each is from, what is to be given, and what none of them tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.markdown import code, fence, plural
from ddpfix.summary.own_processes import SPAWNS

MOST_COMMANDS = 3
MOST_MISSED = 6
WIDEST = 100
_INDENT = "    "
_ACCELERATE = re.compile(rb"^[ \t]*(?:from|import)[ \t]+accelerate\b|\bTrainingArguments\b", re.M)
_LOCAL_RANK = re.compile(rb"add_argument\([^)]{0,80}--local[_-]rank")
_OPTION = re.compile(r"--?[A-Za-z]|[+~]{0,2}[\w./]+=")
_WORD = re.compile(r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\(\([^()]*\)\)|\$\([^()]*\)|\\.|[^\s\"'])+")


def shown_commands(fixed: Fixed, context: Context) -> list[str]:
    """The repository's own commands; where it has none, a form."""
    typed = [launch for launch in context.launches if launch.command]
    shown, more = typed[:MOST_COMMANDS], typed[MOST_COMMANDS:]
    if not shown:
        none = "No command that starts a changed program was found in the repository with all its words"
        form = [f"{none}; put your own script and arguments in:", "", *fence(_usual_commands(fixed), "sh"), ""]
        return [*form, *_elsewhere(context)]
    out = ["As this repository starts what was changed, from its root, with two processes and the values of its variables:", ""]
    out += [*fence([row for launch in shown for row in (*_heading(launch), *wrapped(launch.command))], "sh"), ""]
    if to_fill := dict.fromkeys(word for launch in shown for word in launch.to_fill):
        out += [f"Yours to give, before or in the command: {', '.join(map(code, to_fill))}.", ""]
    if more:
        out += [f"More that is changed is started in {_places(more)}.", ""]
    if any(launch.endless for launch in shown):
        out += ["Where no option makes the run short, stop it with Ctrl-C once the changed lines have run.", ""]
    return [*out, *_not_started(fixed, context)]


def wrapped(command: str) -> list[str]:
    """The command on lines of at most 100 columns, as far as its options allow it."""
    if len(command) <= WIDEST:
        return [command]
    lines, line = [], ""
    for part in _options(command):
        if line and len(line) + len(part) + 3 > WIDEST:
            lines.append(f"{line} \\")
            line = _INDENT + part
        else:
            line = f"{line} {part}" if line else part
    return [*lines, line]


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
    notes = [*([f"with {launch.short}"] if launch.short else []), *launch.edits[:1], *([_devices(launch)] if not launch.counted else [])]
    yield f"# from {launch.path}:{launch.line}{''.join(f', {note}' for note in notes)}"
    yield from (f"# {need}" for need in launch.needs)


def _devices(launch: Launch) -> str:
    """What the command itself does not say: plain `python` gets its processes from the script's settings."""
    return f"set two devices in {launch.devices}" if launch.devices else "set two devices"


def _places(launches: Sequence[Launch]) -> str:
    found = list(dict.fromkeys(f"{launch.path}:{launch.line}" for launch in launches))
    more = f" and {len(found) - MOST_MISSED} more places" if len(found) > MOST_MISSED else ""
    return f"{', '.join(map(code, found[:MOST_MISSED]))}{more}"


def _elsewhere(context: Context) -> list[str]:
    """Commands whose words are put together by a shell."""
    found = [launch for launch in context.launches if not launch.command]
    return [f"Started by {_places(found)} too, whose words cannot be shown whole.", ""] if found else []


def _not_started(fixed: Fixed, context: Context) -> list[str]:
    """The changed programs that no command of the repository tests."""
    reached = {path for launch in context.launches for path in launch.programs}
    missed = [path for path in sorted(fixed.after) if path.endswith(".py") and path not in reached]
    if not missed or not any(launch.programs for launch in context.launches):
        return []
    shown = ", ".join(map(code, missed[:MOST_MISSED]))
    more = f" and {plural(len(missed) - MOST_MISSED, 'more file')}" if len(missed) > MOST_MISSED else ""
    return [f"Changed too, and reached by no command that was found, as far as imports and settings show: {shown}{more}.", ""]


def _usual_commands(fixed: Fixed) -> list[str]:
    data = b"\n".join(data for path, data in fixed.before.items() if not path.endswith(NOTEBOOK))
    out = []
    if b"lightning" in data:
        out.append("python SCRIPT.py ...  # with devices=2 in its Trainer")
    if _ACCELERATE.search(data):
        out.append("accelerate launch --num_processes 2 SCRIPT.py ...")
    if re.search(SPAWNS, data):  # under torchrun, each of its processes would start all ranks once more
        return ["python SCRIPT.py ...  # it starts its ranks itself: let there be two", *out]
    if _LOCAL_RANK.search(data) and b"LOCAL_RANK" not in data:  # from the command line alone, which torchrun does not write
        return out or ["python -m torch.distributed.launch --nproc_per_node=2 SCRIPT.py ..."]
    return out or ["torchrun --standalone --nproc_per_node=2 SCRIPT.py ..."]
