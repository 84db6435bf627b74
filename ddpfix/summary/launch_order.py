"""Which of the commands that start a changed program is the one to test it by."""

from __future__ import annotations

import re
from posixpath import basename, dirname

from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.files.text_file import DOCUMENT_KINDS
from ddpfix.summary.run_places import Run
from ddpfix.summary.two_processes import Pasted

_TRAINS, _MAIN, _NO_TRAINING = (
    re.compile(words, re.I)
    for words in (
        r"(?<!cons)train(?!ed)|tun(?:e|ing)|\bfit|sft",
        r"^(?:main|run)",
        r"eval|(?<![a-z])test|infer|predict|sampl|generat|demo|export|convert|prepar|preprocess|bench|score|plot|download|install|setup|embed|serv(?:e|ice)",
    )
)
_TRAINING_FLAG = re.compile(r"(?:do_|is_|run_)?train(?:ing)?$", re.I)
_OTHER_FLAG = re.compile(rf"(?:do_|is_|run_|only_)?(?:{_NO_TRAINING.pattern})(?!.*(?:during|train))", re.I)
_OTHER_ALONE = re.compile(r"(?:do_|is_|run_|only_)?(?:eval\w{0,7}|validate|test|infer\w{0,5}|predict|generate|sample)(?:_only)?")
_HEADING = re.compile(r"^[ \t]*#+[ \t]+(.*)$", re.M)
_MODES = ("mode", "phase", "stage", "run_mode", "action")
_YES = frozenset({"true", "1", "yes"})


def order(
    script: str, path: str, line: int, command: CommandLine, pasted: Pasted, programs: frozenset[str], above: str, run: Run
) -> tuple[object, ...]:
    """The best first: what comes to a changed place; what trains; on any machine; whole; as several processes there already.

    above: the document before it.
    """
    return (
        not run.reached,
        kind_of(script, path, command, above),
        pasted.foreign,
        bool(pasted.to_fill),
        pasted.started_as_one,
        -len(programs),
        -len(run.reached),
        len(pasted.edits),
        not pasted.counted,
        not path.endswith(DOCUMENT_KINDS),
        path.count("/"),
        path,
        line,
    )


def kind_of(script: str, path: str, command: CommandLine, above: str) -> int:
    """What the command is for, training first: by its flags, the name of its program, and what stands round it."""
    given = [flag for flag in command.flags if _is_on(flag)]
    if any(_TRAINING_FLAG.match(flag.field) for flag in given):
        return 0
    name = _name(script)
    if is_no_training(script) or any(_OTHER_FLAG.match(flag.field) for flag in given):
        return 3
    around = _around(path, above)
    if _NO_TRAINING.search(around) and not _TRAINS.search(around):
        return 3
    return 0 if _TRAINS.search(name) else 1 if _MAIN.search(name) else 2


def asks_for_another(command: CommandLine) -> bool:
    """True for `--mode test` and `--do_eval`, without `--do_train`."""
    on = [flag.field for flag in command.flags if _is_on(flag)]
    if any(map(_TRAINING_FLAG.match, on)):
        return False
    modes = [flag.settled or "" for flag in command.flags if flag.field in _MODES]
    return any(map(_OTHER_ALONE.fullmatch, on)) or any(_NO_TRAINING.search(mode) and not _TRAINS.search(mode) for mode in modes)


def is_no_training(script: str) -> bool:
    """True for a program whose name says that it does something else."""
    return _NO_TRAINING.search(_name(script)) is not None


def trains(script: str) -> bool:
    """True for a program whose name says so."""
    return _TRAINS.search(_name(script)) is not None


def _name(script: str) -> str:
    return basename(dirname(script) if basename(script) == "__main__.py" else script)


def _is_on(flag: Flag) -> bool:
    """True for `--do_train` and `--do_train True`."""
    return (not flag.values and not flag.joined) or (flag.value or "").lower() in _YES


def _around(path: str, above: str) -> str:
    """The name of a job file with its folder; in a document the last heading, or comment, above the command."""
    if not path.endswith(DOCUMENT_KINDS):
        return f"{basename(dirname(path))}/{basename(path)}"
    headings = _HEADING.findall(above)
    return headings[-1] if headings else ""
