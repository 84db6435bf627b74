"""Wrappers that rank 0 alone takes off in the midst of the training: `model = accelerator.unwrap_model(model)` to save it.

From the next round on it trains the bare model, and waits for nobody; the others wait for it in their gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.names import dotted
from codemods.analysis.positions import is_in_a_loop, position
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_STEPS = frozenset({"backward", "manual_backward"})


@record
class TakenOff:
    """node: the statement, under `guard`. trains: the call of the model in the loop round it, which every rank makes."""

    node: ast.Assign
    name: str
    guard: Guard
    trains: ast.Call


def taken_off(project: Project, module: SourceModule) -> Iterator[TakenOff]:
    """Where rank 0 binds the name of the wrapped model to the bare one, and goes round the training loop with it."""
    if not module.holds(b"unwrap_model(") and not module.holds(b".module"):
        return
    for assign in module.nodes(ast.Assign):
        name = _bared(project, module, assign)
        if not name or not is_in_a_loop(module, assign):
            continue
        guard = next(iter(guards_over(module, assign, project=project)), None)
        if guard is None or guard.ranks not in _OF_ZERO or guard.kind != "if":
            continue
        trains = _trained_above(module, guard.node, name)
        if trains is not None and goes_round_with(module, assign):
            yield TakenOff(assign, name, guard, trains)


def _bared(project: Project, module: SourceModule, assign: ast.Assign) -> str:
    """The name that is bound to the bare model of itself; "" for any other assignment."""
    name, value = dotted(assign.targets[0]) if len(assign.targets) == 1 else "", assign.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "unwrap_model":
        given = dotted(value.args[0]) if value.args else ""
        return name if given == name and is_accelerator(project, module, value.func.value) else ""
    return name if isinstance(value, ast.Attribute) and value.attr == "module" and dotted(value.value) == name else ""


def _trained_above(module: SourceModule, guard: ast.AST, name: str) -> ast.Call | None:
    """A call of the model in a loop round the test which trains it; None where the loop binds the name anew, too."""
    for up in module.ancestors(guard):
        if isinstance(up, _LOOPS):
            nodes = list(walk_scope(up))
            calls = [n for n in nodes if isinstance(n, ast.Call)]
            steps = any(isinstance(c.func, ast.Attribute) and c.func.attr in _STEPS for c in calls)
            named = (n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) == name)
            bound = [n for n in named if isinstance(n.ctx, ast.Store)]
            made = next((c for c in calls if dotted(c.func) == name and not _is_inside(module, c, guard)), None)
            if steps and made is not None:
                return made if len(bound) == 1 else None
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _is_inside(module: SourceModule, node: ast.AST, outer: ast.AST) -> bool:
    return any(up is outer for up in module.ancestors(node))


def goes_round_with(module: SourceModule, statement: ast.stmt) -> bool:
    """False where the round may be the last: behind a `break` or `return` in a block round it, or under a test of its number."""
    below: ast.AST = statement
    tests: list[ast.expr] = []
    for up in module.ancestors(statement):
        place = position(module, below)
        if place is not None and leaves(place.block[place.index :]):
            return False
        if isinstance(up, ast.If):
            tests.append(up.test)
        if isinstance(up, _LOOPS):
            return not any(_may_be_of_the_last(test, up) for test in tests)
        below = up
    return False


def _may_be_of_the_last(test: ast.expr, loop: ast.stmt) -> bool:
    """True for `epoch == args.epochs - 1` and the like; `epoch % 5 == 0` comes again."""
    counts = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    for compared in (n for n in walk(test) if isinstance(n, ast.Compare)):
        asked = {n.id for n in walk(compared) if isinstance(n, ast.Name)}
        again = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(compared))
        if not again and (asked & counts or isinstance(loop, ast.While)) and not isinstance(compared.ops[0], (ast.Is, ast.IsNot)):
            return True
    return False
