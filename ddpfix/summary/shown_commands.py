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
_TRAINER = re.compile(rb"lightning[\s\S]*\bTrainer\(")
_LOCAL_RANK = re.compile(rb"add_argument\([^)]{0,80}--local[_-]rank")
_OPTION = re.compile(r"--?[A-Za-z]|[+~]{0,2}[\w./]+=")
_WORD = re.compile(r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\(\([^()]*\)\)|\$\([^()]*\)|\\.|[^\s\"'])+")


def shown_commands(fixed: Fixed, context: Context) -> list[str]:
    """The repository's own commands, and those by the programs' own paths; where no program is known, what is to be called."""
    typed = [launch for launch in context.launches if launch.command]
    shown, more = typed[:MOST_COMMANDS], typed[MOST_COMMANDS:]
    if not shown:
        return _without_a_command(fixed)
    out = [_lead(shown), "", *fence([row for launch in shown for row in (*_heading(launch), *wrapped(launch.command))], "sh"), ""]
    if to_fill := dict.fromkeys(word for launch in shown for word in launch.to_fill):
        out += [f"Yours to give, before or in the command: {', '.join(map(code, to_fill))}.", ""]
    if more:
        out += [f"More that is changed is started in {_places(more)}.", ""]
    if any(launch.endless for launch in shown):
        out += ["Where no option makes the run short, stop it with Ctrl-C once the changed lines have run.", ""]
    return [*out, *_not_started(fixed, context)]


def _lead(shown: Sequence[Launch]) -> str:
    if all(map(is_import, shown)):
        return "No program of the repository comes to what was changed; one process is enough to try its imports:"
    if all(launch.made for launch in shown):
        return "No command for what was changed was found in the repository; by its own paths, from its root:"
    return "As this repository starts what was changed, from its root, with two processes and the values of its variables:"


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
    yield from (f"# {need}" for need in launch.needs)


def _origin(launch: Launch) -> str:
    if not launch.made:
        return f"from {launch.path}:{launch.line}"
    if launch.line:
        return f"without the other options of {launch.path}:{launch.line}"
    return f"what is imported in {launch.path}" if is_import(launch) else f"no command was found for {launch.path}"


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
    return [f"Changed too, and reached by no command that was found, as far as imports and settings show: {shown}{more}.", ""]


def _without_a_command(fixed: Fixed) -> list[str]:
    """Changed files by which nothing is started that was found: each has its own path in the command, or is to be called."""
    programs = [path for path in sorted(fixed.after) if path.endswith(".py") and b"__main__" in fixed.before.get(path, b"")]
    if programs:
        path = programs[0]
        none = f"No command of the repository starts {code(path)}, as far as its texts show; with its own options:"
        return [none, "", *fence([_usual_command(fixed.before[path], path)], "sh"), ""]
    changed = [path for path in sorted(fixed.after) if not path.endswith(NOTEBOOK)]
    shown = ", ".join(map(code, changed[:MOST_MISSED]))
    more = f" and {plural(len(changed) - MOST_MISSED, 'more file')}" if len(changed) > MOST_MISSED else ""
    none = f"No program or command that comes to the change was found in the repository: {shown}{more}."
    return [f"{none} Call what was changed from a program of yours, on two processes.", ""]


def _usual_command(data: bytes, path: str) -> str:
    if re.search(SPAWNS, data):  # under torchrun, each of its processes would start all ranks once more
        return f"CUDA_VISIBLE_DEVICES=0,1 python {path}  # it starts its ranks itself: let there be two"
    if _TRAINER.search(data):
        return f"python {path}  # with devices=2 in its Trainer"
    if _ACCELERATE.search(data):
        return f"accelerate launch --num_processes 2 {path}"
    if _LOCAL_RANK.search(data) and b"LOCAL_RANK" not in data:  # from the command line alone, which torchrun does not write
        return f"python -m torch.distributed.launch --nproc_per_node=2 {path}"
    return f"torchrun --standalone --nproc_per_node=2 {path}"
