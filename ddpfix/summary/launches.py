"""The repository's own commands that start a changed program: from job files, Makefiles and READMEs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath
from shlex import quote

from codemods.analysis.job_files.command_lines import CommandLine, command_lines
from codemods.analysis.loading.same_program import whole_program
from codemods.files.passages import Passage
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix.summary.context import Launch
from ddpfix.summary.two_processes import with_two_processes

KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
LARGEST = 64 * 1024
DEEPEST = 3
MOST = 3

_STARTERS = (b"python", b"torchrun", b"accelerate", b"deepspeed", b"PYTHON")
# What shows that a script started with plain `python` starts further processes, and what that it joins those of a launcher.
_STARTS_OTHERS = re.compile(
    rb"mp\.spawn|multiprocessing\.spawn|start_processes|Fabric\(|LightningCLI\(|lightning[\s\S]*?\bTrainer\("
)
_JOINS = re.compile(rb"init_process_group|Accelerator\(|PartialState\(|deepspeed\.|\btransformers\b")
_TRAINS, _MAIN, _NO_TRAINING = (
    re.compile(words, re.I)
    for words in (
        r"train|tun(?:e|ing)|\bfit|sft",
        r"^(?:main|run)",
        r"eval|test|infer|predict|sampl|generat|demo|export|convert|prepar|preprocess|bench|score|plot",
    )
)
_BLOCK = re.compile(r"^(?:(?: {4}|\t)[^\n]*\n?)+", re.M)  # of a Markdown file, indented
_OF_THE_SCRIPT = re.compile(r".*\bdirname\b.*(?:\$0|\$\{?BASH_SOURCE\b).*?((?:/[\w.-]+)*)/?\"?$")


@record
class _Candidate:
    """order: the best first. programs: changed files that it comes to."""

    order: tuple[object, ...]
    programs: frozenset[str]
    launch: Launch


def launches(
    files: Iterable[str], read: Callable[[str], bytes | None], changed: Mapping[str, bytes]
) -> tuple[Launch, ...]:
    """At most a few commands that start programs with a changed file, the one that trains first; each comes to another file.

    changed: path -> the new bytes, in which a command stands that was fixed itself.
    """
    project = Project(files, read).with_overlay(changed)
    found = sorted(_candidates(project, frozenset(changed)), key=lambda c: c.order)
    out: list[Launch] = []
    seen: set[str] = set()
    for candidate in found:
        if not candidate.programs <= seen and candidate.order[0] == found[0].order[0]:
            out.append(candidate.launch)
            seen |= candidate.programs
    return tuple(out[:MOST])


def _candidates(project: Project, changed: frozenset[str]) -> Iterator[_Candidate]:
    for path in sorted(p for p in project.files if p.endswith(KINDS) and p.count("/") <= DEEPEST and not p.startswith(".")):
        data = project.read(path) or b""
        if len(data) <= LARGEST and any(word in data for word in _STARTERS):
            for command in _commands(project, path):
                if (candidate := _candidate(project, path, command, changed)) is not None:
                    yield candidate


def _commands(project: Project, path: str) -> Iterator[CommandLine]:
    file = project.module(path)
    if not isinstance(file, TextFile):
        return
    yield from command_lines(file)
    if path.endswith(DOCUMENT_KINDS):
        for block in _BLOCK.finditer(file.text):  # as a script of its own, whose lines stand where they do in the file
            before = "\n" * file.text.count("\n", 0, block.start())
            yield from command_lines(TextFile(f"{path}.sh", (before + block.group()).encode()))


def _candidate(project: Project, path: str, command: CommandLine, changed: frozenset[str]) -> _Candidate | None:
    folder = _folder(project, path, command)
    if folder is None:
        return None
    script = _script(project, folder, command)
    program = whole_program(project, script)
    programs = program & changed or (frozenset({path}) & changed)
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
    text = f"cd {quote(folder)} && {pasted.text}" if folder else pasted.text
    launch = Launch(text, path, line, pasted.counted)
    order = (_kind(script, command), not pasted.counted, not path.endswith(DOCUMENT_KINDS), path.count("/"), path, line)
    return _Candidate(order, programs, launch)


def _kind(script: str, command: CommandLine) -> int:
    """What the program is for, training first."""
    name = basename(dirname(script) if basename(script) == "__main__.py" else script)
    if _NO_TRAINING.search(name) or any(_NO_TRAINING.match(flag.field) for flag in command.flags if not flag.values):
        return 3
    return 0 if _TRAINS.search(name) else 1 if _MAIN.search(name) else 2


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
        options = [command.target]
    return next((p for o in options if (p := normpath(join(folder, o))) in project.files and p.endswith(".py")), "")
