"""Which call leads to what another function does with a file, and which functions do nothing else."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_flow import steps_in
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def leading_to(
    project: Project, module: SourceModule, statement: ast.stmt, use: ast.AST
) -> tuple[SourceModule, ast.expr] | None:
    """The call in a statement that leads to a use in another function; None where the use itself stands there."""
    calls = [n for n in walk(statement) if isinstance(n, ast.Call)]
    if any(n is use for n in calls):
        return None
    leading = [c for c in calls if any(step.call is use for step in steps_in(project, module, [c]))]
    return (module, leading[-1]) if leading else None


def is_all_of(function: FunctionNode | None, statement: ast.stmt | None) -> bool:
    """True for `def save_on_master(*args): if is_main(): torch.save(*args)`: who calls it has to wait."""
    body = function.body if function is not None else []
    said = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) if body else False
    return body[1 if said else 0 :] == [statement] and not getattr(statement, "orelse", None)
