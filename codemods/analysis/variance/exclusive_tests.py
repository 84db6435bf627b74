"""An exit under `a and rank != 0`, and a collective under `not a` below it: whoever leaves could not have come there anyway."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.branches import Branch, branches_round
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
    return bool(calls) and any(_denies(module, branch, left) for branch in branches_round(module, calls[0]))


def _denies(module: SourceModule, branch: Branch, left: set[str]) -> bool:
    """True for `not a` above the collective, and for the other arm of `a`, where `a` is in `left`."""
    test = branch.test
    if not branch.holds:
        return isinstance(test, ast.Name) and test.id in left and _stays(module, test)
    denied = [p.operand for p in conjuncts(test) if isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.Not)]
    return any(isinstance(d, ast.Name) and d.id in left and _stays(module, d) for d in denied)


def _stays(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that its function binds once: both tests ask for the same."""
    return len(bindings_in(module, module.function_of(name), name.id)) == 1
