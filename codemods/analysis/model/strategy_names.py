"""The strategies that a Lightning Trainer may be given, and what each says of the flag."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.model.flag_setting import Setting, State
from codemods.analysis.model.flag_values import assignments, keyword_settings
from codemods.analysis.names import last, qualified
from codemods.data.find_unused_parameters import OFF_NAMES, ON_NAMES, RAW_KEYWORD, STRATEGY_CLASSES
from codemods.files.source import SourceModule
from codemods.store.project import Project


def strategy_settings(project: Project, module: SourceModule, call: ast.Call, taken: set[int]) -> Iterator[Setting]:
    for keyword in call.keywords:
        if keyword.arg in ("strategy", "plugins", "accelerator", "distributed_backend"):
            yield from _strategy(project, module, keyword.value, taken, conditional=False)


def _strategy(
    project: Project, module: SourceModule, node: ast.expr, taken: set[int], *, conditional: bool, depth: int = 0
) -> Iterator[Setting]:
    """The strategies an expression may come to; what is no DDP strategy is passed over."""
    if depth > 6:
        return
    if isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield from _strategy(project, module, side, taken, conditional=True, depth=depth + 1)
    elif isinstance(node, ast.BoolOp):
        for side in node.values:
            yield from _strategy(project, module, side, taken, conditional=True, depth=depth + 1)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _strategy(project, module, element, taken, conditional=conditional, depth=depth + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if state := state_of_name(node.value):
            yield Setting(state, module, node, "strategy", None, True, module.text_of(node), conditional)
    elif isinstance(node, ast.Call) and last(qualified(module, node.func)) in STRATEGY_CLASSES:
        taken.add(id(node))
        yield from keyword_settings(project, module, node, RAW_KEYWORD)
    elif isinstance(node, ast.Name):
        home = module.function_of(node)
        values = assignments(module, node.id, home) or (assignments(module, node.id, None) if home else [])
        for value in values:
            yield from _strategy(project, module, value, taken, conditional=conditional or len(values) > 1, depth=depth + 1)


def state_of_name(name: str) -> State | None:
    if name in ON_NAMES:
        return State.ON
    if name.endswith("find_unused_parameters_false"):
        return State.OFF
    return State.DEFAULT if name in OFF_NAMES else None
