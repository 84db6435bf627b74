"""A command as the repository has it, word for word, for the reader to take up where none is shown to test the change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, dirname

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.files.passages import Passage
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

MOST_LINES = 12
LONGEST = 1000
LARGEST = 64 * 1024
# who starts a script gives it these: its own text does not show the command
_GIVEN_TO_THE_SCRIPT = re.compile(r"\$(?:[@*\d]|\{[@*\d])")
_PROMPT = re.compile(r"^[$>%!][ \t]+")


@record
class Quoted:
    """place: `README.md:98`, with the folder that it is typed in where that is another one. text: "" for what is too long, or
    is no command of its own.
    """

    text: str
    place: str


NOTHING = Quoted("", "")


def quoted(project: Project, path: str, command: CommandLine, folder: str) -> Quoted:
    """The text from its first word to its last; the call of its script, where that hands on what it is given."""
    file = project.module(path)
    span = command.span(command.words[0].start, command.words[-1].end)
    if not isinstance(file, TextFile):
        return NOTHING
    rows = file.text.split("\n")[span.line - 1 : span.end_line]
    source = command.source.text[command.words[0].start : command.words[-1].end] if isinstance(command.source, Passage) else ""
    as_read = source if "\n" not in source and rows and source in rows[0] else ""
    text = _PROMPT.sub("", as_read or _between(rows, command.words[0].raw, command.words[-1].raw))
    if _GIVEN_TO_THE_SCRIPT.search(text):
        return next(_calls_of(project, path), NOTHING)
    return Quoted(text, _place(path, span.line, folder))


def _place(path: str, line: int, folder: str) -> str:
    return f"{path}:{line}{f', in {folder}' if folder else ''}"


def _between(rows: list[str], first: str, last: str) -> str:
    """Of whole lines what belongs to the command: a page may have words round it. "" for what is too long to be read."""
    start, end = (rows[0].find(first), rows[-1].rfind(last)) if rows else (-1, -1)
    if start < 0:
        return ""
    rows = [*rows[:-1], rows[-1][: end + len(last)] if end >= 0 else rows[-1].rstrip("` \t\r\\")]
    head, *rest = [rows[0][start:], *rows[1:]]
    text = "\n".join([head.rstrip(), *(f"    {row.strip()}" for row in rest)]).strip()
    is_short = len(rows) <= MOST_LINES and len(text) <= LONGEST
    return text if is_short and "`" not in text else ""


def _calls_of(project: Project, script: str) -> Iterator[Quoted]:
    """Of a shell script, by its name, in other scripts and in texts for people; a script before a text, the plain ones first."""
    name = basename(script)
    starts = rf"(?:(?:bash|sh)[ \t]+)?([\w./-]*(?<![\w.-]){re.escape(name)})"
    called = re.compile(rf"^[ \t]*(?:\$ )?({starts}[ \t]+(?:[^\n]*\\\r?\n)*[^\n]+)", re.M)
    for path in sorted(project.files, key=lambda p: (not p.endswith(SHELL_KINDS), p.count("/"), p)):
        data = project.read(path) or b"" if path.endswith((*SHELL_KINDS, *DOCUMENT_KINDS)) and path != script else b""
        if name.encode() not in data or len(data) > LARGEST:
            continue
        text = data.decode("utf-8", "replace")
        for match in called.finditer(text):
            rows = match[1].rstrip().split("\n")
            found = _between(rows, rows[0].split()[0], rows[-1].split()[-1])
            if found and not _GIVEN_TO_THE_SCRIPT.search(found):
                here = dirname(match[2].removeprefix("./"))
                yield Quoted(found, _place(path, text.count("\n", 0, match.start(1)) + 1, "" if here else dirname(script)))
