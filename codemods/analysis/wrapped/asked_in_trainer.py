"""What a step of a Hugging Face Trainer asks of the model that it is handed: with several processes that is the DDP wrapper.

Measured with transformers 5.23 and accelerate 1.15 on two gloo processes: `training_step` and, in training, `compute_loss` are
handed the wrapper; `prediction_step` and the callbacks are handed the bare model, which `self.model` is everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted, family
from codemods.analysis.wrapped.losses import is_quiet
from codemods.analysis.wrapped.passing_on import runs_sharded
from codemods.analysis.wrapped.wrapper_tests import is_tested, tests_over
from codemods.api.findings import Applicability
from codemods.data.wrapper_attributes import QUIET, WRAPPER
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

STEPS = ("compute_loss", "training_step")
_FAMILIES = frozenset({"transformers", "trl"})
# What decides which model the steps are handed: where the project has its own, nothing is known.
_DECIDE = ("_wrap_model", "_inner_training_loop", "_prepare_for_training", "create_accelerator_and_postprocess", "train")
# Words of a test that tells training from evaluation: there the model may be bare.
_EVALUATES = lazy(r"training\b|is_in_train|return_outputs|eval|predict|pretrain")
_OF_WEIGHTS = frozenset({"dtype", "device", "shape", "parameters", "named_parameters", "state_dict"})
_DEPTH = 3


@record
class InTrainer:
    """A question to the model that a step is handed. step: the hook of the Trainer; bare: `self.model` is the model inside;
    harmless: no gradient can go through it; runs: it is called, and may run a forward."""

    node: ast.Attribute
    function: FunctionNode
    step: FunctionNode
    bare: bool
    harmless: bool
    runs: bool


@record
class _Entry:
    function: FunctionNode
    name: str
    step: FunctionNode
    bare: bool = True


def speaks_of_steps(project: Project, path: str) -> bool:
    """True for a file that defines one of the steps."""
    return any(path in project.files_containing(f"def {name}(".encode()) for name in STEPS)


def asked_in_trainer(project: Project, module: SourceModule) -> Iterator[InTrainer]:
    """The questions of the steps of this file's Trainers, and of the methods that they hand the model to."""
    if runs_sharded(project):
        return
    for owner in module.nodes(ast.ClassDef):
        methods = module.methods_of(owner)
        if not any(name in methods for name in STEPS):
            continue
        facts = class_facts(project, module, owner)
        if not _is_followed(facts):
            continue
        for entry in _entries(module, facts, owner):
            yield from _asked(module, entry)


def _is_followed(facts: ClassFacts) -> bool:
    """True for a Trainer of transformers or trl whose own loop hands the model to the steps."""
    roots = [n for n in facts.external if external_role(n) is Role.HF_TRAINER]
    if facts.unresolved or not roots or any(family(n) not in _FAMILIES for n in roots):
        return False
    return not any(facts.method(name) for name in _DECIDE) and not _sets_the_model(facts)


def _sets_the_model(facts: ClassFacts) -> bool:
    stores = (a for site in facts.lineage for a in site.module.nodes(ast.Attribute) if isinstance(a.ctx, ast.Store))
    return any(dotted(a) in ("self.model", "self.model_wrapped") for a in stores)


def _entries(module: SourceModule, facts: ClassFacts, owner: ast.ClassDef) -> Iterator[_Entry]:
    """The steps and the methods of the class that hold the wrapper in a parameter."""
    methods = module.methods_of(owner)
    waiting = [e for name in STEPS if name in methods and (e := _step(facts, methods[name])) is not None]
    done: list[_Entry] = []
    while waiting and len(done) < 3 * _DEPTH:
        entry = waiting.pop(0)
        if any(d.function is entry.function for d in done):
            continue
        done.append(entry)
        yield entry
        for call in (c for c in module.nodes(ast.Call) if module.function_of(c) is entry.function):
            if (further := _handed_on(module, owner, entry, call)) is not None:
                waiting.append(further)


def _step(facts: ClassFacts, function: FunctionNode) -> _Entry | None:
    """A step with its model; None where a step of the project hands `compute_loss` another one."""
    names = [a.arg for a in function.args.args]
    if len(names) < 2 or names[0] != "self" or function.decorator_list:
        return None
    found = facts.method("training_step") if function.name == "compute_loss" else None
    if found is not None and not _hands_it_on(*found):
        return None
    return _Entry(function, names[1], function)


def _hands_it_on(site: ClassSite, function: FunctionNode) -> bool:
    """True for a `training_step` that hands its own model to `compute_loss`, or leaves that to the Trainer."""
    names = [a.arg for a in function.args.args]
    calls = [c for c in site.module.calls_named("compute_loss") if site.module.function_of(c) is function]
    if not calls:
        return any(site.module.function_of(c) is function for c in site.module.calls_named("training_step"))
    rebound = len(names) < 2 or len(bindings_in(site.module, function, names[1])) > 1
    return not rebound and all(c.args and dotted(c.args[0]) == names[1] for c in calls)


def _handed_on(module: SourceModule, owner: ast.ClassDef, entry: _Entry, call: ast.Call) -> _Entry | None:
    """The method that `self.helper(model, ...)` runs, with the parameter that holds the model."""
    target = dotted(call.func)
    function = module.methods_of(owner).get(target.removeprefix("self."))
    if function is None or not target.startswith("self.") or function.decorator_list or function.name in STEPS:
        return None
    given = [*call.args, *(k.value for k in call.keywords)]
    holder = next((a for a in given if _is_still(module, entry, a)), None)
    if holder is None or _is_doubtful(module, call):
        return None
    name = held_as(FunctionSite(module, function), call, holder)
    others = (c for c in module.calls_named(function.name) if c is not call)
    return _Entry(function, name, entry.step, entry.bare and not any(True for _ in others)) if name else None


def _is_still(module: SourceModule, entry: _Entry, node: ast.expr) -> bool:
    """True where the name holds what the function was handed: nothing else is bound to it above."""
    if not isinstance(node, ast.Name) or node.id != entry.name or module.function_of(node) is not entry.function:
        return False
    bound = (b.node for b in bindings_in(module, entry.function, entry.name) if not b.parameter)
    return not any(getattr(b, "lineno", 0) <= node.lineno for b in bound)


def _is_doubtful(module: SourceModule, node: ast.AST) -> bool:
    """True under a test that may tell the wrapper, or training from evaluation."""
    return is_tested(module, node) or any(_EVALUATES.search(module.text_of(t)) for t in tests_over(module, node))


def _asked(module: SourceModule, entry: _Entry) -> Iterator[InTrainer]:
    for node in module.nodes(ast.Attribute):
        if node.attr in WRAPPER or node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
            continue
        if not _is_still(module, entry, node.value) or _is_doubtful(module, node) or _is_put_there(module, node):
            continue
        harmless = node.attr in QUIET or is_quiet(module, node) or _is_of_weights(module, node)
        yield InTrainer(node, entry.function, entry.step, entry.bare, harmless, not harmless and _is_run(module, node))


def _is_put_there(module: SourceModule, node: ast.Attribute) -> bool:
    """True where the file sets the name on some model itself: what is put on the wrapper is found there."""
    stores = (a for a in module.nodes(ast.Attribute) if a.attr == node.attr and isinstance(a.ctx, ast.Store))
    return any(dotted(a.value) != "self" for a in stores)


def _chain(module: SourceModule, node: ast.expr) -> Iterator[ast.expr]:
    """`model.head`, `model.head.weight`, `model.head.weight.dtype`, with calls between them."""
    at: ast.AST | None = node
    while isinstance(at, (ast.Attribute, ast.Call)):
        yield at
        up = module.parent(at)
        at = up if (isinstance(up, ast.Attribute) and up.value is at) or (isinstance(up, ast.Call) and up.func is at) else None


def _is_of_weights(module: SourceModule, node: ast.Attribute) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in _OF_WEIGHTS for part in _chain(module, node))


def _is_run(module: SourceModule, node: ast.Attribute) -> bool:
    return any(isinstance(part, ast.Call) for part in _chain(module, node))


def level_in_trainer(one: InTrainer, found: list[InTrainer]) -> tuple[Applicability, str]:
    """How far `self.model` is right in the place of the wrapper, and what stands against it."""
    if one.runs:
        return Applicability.DISPLAY, (
            "let `forward` of the model make it, and call the model that the step is handed: the gradients of what goes past the "
            "wrapper are not averaged"
        )
    if not one.bare:
        return Applicability.DISPLAY, f"write `self.accelerator.unwrap_model({dotted(one.node.value)})`"
    if not one.harmless:
        return Applicability.UNSAFE, "assumes that it is no weight: DDP may stop at one that the loss uses past the wrapper"
    if (other := next((f for f in found if f.runs and f.step is one.step), None)) is not None:
        return Applicability.UNSAFE, f"line {other.node.lineno} ends the program, too: see there"
    return Applicability.SAFE, ""
