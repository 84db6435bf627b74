"""The commands of a job file or a text for people, as a shell would take them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.job_files.command_lines import CommandLine, command_lines
from codemods.files.text_file import DOCUMENT_KINDS, YAML_KINDS, TextFile
from codemods.store.project import Project

_BLOCK = re.compile(r"^(?:(?: {4}|\t)[^\n]*\n?)+", re.M)  # of a Markdown file, indented
_IN_A_LINE = re.compile(
    r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<command>(?:[A-Z_]+=\S+ )*(?:python3?|torchrun|accelerate|deepspeed)[ ][^`\n]+)"
    r"(?P=ticks)(?!`)"
)  # "Run `python train.py`"
_CUT_OFF = re.compile(r"\\[ \t]+(?:#[^\r\n]*)?(?=\r?\n)")  # a line that goes on, for a reader, and not for a shell
_OF_PYTHON = re.compile(
    r"^([ \t]*```[ \t]*)(?:python|py)[ \t]*(?=\r?\n[ \t]*(?:[A-Z_]+=\S+ )*(?:python3?|torchrun|accelerate|deepspeed) )", re.M
)
_OF_A_NOTEBOOK = re.compile(r"^([ \t]*)!(?=[\w./])", re.M)  # `!accelerate launch …`
# Options on lines of their own behind a command, without the backslashes that a shell asks for.
_GOES_ON = re.compile(r"(?<=[^\\\s])[ \t]*(?=\r?\n[ \t]*--\w)")
_STARTS_ONE = re.compile(r"(?:python3?|torchrun|accelerate|deepspeed)[ \t][^\n`]*(?:\r?\n[ \t]*--\w[^\n]*)+")
# `--data <path to data>`, which a shell would take for redirections; `--model {folder of the model}/last`
_PLACEHOLDER = re.compile(r"(?<=[ =])(?:<[A-Za-z][\w .-]*>|\{[A-Za-z][\w .-]*\})")
_BY_WORDS = re.compile(r"(?<=[ =])\{[A-Za-z][\w.-]* [\w .-]*\}")  # no shell has a word for it
# A launcher on a line of its own, and the scripts that it is meant for on the lines below it.
_SHARED = re.compile(
    r"^(?P<launcher>[ \t]*(?:python3? -m torch\.distributed\.(?:launch|run)|torchrun|accelerate launch|deepspeed)"
    r"(?:[ \t]+-[^\n\\]*?)?)[ \t]*\r?\n"
    r"(?P<below>(?:[ \t]*(?:#[^\n]*)?\r?\n|[ \t]*[\w./-]+\.py\b[^\n]*(?:\r?\n|\Z))+)",
    re.M,
)
_SCRIPT_LINE = re.compile(r"^[ \t]*(?=[\w./-]+\.py\b)", re.M)


def written_commands(project: Project, path: str) -> Iterator[CommandLine]:
    """Also those that a reader puts together: options on lines of their own, a launcher above the scripts it is meant for."""
    file = project.module(path)
    if not isinstance(file, TextFile):
        return
    if not path.endswith(YAML_KINDS):
        text = _as_a_script(file.text) if path.endswith(DOCUMENT_KINDS) else _BY_WORDS.sub(_as_named, file.text)
        file = TextFile(path, _CUT_OFF.sub("\\\\", text).rstrip(" \t\r\n\\").encode() + b"\n")
    yield from command_lines(file)
    if path.endswith(DOCUMENT_KINDS):
        for block in _BLOCK.finditer(file.text):
            yield from _below(file.text, block.start(), path, block.group())
        for within in _IN_A_LINE.finditer(file.text):
            text = _PLACEHOLDER.sub(_as_named, within["command"])
            yield from _below(file.text, within.start(), path, f"{text}\n")


def _below(whole: str, start: int, path: str, text: str) -> Iterator[CommandLine]:
    """As a script of its own, whose lines stand where they do in the file."""
    before = "\n" * whole.count("\n", 0, start)
    yield from command_lines(TextFile(f"{path}.sh", (before + text).encode()))


def _as_a_script(text: str) -> str:
    """The commands of a text for people as a shell takes them; each stands in the line in which it stood."""
    text = _SHARED.sub(_under_its_launcher, text)
    text = _OF_PYTHON.sub(r"\1sh", text)  # a command in a block that is said to be Python
    text = _PLACEHOLDER.sub(_as_named, _OF_A_NOTEBOOK.sub(r"\1 ", text))
    return _STARTS_ONE.sub(lambda m: _GOES_ON.sub(r" \\", m.group()), text)


def _as_named(placeholder: re.Match[str]) -> str:
    """`your-path-to-data`."""
    if ".." in placeholder.group():  # `{a..c}` is the shell's
        return placeholder.group()
    words = re.sub(r"[ _]+", "-", placeholder.group()[1:-1])
    return words if words.lower().startswith("your") else f"your-{words}"


def _under_its_launcher(shared: re.Match[str]) -> str:
    """Each script with the launcher above it, in the script's own line."""
    launcher = shared["launcher"].strip()
    if ".py" in launcher:
        return shared.group()
    return "\n" + _SCRIPT_LINE.sub(lambda _: f"{launcher} ", shared["below"])
