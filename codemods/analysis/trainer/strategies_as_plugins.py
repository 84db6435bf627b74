"""A strategy that is handed over as a plug-in past the call of the Trainer: `options["plugins"] = DDPPlugin()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.trainer.lightning_trainers import trainer_calls
from codemods.analysis.trainer.strategy_plugins import in_plugins
from codemods.files.source import SourceModule
from codemods.store.project import Project

_KEY = "plugins"
_ADDS = frozenset({"append", "insert"})
_KEEPS = frozenset({"setdefault", "update", "dict"})
_STEPS = 4


def handed_past_trainer(project: Project, module: SourceModule, made: ast.Call) -> ast.AST | None:
    """The place that gives what is made to `plugins`, of which no call of the Trainer is seen to take it; None for none."""
    own = {
        id(k)
        for call in trainer_calls(project, module)
        for k in call.keywords
        if k.arg == _KEY and ((found := in_plugins(module, k.value)).strategy is not None or found.several)
    }
    return next((place for place in _places(module, made, _STEPS) if id(place) not in own), None)


def _places(module: SourceModule, node: ast.expr, steps: int) -> Iterator[ast.AST]:
    """The places called `plugins` that a value comes to, by the lists and the names that hold it."""
    up = module.parent(node)
    if steps == 0 or up is None:
        return
    if isinstance(up, (ast.List, ast.Tuple, ast.Starred, ast.BoolOp)) or (isinstance(up, ast.IfExp) and node is not up.test):
        yield from _places(module, up, steps)
    elif isinstance(up, ast.keyword):
        if up.arg == _KEY:
            yield up
    elif isinstance(up, ast.Dict):
        if any(v is node and _is_key(k) for k, v in zip(up.keys, up.values, strict=True)):
            yield up
    elif isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and up.value is node:
        for target in up.targets if isinstance(up, ast.Assign) else [up.target]:
            yield from _held(module, target, steps)
    elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and node in up.args:
        if up.func.attr in _ADDS:
            yield from _held(module, up.func.value, steps)
        elif up.func.attr in _KEEPS and node is not up.args[0] and _is_key(up.args[0]):
            yield up


def _held(module: SourceModule, target: ast.expr, steps: int) -> Iterator[ast.AST]:
    """Where what a name, a key or an attribute holds is handed over as `plugins`."""
    if isinstance(target, ast.Subscript):
        if _is_key(target.slice):
            yield target
    elif isinstance(target, ast.Attribute):
        if target.attr == _KEY:
            yield target
    elif isinstance(target, ast.Name):
        function = module.function_of(target)
        for read in module.reads_of(target.id):
            if module.function_of(read) is function:
                yield from _places(module, read, steps - 1)


def _is_key(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == _KEY
