"""A command line of a job file as one that can be pasted: two processes on this machine, and what of it the reader must give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import CommandLine, Flag, is_python
from codemods.files.passages import Passage
from codemods.files.shell_words import Word
from codemods.runtime.record import field, record

LONGEST = 1200

_COUNTS = {"torchrun": "nproc_per_node", "accelerate": "num_processes", "deepspeed": "num_gpus"}
_TWO = {"torchrun": "--nproc_per_node=2", "accelerate": "--num_processes 2", "deepspeed": "--num_gpus 2"}
# where the other machines are, which of them this one is, and which of its GPUs are meant
_ELSEWHERE = frozenset(
    {"nnodes", "node_rank", "master_addr", "master_port", "rdzv_id", "rdzv_backend", "rdzv_endpoint", "rdzv_conf",
     "num_machines", "machine_rank", "main_process_ip", "main_process_port", "gpu_ids",
     "num_nodes", "hostfile", "include", "exclude"}
)  # fmt: skip
_DEVICES = re.compile(r"(?:(?:--?|\+{0,2})(?:trainer\.)?devices|\+{0,2}trainer\.gpus)$")
_ARGUMENTS = re.compile(r"\"?\$(?:[@*]|\{[@*](?::\d+)?\})\"?$")  # what the script is given: nothing
_LEFT_OUT = re.compile(r"\.\.\.|…|[<>]|^\s*$")  # more words, a shell's redirection, a line end that a blank behind it undid
_PLACEHOLDER = re.compile(r"path[_/-]?to|\byour\b|\byour[_/-]|\bx{3,}\b", re.I)
_NAMES = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_DECIDED = re.compile(r"[$`*?~{\[]")  # what else the shell replaces
_HERE = re.compile(r"\$\(pwd\)|`pwd`")
_OF_EACH_SHELL = frozenset({"PYTHONPATH", "PWD", "HOME", "USER"})
_FOREIGN = re.compile(r"(?:--?[\w.-]+=|[\w.]+=)?/(?!tmp/|dev/|tmp$)")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=")


@record
class Pasted:
    """text: the command; counted: it says itself how many processes there are.

    to_fill: words of it that the reader has to give: variables that nobody sets, `path/to/data`. edits: what was changed beside
    the number of processes. foreign: it names a place of somebody's machine. started_as_one: it has plain Python,
    which starts one process.
    """

    text: str
    counted: bool
    to_fill: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    foreign: bool = False
    started_as_one: bool = False


@record(frozen=False)
class _Said:
    """What is to be told of the words that were written."""

    to_fill: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)
    foreign: bool = False


def with_two_processes(command: CommandLine, *, joins: bool = False) -> Pasted | None:
    """The command with two processes; None where it is not whole, or a word is decided by more than the value of a variable.

    joins: the program joins the processes of a launcher and starts none, so that plain Python is replaced by torchrun.
    """
    words = command.words
    start = next(i for i, word in enumerate(words) if _starts(word))
    target = next((i for i in range(start + 1, len(words)) if words[i].text == command.target), None)
    if target is None or _is_open(command):
        return None
    said = _Said()
    try:
        launched = list(_launcher(command, start, target, said, joins=joins))
        program, counted = _program(command, words[target + 1 :], said)
        parts = [*_environment(words[:start], said), *launched, _known(words[target], said), *program]
    except _UnknownWord:
        return None
    text = " ".join(parts)
    if len(text) > LONGEST:
        return None
    to_fill, edits = (tuple(dict.fromkeys(found)) for found in (said.to_fill, said.edits))
    return Pasted(text, counted or joins or bool(command.launcher), to_fill, edits, said.foreign, joins and not command.launcher)


class _UnknownWord(Exception):
    """A word that the shell decides at run time, by more than the value of a variable, or one that is not written out."""


def _starts(word: Word) -> bool:
    return is_python(word.text) or basename(word.text).lstrip("@-") in _COUNTS


def _known(word: Word, said: _Said) -> str:
    if word.value is None:
        return _settled(word, said)
    if _LEFT_OUT.search(word.value):
        raise _UnknownWord
    if _PLACEHOLDER.search(word.value):
        said.to_fill.append(word.raw)
    said.foreign |= _FOREIGN.match(word.value) is not None
    return word.raw if "\n" not in word.raw else shlex.quote(word.value)


def _settled(word: Word, said: _Said) -> str:
    """A word with variables: their values where the script gives them, else the names, for the reader to set."""
    given = word.settled
    if given is not None and not _DECIDED.search(given) and not _LEFT_OUT.search(given):
        said.edits.append("with the values of its variables")
        said.foreign |= _FOREIGN.match(given) is not None
        if _PLACEHOLDER.search(given):
            said.to_fill.append(given)
        return shlex.quote(given)
    if _LEFT_OUT.search(word.raw) or _DECIDED.search(_NAMES.sub("", word.raw)) or "\n" in word.raw:
        raise _UnknownWord
    names = [braced or plain for braced, plain in _NAMES.findall(word.raw)]
    said.to_fill += [f"${name}" for name in names if name not in _OF_EACH_SHELL]
    return word.raw


def _is_open(command: CommandLine) -> bool:
    """True for `--data <folder>`, which a shell takes for two redirections."""
    source, words = command.source, command.words
    if not isinstance(source, Passage):
        return False
    inside, behind = source.text[words[0].start : words[-1].end], source.text[words[-1].end :]
    return "<" in inside or behind.lstrip(" \t\\\r\n").startswith("<")


def _environment(words: Sequence[Word], said: _Said) -> Iterator[str]:
    """The variables in front of it that bear on what Python finds; the others are those of a machine."""
    for word in words:
        if (match := _VARIABLE.match(word.raw)) and match[1] == "PYTHONPATH":
            yield word.raw if word.value is None and not _DECIDED.search(_of_each_shell(word.raw)) else _known(word, said)


def _of_each_shell(raw: str) -> str:
    """The word without what each shell knows: its folder, and the path that Python has there already."""
    return _NAMES.sub(lambda m: "" if (m[1] or m[2]) in _OF_EACH_SHELL else m[0], _HERE.sub("", raw))


def _launcher(command: CommandLine, start: int, target: int, said: _Said, *, joins: bool) -> Iterator[str]:
    """All in front of the script: the launcher with its options, or Python with its own."""
    words, name = command.words, command.launcher
    if not name:
        module = ["-m"] if command.module else []
        said.edits += ["by torchrun, where it has plain Python"] if joins else []
        yield from ["torchrun", "--standalone", _TWO["torchrun"], *module] if joins else ["python", *module]
        return
    if is_python(words[start].text):  # python -m torch.distributed.launch
        at = next(i for i in range(start + 1, target) if words[i].text == "-m") + 1
        yield from ("python", "-m", _known(words[at], said))
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
            yield from (_known(word, said) for word in (flag.word, *flag.values))
        else:
            said.edits.append(f"without {flag.name}")
    of_flags = {word.start for flag in command.launcher_flags for word in (flag.word, *flag.values)}
    said.edits += [f"without {w.raw}" for w in words[start + 1 : target] if w.value is None and w.start not in of_flags]


def _program(command: CommandLine, words: Sequence[Word], said: _Said) -> tuple[list[str], bool]:
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
            out.append(_known(word, said))
    return out, counted


def _value_of(flag: Flag) -> Word:
    return flag.word if flag.joined else flag.values[0]
