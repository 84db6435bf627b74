"""Trainers of transformers that a project derives: making one makes the process a rank, as making the Trainer itself does."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project


def made_own_trainer(project: Project, module: SourceModule, call: ast.Call) -> tuple[str, ...]:
    """The frameworks' classes that `OurTrainer(model=model, args=args)` is derived from; none for any other call."""
    name = dotted(call.func)
    if not last(name)[:1].isupper() or not _hands_over(call):
        return ()
    site = find_class(project, module, name)
    facts = class_facts(project, site.module, site.node) if site is not None else None
    return tuple(facts.external) if facts is not None and facts.is_a(Role.HF_TRAINER) else ()


def makes_a_trainer(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call of a Trainer of transformers or trl, one that the project derives, or a name that holds only such."""
    if not isinstance(call.func, ast.Name) or not _hands_over(call):
        return False
    if not (call.func.id[:1].isupper() or "trainer" in call.func.id):
        return False
    held = assigned(module, call.func, call.func.id) or [call.func]
    return all(_is_trainer(project, module, value) for value in held)


def _is_trainer(project: Project, module: SourceModule, value: ast.expr) -> bool:
    name = dotted(value)
    if not last(name)[:1].isupper():
        return False
    if external_role(qualified(module, value)) is Role.HF_TRAINER:
        return True
    site = find_class(project, module, name)
    return site is not None and class_facts(project, site.module, site.node).is_a(Role.HF_TRAINER)


def _hands_over(call: ast.Call) -> bool:
    """False for a class that is made of one thing or of nothing: a Trainer is handed its arguments beside the model."""
    return len(call.args) + len(call.keywords) > 1 or any(k.arg is None for k in call.keywords)
