"""The experiment of a Lightning logger, which is a dummy on every rank but 0: each of its methods gives back None there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.analysis.output.natures import values_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record

_TESTS = (ast.If, ast.IfExp, ast.While, ast.Assert)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@record
class TakenFromNone:
    """call: `experiment.use_artifact(…)`. taken: what is taken of what it gives back, which is None on the other ranks."""

    call: ast.Call
    taken: ast.Attribute | ast.Subscript


def is_experiment(module: SourceModule, node: ast.expr) -> bool:
    """True for `….experiment` of a logger, be it written there or bound to a name."""
    if isinstance(node, ast.Attribute):
        return _is_written(node)
    values = values_of(module, node) if isinstance(node, ast.Name) else ()
    return bool(values) and all(_is_written(v) for v in values)


def taken_from_none(module: SourceModule) -> Iterator[TakenFromNone]:
    """The first thing that is taken of each result, also by a name that holds nothing else; not where it is tested or tried."""
    for call in module.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or not is_experiment(module, call.func.value):
            continue
        taken = _taken(module, call) or _taken_by_name(module, call)
        if taken is not None and not _is_tried(module, taken):
            yield TakenFromNone(call, taken)


def _is_written(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "experiment" and _is_logger(node.value)


def _is_logger(node: ast.expr) -> bool:
    """True for `logger`, `self.logger`, `trainer.logger`, `wandb_logger`, `loggers[0]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return "logger" in last(dotted(node)).lower()


def _taken(module: SourceModule, node: ast.expr) -> ast.Attribute | ast.Subscript | None:
    up = module.parent(node)
    return up if isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is node and isinstance(up.ctx, ast.Load) else None


def _taken_by_name(module: SourceModule, call: ast.Call) -> ast.Attribute | ast.Subscript | None:
    statement = module.parent(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return None
    name = statement.targets[0].id
    around = module.function_of(call) or module.tree
    nodes = list(walk(around))
    if any(_asks(n, name) for n in nodes):
        return None
    for read in (n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)):
        taken = _taken(module, read)
        if taken is not None and values_of(module, read) == [call] and (module.function_of(read) or module.tree) is around:
            return taken
    return None


def _asks(node: ast.AST, name: str) -> bool:
    """True for a test by the name: whoever asks knows that there may be none."""
    tests = [node.test] if isinstance(node, _TESTS) else node.values if isinstance(node, ast.BoolOp) else []
    return any(isinstance(n, ast.Name) and n.id == name for test in tests for n in (test, *walk(test)))


def _is_tried(module: SourceModule, node: ast.AST) -> bool:
    for up in module.ancestors(node):
        if isinstance(up, (ast.Try, ast.With)) and (isinstance(up, ast.Try) or "suppress" in module.text_of(up.items[0])):
            return True
        if isinstance(up, _SCOPES):
            return False
    return False
