"""Models that every rank puts into eval mode, in the midst of the training, and rank 0 alone back into train mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.guards.guard_place import comments_above, comments_inside
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.whole_body import is_idle
from codemods.api.findings import Edit, InsertAfter, RemoveStatement
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@record
class LeftMode:
    """node: `model.train()` of rank 0, under `test`. evaluates: the `model.eval()` of all ranks. edits: none without a repair."""

    node: ast.Call
    name: str
    test: ast.If
    evaluates: ast.Call
    edits: tuple[Edit, ...]


def left_modes(project: Project, module: SourceModule) -> Iterator[LeftMode]:
    if not module.holds(b".eval()") or not module.holds(b".train("):
        return
    for call in module.calls_named("train"):
        name = _switched(call)
        guard = next(iter(guards_over(module, call, project=project)), None) if name else None
        if guard is None or guard.ranks is not Ranks.ZERO or not isinstance(guard.node, ast.If) or guard.kind != "if":
            continue
        evaluates = _of_all(project, module, guard.node, name)
        loop = _loop_round(module, evaluates) if evaluates is not None else None
        if evaluates is None or loop is None or _all_train(project, module, loop, name):
            continue
        function = module.function_of(call)
        named = function is not None and function.name == "train"  # `net.train()` reads like a call of it
        if named or function is None or ranks_entering(project, module, function) is Ranks.ALL:
            yield LeftMode(call, name, guard.node, evaluates, tuple(_edits(module, call, guard.node)))


def _switched(call: ast.Call) -> str:
    """The model of `model.train()`, "" for another call."""
    if not isinstance(call.func, ast.Attribute) or call.keywords or len(call.args) > 1:
        return ""
    if call.args and not (isinstance(call.args[0], ast.Constant) and call.args[0].value is True):
        return ""
    return dotted(call.func.value)


def _of_all(project: Project, module: SourceModule, test: ast.If, name: str) -> ast.Call | None:
    """The last `model.eval()` of all ranks above the test, in its block or one round it."""
    found: list[ast.Call] = []
    for call in module.calls_named("eval"):
        statement = module.statement_of(call)
        if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != name or call.lineno > test.lineno:
            continue
        over = module.parent(statement)
        inside = over is module.parent(test) or any(up is over for up in module.ancestors(test))
        if inside and module.function_of(call) is module.function_of(test):
            if not ranks_at(module, call, project=project).some:
                found.append(call)
    return max(found, key=lambda c: c.lineno, default=None)


def _loop_round(module: SourceModule, call: ast.Call) -> ast.stmt | None:
    """The innermost loop round the call, where it trains."""
    for up in module.ancestors(call):
        if isinstance(up, _LOOPS):
            names = {n.func.attr for n in walk_scope(up) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
            return up if names & {"backward", "manual_backward"} else None
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _all_train(project: Project, module: SourceModule, loop: ast.stmt, name: str) -> bool:
    """True where all ranks go back in each round, whoever did it before."""
    calls = (n for n in walk_scope(loop) if isinstance(n, ast.Call))
    return any(_switched(c) == name and dotted(c.func) == f"{name}.train" and not ranks_at(module, c, project=project).some
               for c in calls)  # fmt: skip


def _edits(module: SourceModule, call: ast.Call, test: ast.If) -> Iterator[Edit]:
    """The call behind the test, where it is the last that stands there."""
    statement = module.statement_of(call)
    if not is_idle(test.orelse) or not module.is_whole(test) or len(test.body) < 2 or test.body[-1] is not statement:
        return
    yield RemoveStatement(module.path, module.span(statement))
    said = [*comments_above(module, statement), *comments_inside(module, statement)]
    yield InsertAfter(module.path, module.span(test), "\n".join([*(f"# {text}" for text in said), module.text_of(call)]))
