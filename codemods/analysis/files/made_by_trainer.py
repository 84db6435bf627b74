"""Folders that the Trainer of transformers has made: its constructor makes `output_dir` on the process that saves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts, find_class
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.positions import above
from codemods.files.source import SourceModule
from codemods.store.project import Project

_WAITS = frozenset({"train", "evaluate", "predict"})  # they gather over the ranks
_ARGS = 1  # the place of the arguments among those of the constructor


def is_made_by_trainer(project: Project, module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
    """True for `args.output_dir` behind a Trainer of these arguments, and a call of it in which the ranks meet."""
    if not isinstance(path, ast.Attribute) or path.attr != "output_dir" or not module.holds(b"Trainer"):
        return False
    met, holder = "", dotted(path.value)
    for statement in _run_above(module, node):
        if isinstance(statement, ast.Assign) and any(dotted(t) == holder for t in statement.targets):
            return False
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
            continue
        if isinstance(value.func, ast.Attribute) and value.func.attr in _WAITS:
            met = dotted(value.func.value) or met
        elif met and isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == met:
            return _is_trainer(project, module, value) and _given(value) == holder
    return False


def _run_above(module: SourceModule, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements above a place in its block and in those round it, nearest first, up to its function."""
    below = node
    for up in module.ancestors(node):
        yield from reversed(above(module, below))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _given(made: ast.Call) -> str:
    """The arguments that a Trainer is made with, as they are written."""
    named = next((k.value for k in made.keywords if k.arg == "args"), None)
    return dotted(named if named is not None else made.args[_ARGS] if len(made.args) > _ARGS else None)


def _is_trainer(project: Project, module: SourceModule, made: ast.Call) -> bool:
    name = qualified(module, made.func)
    if family(name) == "transformers":
        return last(name).endswith("Trainer")
    site = find_class(project, module, dotted(made.func))
    return site is not None and class_facts(project, site.module, site.node).is_a(Role.HF_TRAINER)
