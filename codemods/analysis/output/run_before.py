"""What has run when a statement begins, and which names have a value by then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.output.natures import values_of
from codemods.files.source import FunctionNode, SourceModule


def run_before(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a function that have run when `statement` begins: those above it, and above the blocks round it."""
    below: ast.AST = statement
    for up in module.ancestors(statement):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(up, name, None)
            if isinstance(block, list) and any(s is below for s in block):
                for before in block:
                    if before is below:
                        break
                    yield before
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def bound_above(module: SourceModule, function: FunctionNode | None, statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """Names bound once, by a statement that has run when `statement` begins, with the value or the tuple they come from."""
    out: list[tuple[str, ast.expr]] = []
    for line in run_before(module, statement):
        if not isinstance(line, (ast.Assign, ast.AnnAssign)) or module.function_of(line) is not function:
            continue
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        if len(targets) != 1 or line.value is None:
            continue
        target = targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        same = isinstance(line.value, ast.Tuple) and isinstance(target, ast.Tuple) and len(line.value.elts) == len(names)
        given = line.value.elts if same and isinstance(line.value, ast.Tuple) else [line.value] * len(names)
        for name, value in zip(names, given, strict=True):
            if isinstance(name, ast.Name) and len(values_of(module, name)) == 1:
                out.append((name.id, value))
    return sorted(out, key=lambda found: found[1].lineno)


def binds(statement: ast.stmt, name: str) -> bool:
    """True where a statement gives a name a value, whichever way it takes."""
    if isinstance(statement, ast.Assign):
        targets = [e for t in statement.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        return any(isinstance(t, ast.Name) and t.id == name for t in targets)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None and isinstance(statement.target, ast.Name) and statement.target.id == name
    if isinstance(statement, ast.If):
        return any(binds(s, name) for s in statement.body) and any(binds(s, name) for s in statement.orelse)
    if isinstance(statement, ast.Try):
        blocks = [statement.body, *(h.body for h in statement.handlers)]
        return all(any(binds(s, name) for s in block) for block in blocks)
    return False
