"""The repository's own commands that start a changed program: from job files, Makefiles and READMEs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, join, normpath
from shlex import quote

from codemods.analysis.job_files.command_lines import CommandLine, command_lines
from codemods.files.passages import Passage
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix.summary.context import Launch
from ddpfix.summary.device_setting import device_setting
from ddpfix.summary.launch_order import order
from ddpfix.summary.program_files import program_files
from ddpfix.summary.two_processes import with_two_processes

KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
LARGEST = 64 * 1024
DEEPEST = 6
MOST = 4

_MOVED = ("with the script's path in this repository",)
_STARTERS = (b"python", b"torchrun", b"accelerate", b"deepspeed", b"PYTHON")
SPAWNS = rb"mp\.spawn|multiprocessing\.spawn|start_processes"  # what a script starts its ranks by itself
# What shows that a script started with plain `python` starts further processes, and what that it joins those of a launcher.
_STARTS_OTHERS = re.compile(SPAWNS + rb"|Fabric\(|LightningCLI\(|lightning[\s\S]*?\bTrainer\(")
_JOINS = re.compile(rb"init_process_group|Accelerator\(|PartialState\(|deepspeed\.|\btransformers\b")
_BLOCK = re.compile(r"^(?:(?: {4}|\t)[^\n]*\n?)+", re.M)  # of a Markdown file, indented
_CUT_OFF = re.compile(r"\\[ \t]+(?:#[^\r\n]*)?(?=\r?\n)")  # a line that goes on, for a reader, and not for a shell
_OF_A_NOTEBOOK = re.compile(r"^([ \t]*)!(?=[\w./])", re.M)  # `!accelerate launch …`
# Options on lines of their own behind a command, without the backslashes that a shell asks for.
_GOES_ON = re.compile(r"(?<=[^\\\s])[ \t]*(?=\r?\n[ \t]*--\w)")
_STARTS_ONE = re.compile(r"(?:python3?|torchrun|accelerate|deepspeed)[ \t][^\n`]*(?:\r?\n[ \t]*--\w[^\n]*)+")
_PLACEHOLDER = re.compile(r"(?<=[ =])<([A-Za-z][\w .-]*)>")  # `--data <path to data>`, which a shell would take for redirections
_OF_THE_SCRIPT = re.compile(r".*\bdirname\b.*(?:\$0|\$\{?BASH_SOURCE\b).*?((?:/[\w.-]+)*)/?\"?$")


@record
class _Candidate:
    """order: the best first. programs: changed files that it comes to."""

    order: tuple[object, ...]
    programs: frozenset[str]
    launch: Launch


def launches(files: Iterable[str], read: Callable[[str], bytes | None], changed: Mapping[str, bytes]) -> tuple[Launch, ...]:
    """At most a few commands that start programs with a changed file, the best first; each comes to a file of its own.

    changed: path -> the new bytes, in which a command stands that was fixed itself.
    """
    project = Project(files, read).with_overlay(changed)
    found = sorted(_candidates(project, frozenset(changed)), key=lambda c: c.order)
    out: list[Launch] = []
    seen: set[str] = set()
    for candidate in found:
        if not candidate.programs <= seen:
            out.append(candidate.launch)
            seen |= candidate.programs
    return tuple(out[:MOST])


def launched(files: Iterable[str], read: Callable[[str], bytes | None]) -> frozenset[str]:
    """The project's files that a command of its job files and documents starts."""
    project = Project(files, read)
    started = (
        _script(project, folder, command)
        for path in _texts(project)
        for command in _commands(project, path)
        if (folder := _folder(project, path, command)) is not None
    )
    return frozenset(filter(None, started))


def _texts(project: Project) -> Iterator[str]:
    for path in sorted(p for p in project.files if p.endswith(KINDS) and p.count("/") <= DEEPEST and not p.startswith(".")):
        data = project.read(path) or b""
        if len(data) <= LARGEST and any(word in data for word in _STARTERS):
            yield path


def _candidates(project: Project, changed: frozenset[str]) -> Iterator[_Candidate]:
    for path in _texts(project):
        for command in _commands(project, path):
            if (candidate := _candidate(project, path, command, changed)) is not None:
                yield candidate


def _commands(project: Project, path: str) -> Iterator[CommandLine]:
    file = project.module(path)
    if not isinstance(file, TextFile):
        return
    if not path.endswith(YAML_KINDS):
        text = _as_a_script(file.text) if path.endswith(DOCUMENT_KINDS) else file.text
        file = TextFile(path, _CUT_OFF.sub("\\\\", text).encode())
    yield from command_lines(file)
    if path.endswith(DOCUMENT_KINDS):
        for block in _BLOCK.finditer(file.text):  # as a script of its own, whose lines stand where they do in the file
            before = "\n" * file.text.count("\n", 0, block.start())
            yield from command_lines(TextFile(f"{path}.sh", (before + block.group()).encode()))


def _as_a_script(text: str) -> str:
    """The commands of a text for people as a shell takes them; each stands in the line in which it stood."""
    text = _PLACEHOLDER.sub(lambda m: "your-" + re.sub(r"[ _]+", "-", m[1]), _OF_A_NOTEBOOK.sub(r"\1 ", text))
    return _STARTS_ONE.sub(lambda m: _GOES_ON.sub(r" \\", m.group()), text)


def _candidate(project: Project, path: str, command: CommandLine, changed: frozenset[str]) -> _Candidate | None:
    folder = _folder(project, path, command)
    if folder is None:
        return None
    script = _script(project, folder, command)
    program = program_files(project, script)
    programs = (program | {path}) & changed
    joins = False
    if programs and not command.launcher:
        texts = [project.read(p) or b"" for p in program]
        joins = not any(map(_STARTS_OTHERS.search, texts))
        if joins and not any(map(_JOINS.search, texts)):
            return None
    pasted = with_two_processes(command, joins=joins) if programs else None
    if pasted is None:
        return None
    line = command.span(command.words[0].start, command.words[-1].end).line
    typed, moved = pasted.text, command.target.startswith("/")
    if moved:
        typed = typed.replace(command.target, script)
    text = f"cd {quote(folder)} && {typed}" if folder else typed
    devices = "" if pasted.counted else device_setting(project, script)
    edits = (*pasted.edits, *(_MOVED if moved else ()), *_missing(project, folder, command))
    found = Launch(text, path, line, pasted.counted, tuple(sorted(programs)), pasted.to_fill, edits, devices)
    return _Candidate(order(script, path, line, command, pasted, programs, _above(project, path, line)), programs, found)


def _missing(project: Project, folder: str, command: CommandLine) -> list[str]:
    """The file of a launcher's settings, where the repository has none at that place."""
    named = [f.settled for f in command.launcher_flags if f.field == "config_file"]
    return [f"{name} is not in the repository" for name in named if name and normpath(join(folder, name)) not in project.files]


def _above(project: Project, path: str, line: int) -> str:
    file = project.module(path)
    return "\n".join(file.text.split("\n")[: line - 1]) if isinstance(file, TextFile) else ""


def _folder(project: Project, path: str, command: CommandLine) -> str | None:
    """The folder, seen from the root, from which the command finds its script and most of its other files."""
    best, most = None, -1
    for folder in dict.fromkeys(normpath(f) if f else "" for f in _folders(path, command)):
        at = "" if folder == "." else folder
        if not _script(project, at, command):
            continue
        known = sum(normpath(join(at, w.value)) in project.files for w in command.words if w.value)
        if known > most:
            best, most = at, known
    return best


def _folders(path: str, command: CommandLine) -> Iterator[str]:
    """Where it may have been typed: behind the `cd` above it, at the root, in the file's own folder and those between."""
    above = [dirname(path)]
    while above[-1]:
        above.append(dirname(above[-1]))
    gone_to = _gone_to(path, command)
    if gone_to is not None and gone_to.startswith("/"):
        yield gone_to[1:]
    elif gone_to is not None:
        yield from (join(base, gone_to) for base in reversed(above))
        yield gone_to.partition("/")[2]  # of `cd repository/folder`, behind `git clone`
    yield from reversed(above)


def _gone_to(path: str, command: CommandLine) -> str | None:
    """Where the `cd`s above it in its text lead, with a slash in front from the root; None where the shell decides."""
    if not isinstance(command.source, Passage):
        return None
    place: str | None = None
    for words in commands(command.source.text):
        if words[0].start >= command.words[0].start:
            break
        at = next((i for i, w in enumerate(words) if w.value == "cd"), None)
        if at is not None and at + 2 == len(words):
            place = _joined(place, words[at + 1], path)
    return place


def _joined(place: str | None, word: Word, path: str) -> str | None:
    if word.value is not None:
        return None if word.value.startswith("/") else join(place or "", word.value)
    below = _OF_THE_SCRIPT.match(word.raw)
    return f"/{normpath(join(dirname(path), '.' + below[1]))}" if below else None


def _script(project: Project, folder: str, command: CommandLine) -> str:
    """The project's file that the command starts from there; "" where there is none."""
    if command.module:
        name = command.target.replace(".", "/")
        options = [f"{name}.py", f"{name}/__main__.py"]
    else:
        options = [_of_another_machine(project, folder, command.target) or command.target]
    return next((p for o in options if (p := normpath(join(folder, o))) in project.files and p.endswith(".py")), "")


def _of_another_machine(project: Project, folder: str, target: str) -> str:
    """`src/train.py` of `/any/folder/src/train.py`, typed at the root: the longest end that is a file of the repository."""
    if folder or not target.startswith("/"):
        return ""
    parts = target.strip("/").split("/")
    for i in range(1, len(parts) - 1):
        end = "/".join(parts[i:])
        if end in project.files:
            return end
    return ""
