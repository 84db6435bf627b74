"""Changed programs that no command of the repository starts, by their own paths; nothing shows that they start so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import users_by_step
from codemods.analysis.job_files.command_lines import CommandLine, command_lines
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS, TextFile
from codemods.store.project import Project
from ddpfix.summary.launch_order import is_no_training, trains

_INSIDE_A_PACKAGE = re.compile(rb"^[ \t]*from[ \t]+\.", re.M)
_AT_THE_TOP = (b"parse_args", b"init_process_group", b"main")
_MOST = 8


def made_commands(project: Project, path: str) -> Iterator[tuple[str, CommandLine]]:
    """(the script, a command) for the programs that come to the file, the likeliest first."""
    for script in _programs(project, path):
        text = " ".join(("python", *_target(project, script)))
        for command in command_lines(TextFile(f"{script}.sh", f"{text}\n".encode())):
            yield script, command


def _programs(project: Project, path: str) -> list[str]:
    if _is_program(project, path):
        return [path]
    above = (user for step in users_by_step(project, path, is_test_file) for user in step)
    found = [p for p in dict.fromkeys(above) if _is_program(project, p) and path in whole_program(project, p)]
    return sorted(found, key=lambda p: (is_no_training(p), not trains(p), p.count("/"), p))[:_MOST]


def _is_program(project: Project, path: str) -> bool:
    data = project.read(path) or b""
    if not path.endswith(PYTHON_KINDS) or is_test_file(path) or not any(word in data for word in (b"__name__", *_AT_THE_TOP)):
        return False
    module = project.module(path)
    return isinstance(module, SourceModule) and any(is_main_block(s) or _does_work(s) for s in module.tree.body)


def _does_work(statement: ast.stmt) -> bool:
    """True for `args = parser.parse_args()` outside any function."""
    if not isinstance(statement, (ast.Assign, ast.Expr)) or not isinstance(statement.value, ast.Call):
        return False
    return last(dotted(statement.value.func)).encode() in _AT_THE_TOP


def _target(project: Project, script: str) -> tuple[str, ...]:
    """A file that imports from the package round it is started as a module."""
    if "/" in script and _INSIDE_A_PACKAGE.search(project.read(script) or b""):
        return "-m", script.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
    return (script,)


def import_command(path: str) -> str:
    """What tries the imports of a file that no program comes to."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    below = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    if not all(part.isidentifier() for part in below):
        return ""
    first = "PYTHONPATH=src " if len(below) < len(parts) else ""
    return f"{first}python -c 'import {'.'.join(below)}'" if basename(path) else ""
