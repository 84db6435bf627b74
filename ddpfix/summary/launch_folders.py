"""Which file of the repository a command starts, and the folder in which it has to be typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.files.passages import Passage
from codemods.files.shell_words import Word, commands
from codemods.store.project import Project
from ddpfix.summary.prepared_shell import sourced_files

_OF_THE_SCRIPT = re.compile(r".*\bdirname\b.*(?:\$0|\$\{?BASH_SOURCE\b).*?((?:/[\w.-]+)*)/?\"?$")
_BELOW_A_VARIABLE = re.compile(r"\$\{?\w+\}?/([\w./-]+)$")  # `$BIN/train.py`


def folder_of(project: Project, path: str, command: CommandLine) -> str | None:
    """The folder, seen from the root, from which the command finds its script and most of its other files."""
    best, most = None, -1
    for folder in dict.fromkeys(normpath(f) if f else "" for f in _folders(path, command)):
        at = "" if folder == "." else folder
        if not script_of(project, at, command):
            continue
        named = [*(w.value for w in command.words if w.value), *sourced_files(command)]
        known = sum(normpath(join(at, name)) in project.files for name in named)
        if known > most:
            best, most = at, known
    return best if best is not None else _only_one(project, command)


def script_of(project: Project, folder: str, command: CommandLine) -> str:
    """The project's file that the command starts from there; "" where there is none."""
    if command.module:
        name = command.target.replace(".", "/")
        options = [f"{name}.py", f"{name}/__main__.py"]
    elif below := _BELOW_A_VARIABLE.match(command.target):
        return _ending(project, below[1])
    else:
        options = [_of_another_machine(project, folder, command.target) or command.target]
    return next((p for o in options if (p := normpath(join(folder, o))) in project.files and p.endswith(".py")), "")


def _only_one(project: Project, command: CommandLine) -> str | None:
    """The folder of the only script of that name, for a text that does not say where its commands are typed."""
    target = f"{command.target.replace('.', '/')}.py" if command.module else normpath(command.target)
    if not re.fullmatch(r"[\w][\w./-]*\.py", target) or not (found := _ending(project, target)):
        return None
    return found.removesuffix(target).rstrip("/")


def _ending(project: Project, end: str) -> str:
    found = [path for path in project.files if path == end or path.endswith(f"/{end}")]
    return found[0] if len(found) == 1 else ""


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
