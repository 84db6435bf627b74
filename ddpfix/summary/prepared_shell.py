"""What a script does for Python above a command: files of the repository that it sources, the path of Python that it exports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.files.passages import Passage
from codemods.files.shell_words import Word, commands
from codemods.runtime.record import record
from codemods.store.project import Project

_SETS = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=", re.M)
_HERE = re.compile(r"\$\(pwd\)|`pwd`|\$\{?(?:PWD|PYTHONPATH|HOME|USER)\b\}?")
_UNKNOWN = re.compile(r"[$`*?~]")


@record
class Prepared:
    """sourced: `source path.sh`, to be typed first. names: variables that these files set. path: `PYTHONPATH=…`, "" for none."""

    sourced: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    path: str = ""


def prepared(project: Project, folder: str, command: CommandLine) -> Prepared:
    """As seen from the folder in which the command is typed."""
    sourced, names, path = [], set(), ""
    for words in _above(command):
        if (file := _sourced(words)) and (text := project.read(normpath(join(folder, file)))) is not None:
            sourced.append(f"source {file}")
            names |= set(_SETS.findall(text.decode("utf-8", "replace")))
        elif words[0].raw == "export" and len(words) == 2 and words[1].raw.startswith("PYTHONPATH="):
            known = words[1].value is not None or not _UNKNOWN.search(_HERE.sub("", words[1].raw))
            path = words[1].raw if known else path
    return Prepared(tuple(dict.fromkeys(sourced)), frozenset(names), path)


def sourced_files(command: CommandLine) -> Iterator[str]:
    """The files that its script sources above it, as they are written."""
    return filter(None, map(_sourced, _above(command)))


def _above(command: CommandLine) -> Iterator[tuple[Word, ...]]:
    if isinstance(command.source, Passage):
        yield from (words for words in commands(command.source.text) if words[0].start < command.words[0].start)


def _sourced(words: tuple[Word, ...]) -> str:
    named = words[1].value if len(words) > 1 and words[0].raw in ("source", ".") else None
    if named is None:
        return ""
    return named if dirname(named) else f"./{named}"
