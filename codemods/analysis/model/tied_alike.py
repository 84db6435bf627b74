"""Is the flag tied to the test under which the model is made: `if args.gated: model = Net()`, `flag = args.gated or moe`?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.branches import branches_round
from codemods.analysis.conditions import conjuncts
from codemods.analysis.model.flag_setting import Setting
from codemods.analysis.model.model_usage import Usage
from codemods.files.source import SourceModule


def is_on_where_made(setting: Setting, usage: Usage) -> bool:
    """True where each place of the function that makes the model stands under a test by which the expression comes to True."""
    module = setting.module
    ways = {ast.dump(way) for way in _ways_to_true(module, setting.node)}
    made = module.calls_named(usage.name)
    made = [c for c in made if module.function_of(c) is module.function_of(setting.node)] or made
    return bool(made) and all(any(ast.dump(_bare(t)) in ways for t in _tests_that_hold(module, call)) for call in made)


def _ways_to_true(module: SourceModule, node: ast.expr) -> list[ast.expr]:
    """The operands of an `or`, each of which alone makes it True; of a name what it is bound to, once."""
    node = _bare(node)
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        return [node, *(_ways_to_true(module, value) if value is not None else ())]
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return [way for value in node.values for way in _ways_to_true(module, value)]
    return [node]


def _bare(node: ast.expr) -> ast.expr:
    """Without `bool(...)` round it."""
    wraps = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool" and len(node.args) == 1
    return node.args[0] if wraps and isinstance(node, ast.Call) else node


def _tests_that_hold(module: SourceModule, node: ast.AST) -> list[ast.expr]:
    return [part for branch in branches_round(module, node) if branch.holds for part in conjuncts(branch.test)]
