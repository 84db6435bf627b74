"""The files that a program imports by names that stand in the settings of a command: `type: trainers.face::FaceTrainer`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import join, normpath

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.analysis.loading.same_program import whole_program
from codemods.store.project import Project
from ddpfix.summary.needed_options import Program

_IMPORTS = re.compile(rb"\bimport_module\(|\b__import__\(|\blocate\(")
_SETTINGS = re.compile(r"(?:.*=)?([\w./-]+\.(?:ya?ml|json))")
_DOTTED = re.compile(r"(?<![\w./-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/-])")
_LARGEST = 64 * 1024


def named_in_settings(program: Program, script: str, folder: str, command: CommandLine) -> frozenset[str]:
    """What they come to; nothing for a program that imports by no name."""
    project = program.project
    if not any(_IMPORTS.search(project.read(path) or b"") for path in program.files):
        return frozenset()
    found: set[str] = set()
    for path in _settings(program, folder, command):
        text = (project.read(path) or b"")[:_LARGEST].decode("utf-8", "replace")
        for name in dict.fromkeys(_DOTTED.findall(text)):
            found |= _named(project, script, name)
    return frozenset(found)


def _settings(program: Program, folder: str, command: CommandLine) -> Iterator[str]:
    """Of the command, and those that its options have where it does not give them."""
    given = [word.text for word in command.words]
    defaults = [option.default or "" for option in program.options.values()]
    for text in dict.fromkeys((*given, *defaults)):
        path = normpath(join(folder, match[1])) if (match := _SETTINGS.fullmatch(text)) else ""
        if path in program.project.files:
            yield path


def _named(project: Project, script: str, name: str) -> frozenset[str]:
    resolved = project.resolve(name, script)
    return whole_program(project, resolved.path) if resolved is not None else frozenset()
