"""What a model is that goes into a wrap: its class, whether it is one at all, and whether it has parameters to train."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassFacts, Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.model.wrapped_model import model_of
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.wrapped.frozen_models import is_frozen
from codemods.analysis.wrapped.wraps import without_moves
from codemods.data.wrapper_attributes import PRETRAINED
from codemods.files.source import SourceModule
from codemods.store.project import Project

# Methods that only a module has, of all that is prepared: optimizers, loaders and schedulers have none of them.
_OF_MODULES = frozenset({"parameters", "named_parameters", "train", "eval", "requires_grad_", "named_modules", "modules"})
_TAKES_MODULES = frozenset({"accumulate", "unwrap_model"})
_OTHERS = ("optim", "sched", "loader", "scaler")
_PACKAGES = frozenset({"transformers", "diffusers"})


def classes_of(project: Project, module: SourceModule, model: ast.expr | None) -> tuple[ClassFacts, ...]:
    """The project classes that the model may be an object of."""
    if model is None:
        return ()
    place = ("classes of a wrapped model", module.path, model.lineno, model.col_offset)
    return project.memo(place, lambda: _classes_of(project, module, without_moves(model)))


def _classes_of(project: Project, module: SourceModule, model: ast.expr) -> tuple[ClassFacts, ...]:
    if found := model_of(project, module, model).classes:
        return tuple(class_facts(project, s.module, s.node) for s in found)
    values = [model] if isinstance(model, ast.Call) else assigned(module, model, dotted(model)) if dotted(model) else []
    calls = [v for v in map(without_moves, values) if isinstance(v, ast.Call) and dotted(v.func)]
    made = (find_class(project, module, dotted(v.func)) for v in calls)
    facts = [class_facts(project, s.module, s.node) for s in made if s is not None]
    return tuple(f for f in facts if any(last(e) in ("ModelMixin", "PreTrainedModel", "Module") for e in f.external))


def is_pretrained(project: Project, module: SourceModule, model: ast.expr | None) -> bool:
    """True for a model of transformers or diffusers, or of a project class that derives from theirs."""
    if model is None:
        return False
    model = without_moves(model)
    if isinstance(model, ast.Call):
        return _is_pretrained_call(module, model)
    values = assigned(module, model, dotted(model)) if dotted(model) else []
    made = (without_moves(v) for v in values)  # `model = change(model)` hands on what it gets, or something else
    if any(isinstance(v, ast.Call) and _is_pretrained_call(module, v) for v in made):
        return True
    return any(family(e) in _PACKAGES for facts in classes_of(project, module, model) for e in facts.external)


def _is_pretrained_call(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    made = name.rpartition(".")[0] if "from_" in last(name) else name
    return family(made) in _PACKAGES and _is_model_name(last(made))


def _is_model_name(name: str) -> bool:
    return "Model" in name or "For" in name or "LMHead" in name or name.startswith("Autoencoder")


def has_attribute(project: Project, facts: ClassFacts, name: str) -> bool:
    """True where the class, or one of its project ancestors, defines the name: a method, a class value, or `self.name = ...`."""
    if facts.method(name) is not None or name in class_values(project, facts).given:
        return True
    return name in PRETRAINED and any(family(e) in _PACKAGES for e in facts.external)


def is_named_in(project: Project, name: str) -> bool:
    """True where some class of the project defines the name, or every pretrained model has it."""
    if name in PRETRAINED:
        return True
    words = (f"def {name}(".encode(), f"self.{name} = ".encode())
    return any(project.files_containing(word) for word in words)


def is_wrapped_by_prepare(
    project: Project, module: SourceModule, call: ast.Call, given: ast.expr, *, many: bool = False
) -> bool:
    """True where `accelerator.prepare` puts a wrapper round the object: a module, of which some parameter is trained.

    `Accelerator.prepare_model` leaves alone what has no parameter that requires a gradient, and what is prepared to evaluate.
    """
    place = ("wrapped by prepare", module.path, given.lineno, given.col_offset, many)
    return project.memo(place, lambda: _is_wrapped(project, module, call, given, many))


def _is_wrapped(project: Project, module: SourceModule, call: ast.Call, given: ast.expr, many: bool) -> bool:
    if any(k.arg == "evaluation_mode" for k in call.keywords):
        return False
    text = dotted(given)
    if not text:
        return isinstance(given, ast.Call) and _is_module_call(project, module, given)
    if is_frozen(module, call, text):
        return False
    if many:
        return "model" in text.lower() or "module" in text.lower()
    if any(f.is_a(Role.NN_MODULE) for f in classes_of(project, module, given)) or is_pretrained(project, module, given):
        return True
    if _is_no_model(module, given, text):
        return False
    near = (c for name in (*_OF_MODULES, *_TAKES_MODULES) for c in module.calls_named(name))
    return any(
        _shows_a_module(c, text) for c in near if module.function_of(c) is module.function_of(call) or text.startswith("self.")
    )


def _is_no_model(module: SourceModule, given: ast.expr, text: str) -> bool:
    """True for an optimizer, a schedule or a loader, by its name or by what it is given: some of them have `train()` as well."""
    if any(word in last(text).lower() for word in _OTHERS):
        return True
    made = (v for v in assigned(module, given, text) if isinstance(v, ast.Call))
    return any(qualified(module, v.func).startswith("torch.optim.") for v in made)


def _shows_a_module(call: ast.Call, text: str) -> bool:
    """True for `net.train()`, and for `accelerator.accumulate(net)`, which is for models alone."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in _TAKES_MODULES:
        return any(dotted(a) == text for a in call.args) and "accelerator" in dotted(call.func.value).lower()
    return dotted(call.func.value) == text


def _is_module_call(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if is_pretrained(project, module, call) or external_role(qualified(module, call.func)) is Role.NN_MODULE:
        return True
    return any(f.is_a(Role.NN_MODULE) for f in classes_of(project, module, call))


def is_plain(project: Project, module: SourceModule, model: ast.expr | None, name: str) -> bool:
    """True where the class keeps a setting under the name: a constant, or what a parameter of the constructor gives."""
    for facts in classes_of(project, module, model):
        values = class_values(project, facts).given.get(name, [])
        if facts.method(name) is not None or not values:
            return False
        if not all(_is_setting(v.value, v.function) for v in values):
            return False
    return True


def _is_setting(value: ast.expr, function: ast.AST | None) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name):
        numbers = ("model", "module", "net", "encoder", "decoder", "layer", "head", "unet", "vae", "backbone")
        return not any(word in value.id.lower() for word in numbers)
    return isinstance(value, ast.Attribute) and any(w in dotted(value) for w in ("config.", "cfg.", "args."))
