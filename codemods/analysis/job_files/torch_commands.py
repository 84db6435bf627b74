"""The scripts that job files and texts start by torchrun or `torch.distributed.launch`, and where their ranks meet.

Both open a store of their own, and hand its port to the ranks (`TORCHELASTIC_USE_AGENT_STORE`): no rank opens another. Run with
torch 2.13: the port is a free one where no option names it (29500 in older versions); that of `--rdzv-endpoint` works, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.data.launcher_options import SWITCHES
from codemods.files.shell_words import Word
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_CALLED = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_LONGEST = 400_000
_USUAL = frozenset({"29500", "29400"})  # of the store of an older torchrun, and of an endpoint without a port
_PORTS = ("master_port", "rdzv_endpoint")
_PORT = lazy(r"(?:[\w.\[\]-]*:)?(\d+)$")
_OPTION = lazy(r"--?[a-zA-Z][\w-]*$")
_VARIABLE = lazy(r"\$\{?(\w+)")
_OPEN = lazy(r"[\"']?(?:\$[@*]|\$\{?\w+(?:\[[@*]\])?\}?|\$\(.*|`.*|<.*|\.\.\.|…|\[.*)[\"']?$")  # words that may be options


@record
class TorchCommand:
    """script: the project's file. launcher: as a sentence names it. ports: those by which the ranks may meet, None where that is
    not shown. several: it starts more than one process. flags: those of the script; more: it may be given others.
    """

    script: str
    launcher: str
    path: str
    line: int
    ports: frozenset[str] | None
    several: bool
    flags: frozenset[str]
    more: bool
    dynamic: bool


def torch_commands(project: Project) -> tuple[TorchCommand, ...]:
    """Every such command for a script that is found."""
    return project.keep("torch commands", lambda: tuple(_commands(project)))


def _commands(project: Project) -> Iterator[TorchCommand]:
    kinds = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
    for path in sorted({p for word in _CALLED for p in project.files_containing(word.encode(), kinds=kinds)}):
        file = project.module(path) if not is_test_file(path) and len(project.read(path) or b"") <= _LONGEST else None
        for command in command_lines(file) if isinstance(file, TextFile) else ():
            launcher = _launcher(command)
            script = script_of(project, command) if launcher else None
            if script is not None:
                yield _read(command, launcher, script)


def _launcher(command: CommandLine) -> str:
    if command.launcher != "torchrun":
        return ""
    return "torch.distributed.launch" if any(w.text == "torch.distributed.launch" for w in command.words) else "torchrun"


def _read(command: CommandLine, launcher: str, script: str) -> TorchCommand:
    given = {f.field: f for f in command.launcher_flags}
    at = next(i for i, w in enumerate(command.words) if w.text == command.target)
    rest = command.words[at + 1 :]
    line = command.span(command.words[0].start, command.words[0].end).line
    several = _may_be_several(command, given.get("nproc_per_node")) or _is_number_above_one(given.get("nnodes"))
    more = any(w.value is None and _OPEN.match(w.raw) for w in rest)
    first = next(i for i, w in enumerate(command.words) if basename(w.text).lstrip("@-") in _CALLED)
    between = command.words[first + 1 : at]
    open_options = any(w.value is None and _OPEN.match(w.raw) and not _is_value(command.words, w) for w in between)
    flags = frozenset(f.field for f in command.flags)
    dynamic = "standalone" in given or ("rdzv_backend" in given and given["rdzv_backend"].settled != "static")
    ports = None if open_options else _ports(given)
    return TorchCommand(script, launcher, command.file.path, line, ports, several, flags, more, dynamic)


def _is_value(words: tuple[Word, ...], word: Word) -> bool:
    """True for a word behind an option that takes one."""
    before = words[words.index(word) - 1].raw if words.index(word) else ""
    name = before.lstrip("-").replace("-", "_")
    return _OPTION.match(before) is not None and name not in SWITCHES["torchrun"]


def _ports(given: dict[str, Flag]) -> frozenset[str] | None:
    found = set(_USUAL)
    for name in _PORTS:
        if (flag := given.get(name)) is None:
            continue
        value = flag.settled
        port = _PORT.match(value or "")
        if port is None and (value is None or ":" in value or name == "master_port" or not value):
            return None
        found |= {port[1]} if port is not None else set()
    return frozenset(found)


def _may_be_several(command: CommandLine, flag: Flag | None) -> bool:
    """True for `--nproc_per_node` of anything but 1: without it the launcher starts one process."""
    if flag is None or flag.settled is not None:
        return flag is not None and flag.settled != "1"
    names = _VARIABLE.findall(" ".join(w.raw for w in (flag.word, *flag.values)))
    return not any(re.search(rf"(?<!\w){name}=[\"']?1\b|\{{{name}:-1\b", command.file.text) for name in names)


def _is_number_above_one(flag: Flag | None) -> bool:
    value = (flag.settled or "") if flag is not None else ""
    return value.isdigit() and int(value) > 1
