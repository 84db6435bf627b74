"""Does a function of the project end the process, whatever it is handed: `exit()` at its end, or in the first round of a loop?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.guards.entry_points import EXITS
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEEP = 3  # functions, one called by the other


def always_exits(project: Project, module: SourceModule, function: FunctionNode, depth: int = _DEEP) -> bool:
    """True where a statement that no test lets pass by is `exit()`, or calls a function that does so."""
    return depth > 0 and _exits(project, module, function.body, depth)


def _exits(project: Project, module: SourceModule, block: list[ast.stmt], depth: int) -> bool:
    for statement in block:
        if isinstance(statement, ast.Return):
            return False
        if isinstance(statement, (ast.For, ast.With)) and _exits(project, module, statement.body, depth):
            return True
        if isinstance(statement, (ast.Expr, ast.Assign)) and isinstance(statement.value, ast.Call):
            call = statement.value
            if last(dotted(call.func)) in EXITS:
                return True
            called = called_function(project, module, call)
            if called is not None and always_exits(project, called.module, called.node, depth - 1):
                return True
    return False
