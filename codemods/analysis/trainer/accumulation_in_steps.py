"""A loss that a `training_step` divides by the accumulation steps, though Lightning's Trainer divides it by them, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.lightning_trainers import trainer_calls
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_STEPS = "accumulate_grad_batches"


@record
class Given:
    """The Trainer that is given the steps, and as what: the name of the number, "" for another expression."""

    module: SourceModule
    call: ast.Call
    name: str


def returned_losses(project: Project, module: SourceModule) -> Iterator[tuple[ast.Return, ast.expr]]:
    """What the training steps of a file return as the loss, where Lightning makes the backward pass."""
    for owner in module.nodes(ast.ClassDef):
        step = module.methods_of(owner).get("training_step")
        if step is None:
            continue
        facts = class_facts(project, module, owner)
        by_hand = any("automatic_optimization" in site.module.text_of(site.node) for site in facts.lineage)
        if facts.is_a(Role.LIGHTNING_MODULE) and not by_hand:
            yield from _returned(step)


def _returned(step: FunctionNode) -> Iterator[tuple[ast.Return, ast.expr]]:
    for node in walk_scope(step):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value = node.value
        if isinstance(value, ast.Dict):
            keyed = zip(value.keys, value.values, strict=True)
            value = next((v for k, v in keyed if isinstance(k, ast.Constant) and k.value == "loss"), value)
        yield node, value


def trainer_steps(project: Project, module: SourceModule, divisor: ast.expr) -> Given | None:
    """The Trainer that divides by the same number; None where one of the project's is not seen to do so.

    A number that is written out may be of anything: `(first + second) / 2`.
    """
    found = _trainers(project)
    name = _name_of(divisor)
    if isinstance(divisor, ast.Constant) or _keeps_its_default(project, module, divisor, name):
        return None
    if not found or not name or not all(g.name and (g.name == name or name == _STEPS) for g in found):
        return None
    return found[0]


def _keeps_its_default(project: Project, module: SourceModule, divisor: ast.expr, name: str) -> bool:
    """True where the module's constructor gives the number a value of its own, and no call is seen to hand over another."""
    owner = module.class_of(divisor)
    init = module.methods_of(owner).get("__init__") if owner is not None else None
    if owner is None or init is None or name not in defaults(init):
        return False
    for path in project.files_containing(f"{owner.name}(".encode()):
        there = project.module(path)
        for call in there.calls_named(owner.name) if there is not None else ():
            if any(k.arg in (name, None) for k in call.keywords) or len(call.args) >= len(init.args.args) - 1:
                return False
    return True


def _trainers(project: Project) -> tuple[Given, ...]:
    def build() -> tuple[Given, ...]:
        fitting = set(project.files_containing(b"Trainer(")) & set(project.files_containing(b".fit("))
        paths = sorted(p for p in {*project.files_containing(_STEPS.encode()), *fitting} if not is_test_file(p))
        modules = [m for p in paths if (m := project.module(p)) is not None]
        return tuple(Given(m, call, _steps_of(call)) for m in modules for call in trainer_calls(project, m))

    return project.memo("Trainers that accumulate", build)


def _steps_of(call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == _STEPS), None)
    return _name_of(given) if given is not None else ""


def _name_of(node: ast.expr) -> str:
    """`n` for `args.n` and `config["n"]`, and the number for one that is written out, but 1."""
    if name := last(dotted(node)):
        return name
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    known = isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value != 1
    return str(node.value) if known and isinstance(node, ast.Constant) else ""
