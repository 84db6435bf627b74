"""What never reaches the loss, under a Lightning Trainer that is told its devices and no strategy: DDP stops in its second step.

Such a Trainer is often run on one device. So only what is sure counts: a layer that reaches no loss of a model that is the only
one, and that nothing else may freeze or swap. A callback that freezes by a schedule, and that a test adds, is taken for left
out, which the answer says.
"""

from __future__ import annotations

import ast

from codemods.analysis.branches import ifs_round
from codemods.analysis.class_index import class_facts
from codemods.analysis.model.flag_setting import Wrapper
from codemods.analysis.model.grad_switches import grad_switches
from codemods.analysis.model.model_usage import Entry, Judge, Usage, Verdict
from codemods.analysis.model.trained_model import Trained
from codemods.files.source import SourceModule
from codemods.runtime.record import replace
from codemods.store.project import Project

_COUNTS = frozenset({"devices", "gpus", "num_processes", "num_nodes"})
_SWAPS = (b"get_peft_model", b"add_adapter", b"PeftModel", b"register_hook")
_SCHEDULED = ("BaseFinetuning", "BackboneFinetuning")
_LEFT_OUT = frozenset({Verdict.NEVER, Verdict.UNKNOWN})  # an unknown one may hold layers that surely reach no loss


def dead_under_devices(project: Project, wrapper: Wrapper, trained: Trained) -> Usage | None:
    """The model of which a layer gets no gradient in any step; None where that, or what else there is, is not seen."""
    if trained.unknown or len(trained.usages) != 1 or not any(k.arg in _COUNTS for k in wrapper.call.keywords):
        return None
    usage = _whatever_is_set(project, trained.usages[0])
    if usage is None:
        return None
    callbacks = _scheduled(project)
    names = tuple(dict.fromkeys(callbacks.values()))
    if _is_changed_elsewhere(project, wrapper.module, usage, frozenset(callbacks)):
        return None
    if not all(_is_added_by_a_test(wrapper.module, name) for name in names):
        return None
    return replace(usage, assumptions=(*(f"no {name} freezes it" for name in names), *usage.assumptions))


def _whatever_is_set(project: Project, usage: Usage) -> Usage | None:
    """The verdict where no setting takes the layers in: the values that settings have today are no reason to warn of them."""
    if usage.verdict not in _LEFT_OUT or not usage.dead or usage.entry is not Entry.TRAINING_STEP:
        return None
    anyway = Judge(project, usage.site, usage.entry, settings=False).judge()
    return anyway if anyway.verdict in _LEFT_OUT and anyway.dead else None


def _is_changed_elsewhere(project: Project, module: SourceModule, usage: Usage, scheduled: frozenset[str]) -> bool:
    """True where the program may freeze the layers, or put other modules in their place."""
    lineage = (s.module for s in class_facts(project, usage.site.module, usage.site.node).lineage)
    if any(m.holds(word) for m in (module, *lineage) for word in _SWAPS):
        return True
    given = (t for a in module.nodes(ast.Assign) for t in a.targets)
    if any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in given):
        return True
    if module.calls_named("requires_grad_", "freeze"):
        return True
    return any(path not in scheduled for path, _ in grad_switches(project, module, usage.site.module))


def _scheduled(project: Project) -> dict[str, str]:
    """File -> the callback in it that freezes, and releases, by a schedule of its own."""
    return {path: name for base in _SCHEDULED for path, name in project.headers_naming(base)}


def _is_added_by_a_test(module: SourceModule, name: str) -> bool:
    """True where the file makes such a callback, and only below an `if`."""
    made = module.calls_named(name)
    return bool(made) and all(next(ifs_round(module, call), None) is not None for call in made)
