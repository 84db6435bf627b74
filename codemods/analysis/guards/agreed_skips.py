"""The repair for a `training_step` that skips a batch by the rank's own data: one rank's wish skips it on all of them.

Lightning from 2.3 on refuses None with several processes, older ones hang; so all ranks return a loss without effect. One process
skips as before. Behind a skip that is not agreed on the next one would wait for ranks that are gone: all are changed together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.variance.analysis import variance
from codemods.api.findings import Edit, ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

ASSUMED = (
    "assumes that each batch may be skipped on all ranks where one rank wants to, and that a step with gradients of zero may be "
    "made for it"
)
_LOSS_WITHOUT_EFFECT = (
    "Lightning from 2.3 on refuses None with several processes: return a loss without effect on every rank, such as "
    "`0.0 * sum(p.sum() for p in self.parameters())`"
)
_BY_HAND = (
    "this module makes its steps itself, so that a loss that is given back runs no backward: let all ranks skip it together, by "
    "`self.trainer.strategy.reduce_boolean_decision(flag, all=False)`"
)
_LOSS = "0.0 * sum(p.sum() for p in self.parameters()) if self.trainer.world_size > 1 else None"
_SHARDED = (b"fsdp", b"FSDP", b"deepspeed", b"DeepSpeed", b"static_graph", b"automatic_optimization")


def agreed_skips(project: Project, module: SourceModule, leaving: ast.stmt | None) -> tuple[list[Edit], set[int]]:
    """The edits for all skips of the function, and their lines; none where a rank may leave it, or wait in it, by itself."""
    function = module.function_of(leaving) if leaving is not None else None
    if function is None or function.name != "training_step" or not function.args.args or function.args.args[0].arg != "self":
        return [], set()
    skips = list(_skips(module, function))
    if not any(s.body[-1] is leaving for s in skips) or not _all_come(project, module, function, skips):
        return [], set()
    pin = lightning_pin(project, near=module.path)
    if (pin is not None and pin.surely_below((1, 6))) or _is_trained_otherwise(project):
        return [], set()
    edits: list[Edit] = []
    for skip in skips:
        end = skip.body[-1]
        assert isinstance(end, ast.Return) and end.value is not None
        asked = " ".join(module.text_of(skip.test).split())
        agreed = f"self.trainer.strategy.reduce_boolean_decision(bool({asked}), all=False)"
        edits += [
            ReplaceExpression(module.path, module.span(skip.test), agreed),
            ReplaceExpression(module.path, module.span(end.value), _LOSS),
        ]
    return edits, {line for skip in skips for line in (skip.lineno, skip.body[-1].lineno)}


def advice_for_skip(project: Project, module: SourceModule, leaving: ast.stmt | None) -> str:
    """What is to be done about a step that gives no loss, where nothing is repaired."""
    return _BY_HAND if makes_its_steps(project, module, leaving) else _LOSS_WITHOUT_EFFECT


def makes_its_steps(project: Project, module: SourceModule, leaving: ast.stmt | None) -> bool:
    """True in a module with `automatic_optimization = False`: what its step gives back runs no backward."""
    owner = module.class_of(leaving) if leaving is not None else None
    facts = class_facts(project, module, owner) if owner is not None else None
    given = class_values(project, facts).given.get("automatic_optimization", []) if facts is not None else []
    return bool(given) and all(isinstance(g.value, ast.Constant) and g.value.value is False for g in given)


def _skips(module: SourceModule, function: FunctionNode) -> Iterator[ast.If]:
    for statement in function.body:
        if isinstance(statement, ast.If) and not statement.orelse and module.is_whole(statement):
            end = statement.body[-1]
            none = isinstance(end, ast.Return) and isinstance(end.value, ast.Constant) and end.value.value is None
            if none and not any(isinstance(n, (ast.NamedExpr, ast.Await)) for n in walk(statement.test)):
                yield statement


def _all_come(project: Project, module: SourceModule, function: FunctionNode, skips: list[ast.If]) -> bool:
    """True where no rank leaves the function by itself but by one of the skips, and none returns None besides."""
    ends = {id(s.body[-1]) for s in skips}
    last = max(s.end_lineno or s.lineno for s in skips)
    for node in walk(function):
        if not isinstance(node, (ast.Return, ast.Raise)) or id(node) in ends or module.function_of(node) is not function:
            continue
        if isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant)):
            return False
        tests = [up.test for up in module.ancestors(node) if isinstance(up, (ast.If, ast.While))]
        if node.lineno < last and (not tests or any(variance(project).value(module, t).differs for t in tests)):
            return False
        if node.lineno < last and any(isinstance(up, (ast.For, ast.Try, ast.With)) for up in module.ancestors(node)):
            return False
    return True


def _is_trained_otherwise(project: Project) -> bool:
    """True where the parameters are sharded, the graph must not change, or the module makes its steps itself."""
    return any(not is_test_file(p) for word in _SHARDED for p in project.files_containing(word))
