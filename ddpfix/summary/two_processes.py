"""A command line of a job file as one that can be pasted: two processes on this machine, and what of it the reader must give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import CommandLine, Flag, is_python
from codemods.files.passages import Passage
from codemods.files.shell_words import Word
from codemods.runtime.record import field, record
from ddpfix.summary.shown_values import shown_values, with_shown_values
from ddpfix.summary.spellings import option_of

LONGEST = 4000

_COUNTS = {"torchrun": "nproc_per_node", "accelerate": "num_processes", "deepspeed": "num_gpus"}
_TWO = {"torchrun": "--nproc_per_node=2", "accelerate": "--num_processes 2", "deepspeed": "--num_gpus 2"}
# where the other machines are, which of them this one is, and which of its GPUs are meant
_ELSEWHERE = frozenset(
    {"nnodes", "node_rank", "master_addr", "master_port", "rdzv_id", "rdzv_backend", "rdzv_endpoint", "rdzv_conf",
     "num_machines", "machine_rank", "main_process_ip", "main_process_port", "gpu_ids",
     "num_nodes", "hostfile", "include", "exclude"}
)  # fmt: skip
_DEVICES = re.compile(r"(?:(?:--?|\+{0,2})(?:trainer\.)?devices|\+{0,2}trainer\.gpus)$")
_POSITION = re.compile(r"\$(?:\d|\{\d+\})")  # what the script is given there
_ARGUMENTS = re.compile(r"\"?\$(?:[@*]|\{[@*](?::\d+)?\})\"?$")  # what the script is given: nothing
_LEFT_OUT = re.compile(r"\.\.\.|…|[<>]|^\s*$")  # more words, a shell's redirection, a line end that a blank behind it undid
_PLACEHOLDER = re.compile(r"path[_/-]?to|\byour\b|\byour[_/-]|(?<![a-z])x{3,}(?![a-z])", re.I)
# `TRAIN_PATH`, `runs/RUN_NAME/configuration`
_SPELLED_LARGE = re.compile(r"(?:[^=]*=)?(?:[^=]*/)?[A-Z]+(?:_[A-Z]+)*_(?:PATH|DIR|FOLDER|FILE|NAME|ROOT)(?:/|$)")
_OF_THE_SHELL = re.compile(r"(?:[\w-]+=)?(?:\$\(\([\d\s+*%-]*\bRANDOM\b[\d\s+*%-]*\)\)|~/[\w./-]*)$")  # the same in each
_LEFT_TO_FILL = re.compile(r"\*{3}")  # `logs/***/last.ckpt`
_PLAIN = re.compile(r"[\w./@%+=:,-]+")
_LISTED = re.compile(r"[+~]{0,2}[\w.@/-]+=\[[\w.,/'\"-]*\]$")  # Hydra's `data=[a,b]`, no pattern of files
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


@record
class OtherLauncher:
    """words: for two processes, up to the script. reason: of the heading of the command."""

    words: tuple[str, ...]
    reason: str


@record
class Setting:
    """What the program makes of the command. joins: it joins the processes of a launcher and starts none, so that plain Python is
    replaced by torchrun. visible: it has a process for each GPU that it sees. number: its own options for their number.
    listed: that number is a list of devices.
    listing: those that say which GPUs it sees. launcher: what starts it in the place of the launcher that it has.
    short: flag, or key of Hydra -> the value that makes the run short. added: words behind it.
    refused: flags that its parser ends at. target: the script as it is to be written, "" as it stands. names: variables that the
    shell has. fields: what the program calls its flags.
    """

    joins: bool = False
    visible: bool = False
    number: frozenset[str] = frozenset()
    listed: bool = False
    listing: frozenset[str] = frozenset()
    launcher: OtherLauncher | None = None
    short: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    target: str = ""
    names: frozenset[str] = frozenset()
    fields: Mapping[str, str] = field(default_factory=dict)


@record(frozen=False)
class _Said:
    """What is to be told of the words that were written. known: values of variables. names: variables that the shell has."""

    known: dict[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    to_fill: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)
    foreign: bool = False


def with_two_processes(command: CommandLine, setting: Setting) -> Pasted | None:
    """The command with two processes; None where it is not whole, or a word is decided by more than the value of a variable."""
    words = command.words
    start = next(i for i, word in enumerate(words) if _starts(word))
    target = next((i for i in range(start + 1, len(words)) if words[i].text == command.target), None)
    if target is None or _is_open(command):
        return None
    said = _Said(shown_values(command.source, words[0].start), setting.names)
    joins = setting.joins
    try:
        launched = list(_launcher(command, start, target, said, setting))
        program, counted = _program(command, words[target + 1 :], said, setting)
        script = setting.target or _known(words[target], said)
        parts = [*_environment(words[:start], said, visible=setting.visible and not setting.listing), *launched, script, *program]
    except _UnknownWord:
        return None
    text = " ".join(parts)
    if len(text) > LONGEST:
        return None
    to_fill, edits = (tuple(dict.fromkeys(found)) for found in (said.to_fill, said.edits))
    counted = counted or joins or bool(command.launcher) or setting.visible
    return Pasted(text, counted, to_fill, edits, said.foreign, joins and not command.launcher)


class _UnknownWord(Exception):
    """A word that the shell decides at run time, by more than the value of a variable, or one that is not written out."""


def _starts(word: Word) -> bool:
    return is_python(word.text) or basename(word.text).lstrip("@-") in _COUNTS


def _known(word: Word, said: _Said) -> str:
    if word.value is None:
        return _settled(word, said)
    if _LEFT_OUT.search(word.value) and word.raw not in ("''", '""'):
        raise _UnknownWord
    if _PLACEHOLDER.search(word.value) or _SPELLED_LARGE.match(word.value):
        said.to_fill.append(word.raw)
    said.foreign |= _FOREIGN.match(word.value) is not None
    return word.raw if "\n" not in word.raw else shlex.quote(word.value)


def _settled(word: Word, said: _Said, flag: str = "") -> str:
    """A word with variables: their values where the script gives them, else the names, for the reader to set.

    flag: the option whose value it is: what the script itself is given there is named after it.
    """
    raw = with_shown_values(word.raw, said.known)
    if flag and _POSITION.fullmatch(raw.strip('"')):
        name = f"YOUR_{flag.lstrip('-').replace('-', '_').replace('.', '_').upper()}"
        said.to_fill.append(name)
        return name
    if _LEFT_TO_FILL.search(raw) and "$" not in raw:
        said.to_fill.append(raw)
        return raw
    if _LISTED.match(raw) or _OF_THE_SHELL.match(raw.lstrip("-")):
        said.foreign |= "~/" in raw
        return raw
    if _LEFT_OUT.search(raw) or _DECIDED.search(_NAMES.sub("", raw)) or "\n" in raw:
        raise _UnknownWord
    names = [braced or plain for braced, plain in _NAMES.findall(raw)]
    said.to_fill += [f"${name}" for name in names if name not in _OF_EACH_SHELL and name not in said.names]
    bare = raw.strip("\"'")
    said.foreign |= _FOREIGN.match(bare) is not None
    if not names and _PLACEHOLDER.search(bare):
        said.to_fill.append(bare)
    return bare if _PLAIN.fullmatch(bare) else raw


def _is_open(command: CommandLine) -> bool:
    """True for `--data <folder>`, which a shell takes for two redirections."""
    source, words = command.source, command.words
    if not isinstance(source, Passage):
        return False
    inside, behind = source.text[words[0].start : words[-1].end], source.text[words[-1].end :]
    return "<" in inside or behind.lstrip(" \t\\\r\n").startswith("<")


def is_all_arguments(word: Word) -> bool:
    """True for `"$@"`: what a script hands on, which is nothing here."""
    return _ARGUMENTS.match(word.raw) is not None


def _environment(words: Sequence[Word], said: _Said, *, visible: bool) -> Iterator[str]:
    """The variables in front of it that bear on what Python finds; the others are those of a machine, but the GPUs that count."""
    if visible:
        yield "CUDA_VISIBLE_DEVICES=0,1"
    for word in words:
        if (match := _VARIABLE.match(word.raw)) and match[1] == "PYTHONPATH":
            yield word.raw if word.value is None and not _DECIDED.search(_of_each_shell(word.raw)) else _known(word, said)


def _of_each_shell(raw: str) -> str:
    """The word without what each shell knows: its folder, and the path that Python has there already."""
    return _NAMES.sub(lambda m: "" if (m[1] or m[2]) in _OF_EACH_SHELL else m[0], _HERE.sub("", raw))


def _launcher(command: CommandLine, start: int, target: int, said: _Said, setting: Setting) -> Iterator[str]:
    """All in front of the script: the launcher with its options, or Python with its own."""
    words, name = command.words, command.launcher
    module = ["-m"] if command.module else []
    if setting.launcher is not None:
        said.edits.append(setting.launcher.reason)
        yield from (*setting.launcher.words, *module)
        return
    if not name:
        yield from ("python", *module)
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
    of_flags = {word.start for flag in command.launcher_flags for word in (flag.word, *flag.values)}
    said.edits += [f"without {w.raw}" for w in words[start + 1 : target] if w.value is None and w.start not in of_flags]


def _program(command: CommandLine, words: Sequence[Word], said: _Said, setting: Setting) -> tuple[list[str], bool]:
    """(the arguments of the script, whether they say how many devices there are)."""
    numbered = [f for f in command.flags if _DEVICES.match(f.name) or f.name in setting.number]
    listing = [f for f in command.flags if f.name in setting.listing and (f.values or f.joined)]
    two = {_value_of(flag).start: flag for flag in (*numbered, *listing) if flag.values or flag.joined}
    left = {w.start for f in command.flags if f.name in setting.refused for w in (f.word, *f.values)}
    left |= {w.start for f in listing for w in f.values[1:]}
    asked = setting.listing if setting.visible else setting.number
    is_added = asked if not two else frozenset()
    again = {option_of(name, setting.fields) for name in (*is_added, *setting.added[:1])} - {""}
    left |= {w.start for f in command.flags if option_of(f.name, setting.fields) in again for w in (f.word, *f.values)}
    flags = {word.start: setting.fields.get(flag.name, flag.name) for flag in command.flags for word in flag.values}
    said.edits += dict.fromkeys(f"without {f.name}, which its parser refuses" for f in command.flags if f.name in setting.refused)
    brief = {_value_of(flag).start: flag for flag in command.flags if flag.name in setting.short}
    out, counted = [], bool(two)
    for word in words:
        name, equals, _ = word.raw.partition("=")
        if word.start in left:
            continue
        if flag := brief.get(word.start):
            out.append(f"{flag.name}=" * flag.joined + setting.short[flag.name])
        elif equals and name in setting.short:
            out.append(f"{name}={setting.short[name]}")
        elif flag := two.get(word.start):
            out.append(f"{flag.name}=" * flag.joined + _two_of(flag, [*listing, *(numbered if setting.listed else ())]))
        elif equals and _DEVICES.match(name):
            out.append(f"{name}=2")
            counted = True
        elif not is_all_arguments(word):
            out.append(_settled(word, said, flags.get(word.start, "")) if word.value is None else _known(word, said))
    if asked and not counted:
        out += [max(sorted(asked), key=len), "0,1" if setting.visible or setting.listed else "2"]
        counted = True
    return [*out, *setting.added], counted


def _two_of(flag: Flag, listing: Sequence[Flag]) -> str:
    """The number of devices, or which they are, one by one."""
    if len(flag.values) > 1:
        return "0 1"
    return "0,1" if flag in listing or "," in (flag.settled or "") else "2"


def _value_of(flag: Flag) -> Word:
    return flag.word if flag.joined else flag.values[0]
