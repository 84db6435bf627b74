"""Loops that all ranks leave together, whatever their shares hold: under `Join`, or after a number of steps."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_JOINS = frozenset({"Join", "join", "join_uneven_inputs"})
_STEPS = lazy(r"(^|_)(steps?|iters?|iterations?|batches|batch_idx|batch_id|i|n|count|idx|updates?)(_|$|\d)")


def is_joined(module: SourceModule, loop: ast.AST) -> bool:
    """True under `with Join([model]):`, `model.join()` and `accelerator.join_uneven_inputs(...)`."""
    blocks = (up for up in module.ancestors(loop) if isinstance(up, (ast.With, ast.AsyncWith)))
    calls = (item.context_expr for block in blocks for item in block.items)
    return any(isinstance(c, ast.Call) and _end(c) in _JOINS for c in calls)


def _end(call: ast.Call) -> str:
    return last(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")


def counts_its_steps(loop: ast.AST) -> bool:
    """True where a test of how many rounds there were leaves the loop: `if step == steps: break`."""
    return any(isinstance(n, ast.If) and _asks_for_steps(n.test) and _leaves(n) for n in walk(loop))


def _leaves(branch: ast.If) -> bool:
    return any(isinstance(n, (ast.Break, ast.Return)) for s in branch.body for n in (s, *walk(s)))


def _asks_for_steps(test: ast.expr) -> bool:
    for part in (test, *walk(test)):
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], (ast.Eq, ast.Gt, ast.GtE)):
            names = (last(dotted(n)) for n in walk(part.left) if isinstance(n, (ast.Name, ast.Attribute)))
            whole = last(dotted(part.left)) if isinstance(part.left, (ast.Name, ast.Attribute)) else ""
            if any(_STEPS.search(name) for name in (whole, *names)):
                return True
    return False
