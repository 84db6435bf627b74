"""Options of a command line that a keyword beside `Trainer.from_argparse_args(args, …)` goes before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted
from codemods.analysis.trainer.lightning_trainers import is_trainer
from codemods.files.source import SourceModule, walk
from codemods.files.text_file import DOCUMENT_KINDS, IMAGE_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

_KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS, *IMAGE_KINDS)


@record
class Overridden:
    """keyword: what counts. given: the commands that give the option another value, with the flag. all: every command that starts
    the program gives the option.
    """

    call: ast.Call
    keyword: ast.keyword
    given: tuple[tuple[CommandLine, Flag], ...]
    all: bool

    @property
    def place(self) -> tuple[str, int]:
        command, flag = self.given[0]
        return command.file.path, command.span_of(flag).line


def overridden(project: Project, module: SourceModule) -> Iterator[Overridden]:
    """The keywords of the file that go before what some command gives."""
    calls = [c for c in module.calls_named("from_argparse_args") if _is_of_trainer(module, c)]
    commands = _commands(project, module) if calls else ()
    for call in calls if commands else ():
        for keyword in call.keywords:
            if keyword.arg is None or _is_made_of_options(module, call, keyword.value):
                continue
            flags = [(c, f) for c in commands if (f := c.flag(keyword.arg)) is not None]
            differ = tuple((c, f) for c, f in flags if _differs(keyword.value, f))
            if differ:
                yield Overridden(call, keyword, differ, len(flags) == len(commands))


def _is_of_trainer(module: SourceModule, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and is_trainer(module, call.func.value) and len(call.args) == 1


def _is_made_of_options(module: SourceModule, call: ast.Call, value: ast.expr) -> bool:
    """True where the value may hold what the command line gave."""
    if isinstance(value, ast.Constant):
        return False
    options = dotted(call.args[0]).partition(".")[0]
    names = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    return not options or options in names or not isinstance(value, ast.Call) or any(not _is_imported(module, n) for n in names)


def _is_imported(module: SourceModule, name: str) -> bool:
    return name in module.imports


def _differs(value: ast.expr, flag: Flag) -> bool:
    """False where the command asks for what the keyword says, and where its value is not shown."""
    if flag.value is None and (flag.values or flag.joined):
        return False
    if not isinstance(value, ast.Constant):
        return True
    given = "true" if flag.value is None else flag.value.lower()
    return given != str(value.value).lower() and not _same_number(given, value.value)


def _same_number(given: str, value: object) -> bool:
    try:
        return isinstance(value, (int, float)) and float(given) == float(value)
    except ValueError:
        return False


def _commands(project: Project, module: SourceModule) -> tuple[CommandLine, ...]:
    """The commands that start a program with the file in it."""
    found: list[CommandLine] = []
    paths = {p for word in (b"python", b".py") for p in project.files_containing(word, kinds=_KINDS)}
    for path in sorted(paths):
        file = project.module(path) if not is_test_file(path) else None
        for command in command_lines(file) if isinstance(file, TextFile) else ():
            script = script_of(project, command)
            if script is not None and module.path in whole_program(project, script):
                found.append(command)
    return tuple(found)
