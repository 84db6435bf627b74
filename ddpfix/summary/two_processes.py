"""A command line of a job file as one that can be pasted: two processes on this machine, every word of it known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import CommandLine, Flag, is_python
from codemods.files.passages import Passage
from codemods.files.shell_words import Word
from codemods.runtime.record import record

LONGEST = 600

_COUNTS = {"torchrun": "nproc_per_node", "accelerate": "num_processes", "deepspeed": "num_gpus"}
_TWO = {"torchrun": "--nproc_per_node=2", "accelerate": "--num_processes 2", "deepspeed": "--num_gpus 2"}
# where the other machines are, which of them this one is, and which of its GPUs are meant
_ELSEWHERE = frozenset(
    {"nnodes", "node_rank", "master_addr", "master_port", "rdzv_id", "rdzv_backend", "rdzv_endpoint", "rdzv_conf",
     "num_machines", "machine_rank", "main_process_ip", "main_process_port", "gpu_ids",
     "num_nodes", "hostfile", "include", "exclude"}
)  # fmt: skip
_DEVICES = re.compile(r"(?:--?|\+{0,2})(?:trainer\.)?devices$")
_ARGUMENTS = re.compile(r"\"?\$(?:[@*]|\{[@*](?::\d+)?\})\"?$")  # what the script is given: nothing
_PLACEHOLDER = re.compile(r"\.\.\.|…|path[_/-]?to|\byour\b|\byour[_/-]|\bx{3,}\b|[<>]", re.I)
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=")


@record
class Pasted:
    """text: the command; counted: it says itself how many processes there are."""

    text: str
    counted: bool


def with_two_processes(command: CommandLine, *, joins: bool = False) -> Pasted | None:
    """The command with two processes; None where the shell, or the reader, would have to fill something in.

    joins: the program joins the processes of a launcher and starts none, so that plain Python is replaced by torchrun.
    """
    words = command.words
    start = next(i for i, word in enumerate(words) if _starts(word))
    target = next((i for i in range(start + 1, len(words)) if _written(words[i]) == command.target), None)
    if target is None or _is_open(command):
        return None
    try:
        launched = list(_launcher(command, start, target, joins=joins))
        program, counted = _program(command, words[target + 1 :])
        parts = [*_environment(words[:start]), *launched, _known(words[target]), *program]
    except _UnknownWord:
        return None
    text = " ".join(parts)
    return Pasted(text, counted or joins or bool(command.launcher)) if len(text) <= LONGEST else None


class _UnknownWord(Exception):
    """A word that the shell decides at run time, or that stands for one of the reader's own."""


def _starts(word: Word) -> bool:
    name = _written(word)
    return is_python(name) or basename(name).lstrip("@-") in _COUNTS


def _written(word: Word) -> str:
    return word.raw.strip("\"'") if word.value is None else word.value


def _known(word: Word) -> str:
    if word.value is None or _PLACEHOLDER.search(word.value):
        raise _UnknownWord
    return word.raw if "\n" not in word.raw else shlex.quote(word.value)


def _is_open(command: CommandLine) -> bool:
    """True for `--data <folder>`, which a shell takes for two redirections."""
    source, words = command.source, command.words
    if not isinstance(source, Passage):
        return False
    inside, behind = source.text[words[0].start : words[-1].end], source.text[words[-1].end :]
    return "<" in inside or behind.lstrip(" \t\\\r\n").startswith("<")


def _environment(words: Sequence[Word]) -> Iterator[str]:
    """The variables in front of it that bear on what Python finds; the others are those of a machine."""
    for word in words:
        if (match := _VARIABLE.match(word.raw)) and match[1] == "PYTHONPATH":
            yield _known(word)


def _launcher(command: CommandLine, start: int, target: int, *, joins: bool) -> Iterator[str]:
    """All in front of the script: the launcher with its options, or Python with its own."""
    words, name = command.words, command.launcher
    if not name:
        module = ["-m"] if command.module else []
        yield from ["torchrun", "--standalone", _TWO["torchrun"], *module] if joins else ["python", *module]
        return
    if is_python(_written(words[start])):  # python -m torch.distributed.launch
        at = next(i for i in range(start + 1, target) if _written(words[i]) == "-m") + 1
        yield from ("python", "-m", _known(words[at]))
    else:
        yield name
        if name == "accelerate":
            yield "launch"
    if not any(flag.field == _COUNTS[name] for flag in command.launcher_flags):
        yield _TWO[name]
    for flag in command.launcher_flags:
        if flag.field == _COUNTS[name]:
            yield f"{flag.name}=2" if flag.joined else f"{flag.name} 2"
        elif flag.field not in _ELSEWHERE:
            yield from map(_known, (flag.word, *flag.values))


def _program(command: CommandLine, words: Sequence[Word]) -> tuple[list[str], bool]:
    """(the arguments of the script, whether they say how many devices there are)."""
    two = {_value_of(flag).start: flag for flag in command.flags if _DEVICES.match(flag.name) and (flag.values or flag.joined)}
    out, counted = [], bool(two)
    for word in words:
        name, equals, _ = word.raw.partition("=")
        if flag := two.get(word.start):
            out.append(f"{flag.name}=2" if flag.joined else "2")
        elif equals and _DEVICES.match(name):
            out.append(f"{name}=2")
            counted = True
        elif not _ARGUMENTS.match(word.raw):
            out.append(_known(word))
    return out, counted


def _value_of(flag: Flag) -> Word:
    return flag.word if flag.joined else flag.values[0]
