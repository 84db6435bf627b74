"""An exit under `a and rank != 0`, and a collective under `not a` below it: whoever leaves could not have come there anyway."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.conditions import conjuncts
from codemods.analysis.variance.mismatches import Mismatch
from codemods.files.source import SourceModule


def excludes(module: SourceModule, found: Mismatch) -> bool:
    """True where the test of an exit holds a condition that a test round the collective denies, of a name that stays as it is."""
    if found.leaving is None or found.meeting is None or not isinstance(found.node, ast.If):
        return False
    left = {ast.unparse(part) for part in conjuncts(found.node.test)}
    line = found.meeting.steps[0].line
    calls = [c for c in module.nodes(ast.Call) if c.lineno == line]
    return bool(calls) and any(_denies(module, up, below, left) for up, below in _tests_round(module, calls[0]))


def _tests_round(module: SourceModule, call: ast.Call) -> list[tuple[ast.If, ast.AST]]:
    out: list[tuple[ast.If, ast.AST]] = []
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.If) and below is not up.test:
            out.append((up, below))
        below = up
    return out


def _denies(module: SourceModule, up: ast.If, below: ast.AST, left: set[str]) -> bool:
    """True for `not a` above the collective, and for the other arm of `a`, where `a` is in `left`."""
    if any(below is s for s in up.orelse):
        return isinstance(up.test, ast.Name) and up.test.id in left and _stays(module, up.test)
    denied = [p.operand for p in conjuncts(up.test) if isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.Not)]
    return any(isinstance(d, ast.Name) and d.id in left and _stays(module, d) for d in denied)


def _stays(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that its function binds once: both tests ask for the same."""
    return len(bindings_in(module, module.function_of(name), name.id)) == 1
