"""Ways of a value that no run takes: one step stands under `metric == "bleu"`, another under `metric == "loss"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.variance.values import Link
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_STEPS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_Asked = tuple[str, int, str]  # file, line of the function, name


def contradicts_itself(project: Project, chain: tuple[Link, ...]) -> bool:
    """True where two steps need other values of one name, which its function binds once."""
    wanted: dict[_Asked, object] = {}
    for link in chain if len(chain) > 1 else ():
        module = project.module(link.path)
        for step in _steps_at(module, link.line) if module is not None else ():
            assert module is not None
            function = module.function_of(step)
            for name, value in _equalities(module, step):
                asked = (module.path, getattr(function, "lineno", 0), name)
                if wanted.setdefault(asked, value) != value and _stays(module, function, name):
                    return True
    return False


def _steps_at(module: SourceModule, line: int) -> list[ast.stmt]:
    return [n for kind in _STEPS for n in module.nodes(kind) if n.lineno == line]


def _equalities(module: SourceModule, step: ast.stmt) -> Iterator[tuple[str, object]]:
    """What the tests round a step, in its function, ask of names."""
    below: ast.AST = step
    for up in module.ancestors(step):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(up, ast.If) and any(below is s for s in up.body):
            joined = isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And)
            for part in up.test.values if joined and isinstance(up.test, ast.BoolOp) else [up.test]:
                if isinstance(part, ast.Compare) and isinstance(part.left, ast.Name) and isinstance(part.ops[0], ast.Eq):
                    if len(part.ops) == 1 and isinstance(part.comparators[0], ast.Constant):
                        yield part.left.id, part.comparators[0].value
        below = up


def _stays(module: SourceModule, function: FunctionNode | None, name: str) -> bool:
    return len(bindings_in(module, function, name)) == 1
