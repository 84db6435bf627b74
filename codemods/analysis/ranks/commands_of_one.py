"""Commands of a program with several, `@cli.command()`, that start no processes, beside others that do."""

from __future__ import annotations

import ast

from codemods.analysis.job_files.documented_starts import other_starts, script_names, starts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.program_starts import start_in_reach
from codemods.analysis.ranks.reached_scopes import reached
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_PARSERS = frozenset({"click", "typer", "rich_click", "asyncclick"})
_MOST_CALLS, _DEEPEST = 6, 3


def is_of_commands_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a command that is no start of processes, and in what only such commands call.

    A program that a launcher starts has several processes, whatever the command.
    """
    return _is(project, module, node, _DEEPEST)


def _is(project: Project, module: SourceModule, node: ast.AST, depth: int) -> bool:
    function = _outermost(module, node)
    if function is None:
        return False
    if _is_command(module, function):
        return project.keep(("command of one", module.path, function.lineno), lambda: _starts_none(project, module, function))
    if not depth or function.decorator_list or isinstance(module.parent(function), ast.ClassDef):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not 0 < len(used.calls) <= _MOST_CALLS:
        return False
    return all(_is(project, s.module, s.call, depth - 1) for s in used.calls)


def _outermost(module: SourceModule, node: ast.AST) -> FunctionNode | None:
    function = module.function_of(node)
    while function is not None and (outer := module.function_of(function)) is not None:
        function = outer
    return function


def _is_command(module: SourceModule, function: FunctionNode) -> bool:
    """True for what a command line alone calls: click and typer run one command a process."""
    if not any(name.partition(".")[0] in _PARSERS for name in module.imported_modules):
        return False
    made = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(last(dotted(d)) == "command" for d in made) and not module.reads_of(function.name)


def _starts_none(project: Project, module: SourceModule, command: FunctionNode) -> bool:
    names = script_names(module.path)
    if any(s.several and s.script in (*names, "") and s.path in ("", module.path) for s in starts(project)):
        return False
    if other_starts(project, module.path):
        return False
    return start_in_reach(project, reached(project, module, None, entries=[command])) is Start.ONE
