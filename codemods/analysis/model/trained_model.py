"""From a wrapper (DDP call, Lightning Trainer, TrainingArguments …) to the model it trains and where its loss comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.model.by_hand import lightning_usage
from codemods.analysis.model.flag_setting import Framework, Wrapper
from codemods.analysis.model.model_usage import Entry, Usage, Verdict, usage_of
from codemods.analysis.model.signatures import returned
from codemods.analysis.model.training_loop import corrected_by_loop, usage_in_loop
from codemods.analysis.model.wrapped_model import Model, callers, joined, model_of
from codemods.analysis.names import dotted, family, last, qualified
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project


@record
class Trained:
    """The models behind a wrapper, each with its verdict. unknown: why there may be others, or why none was found.

    assumed: what has to hold for these to be the models (it stands among the assumptions of their verdicts, too).
    """

    usages: tuple[Usage, ...] = ()
    unknown: str = ""
    evidence: tuple[Evidence, ...] = ()
    assumed: str = ""


def trained_by(project: Project, wrapper: Wrapper) -> Trained:
    """What the wrapper trains, remembered for the project."""
    key = ("trained by", wrapper.module.path, wrapper.call.lineno, wrapper.call.col_offset)
    return project.memo(key, lambda: _trained_by(project, wrapper))


def _trained_by(project: Project, wrapper: Wrapper) -> Trained:
    module, call = wrapper.module, wrapper.call
    if wrapper.framework is Framework.TORCH:
        inner = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
        found = model_of(project, module, inner) if inner is not None else Model(unknown="no model is handed over")
        return _through_the_loop(project, module, call, _judged(project, found, Entry.FORWARD))
    if wrapper.framework is Framework.LIGHTNING:
        return _lightning(project, module, call)
    if wrapper.framework is Framework.HF:
        return _hugging_face(project, module, call)
    return _prepared(project, module, call, wrapper.framework)


def _judged(project: Project, model: Model, entry: Entry) -> Trained:
    return _with_assumption(model, tuple(usage_of(project, site, entry) for site in model.classes))


def _with_assumption(model: Model, usages: tuple[Usage, ...]) -> Trained:
    if model.assumed:
        usages = tuple(replace(u, assumptions=(*u.assumptions, model.assumed)) for u in usages)
    return Trained(usages, model.unknown, model.evidence, model.assumed)


def _through_the_loop(project: Project, module: SourceModule, call: ast.Call, trained: Trained) -> Trained:
    """Where forward alone does not say what enters the loss, the training loop may."""
    return replace(trained, usages=tuple(_by_loop(project, module, call, usage) for usage in trained.usages))


def _by_loop(project: Project, module: SourceModule, call: ast.Call, usage: Usage) -> Usage:
    if usage.verdict is Verdict.UNKNOWN and usage.many:
        return usage_in_loop(project, module, call, usage.site) or usage
    return corrected_by_loop(project, module, call, usage)


# Lightning


def _lightning(project: Project, module: SourceModule, call: ast.Call) -> Trained:
    if last(qualified(module, call.func)) not in ("Trainer", "from_argparse_args"):
        return _taken_by_a_configuration(project)
    fits = [(m, f) for m, name in _holders(project, module, call) for f in _calls_on(m, name, "fit")]
    parent = module.parent(call)
    if isinstance(parent, ast.Attribute) and parent.attr == "fit" and isinstance(up := module.parent(parent), ast.Call):
        fits.append((module, up))
    if not fits:
        return Trained(unknown="the fit() of this Trainer is not seen")
    models = []
    for home, fit in fits:
        given = fit.args[0] if fit.args else next((k.value for k in fit.keywords if k.arg == "model"), None)
        models.append(model_of(project, home, given) if given is not None else Model(unknown="fit() is given no model"))
    model = joined(models)
    for site in model.classes:
        facts = class_facts(project, site.module, site.node)
        if not facts.is_a(Role.LIGHTNING_MODULE):
            return Trained(unknown=f"{site.name} is not known to be a LightningModule", evidence=model.evidence)
    found = [lightning_usage(project, site) for site in model.classes]
    if reason := next((one for one in found if isinstance(one, str)), ""):
        return Trained(unknown=reason, evidence=model.evidence)
    return _with_assumption(model, tuple(one for one in found if isinstance(one, Usage)))


def _taken_by_a_configuration(project: Project) -> Trained:
    """A strategy that no Trainer of this file takes (a configuration in Python): the models that the project's code trains."""
    from codemods.analysis.model.configured_model import configured  # it asks for the models of Trainers in turn

    found = configured(project, Framework.LIGHTNING)
    if not found.usages:
        return Trained(unknown="the Trainer that takes this strategy is not seen")
    assumed = f"this configuration is used with {', '.join(u.name for u in found.usages)}"
    usages = tuple(replace(u, assumptions=(*u.assumptions, assumed)) for u in found.usages)
    return Trained(usages, found.unknown, found.evidence, assumed)


def _holders(project: Project, module: SourceModule, call: ast.Call) -> Iterator[tuple[SourceModule, str]]:
    """(file, dotted name) of what holds the object a call makes, also where a function returns it."""
    assign = module.parent(call)
    names = [dotted(t) for t in assign.targets] if isinstance(assign, ast.Assign) else []
    yield from ((module, name) for name in names if name)
    function = module.function_of(call)
    if function is None:
        return
    handed = [v for v in returned(function, module) if v is call or (isinstance(v, ast.Name) and v.id in names)]
    for caller, use in callers(project, module, function) if handed else ():
        up = caller.parent(use)
        if isinstance(up, ast.Assign):
            yield from ((caller, name) for t in up.targets if (name := dotted(t)))


def _calls_on(module: SourceModule, name: str, method: str) -> list[ast.Call]:
    found = module.calls_named(method)
    return [c for c in found if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == name]


# Hugging Face


def _hugging_face(project: Project, module: SourceModule, call: ast.Call) -> Trained:
    trainers: list[tuple[SourceModule, ast.Call]] = []
    for home, name in [(module, ""), *_holders(project, module, call)]:
        for other in home.nodes(ast.Call):
            arguments = [*other.args, *(k.value for k in other.keywords)]
            taken = any(a is call or (name and dotted(a) == name) for a in arguments)
            if taken and _is_trainer(project, home, other):
                trainers.append((home, other))
    if not trainers:
        return Trained(unknown="the Trainer that takes these arguments is not seen")
    models, unknown = [], ""
    for home, trainer in dict.fromkeys(trainers):
        unknown = unknown or _own_loss(project, home, trainer, call)
        given = next((k.value for k in trainer.keywords if k.arg == "model"), trainer.args[0] if trainer.args else None)
        models.append(model_of(project, home, given) if given is not None else Model(unknown="the Trainer is given no model"))
    found = _judged(project, joined(models), Entry.HF)
    return Trained(found.usages, found.unknown or unknown, found.evidence)


def _is_trainer(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if external_role(qualified(module, call.func)) is Role.HF_TRAINER:
        return True
    site = find_class(project, module, dotted(call.func)) if dotted(call.func) else None
    return site is not None and class_facts(project, site.module, site.node).is_a(Role.HF_TRAINER)


def _own_loss(project: Project, module: SourceModule, trainer: ast.Call, arguments: ast.Call) -> str:
    """Why the loss is not the one the model returns, "" where it is."""
    if any(k.arg == "compute_loss_func" for k in trainer.keywords):
        return "the Trainer is given a loss function of its own"
    if any(k.arg in ("label_smoothing_factor", "deepspeed", "fsdp") for k in arguments.keywords):
        return "the arguments change how the loss is made or the model is wrapped"
    if any(k.arg is None for k in [*trainer.keywords, *arguments.keywords]):
        return "some arguments are not written out (**)"
    site = find_class(project, module, dotted(trainer.func)) if dotted(trainer.func) else None
    if site is not None:
        facts = class_facts(project, site.module, site.node)
        if external := [n for n in facts.external if family(n) != "transformers"]:
            return f"{site.name} has a base outside the project ({external[0]})"
        for name in ("compute_loss", "training_step", "_wrap_model", "create_accelerator_and_postprocess"):
            if facts.method(name) is not None:
                return f"{site.name}.{name} makes the loss in its own way"
    return ""


# Accelerate and Fabric


def _prepared(project: Project, module: SourceModule, call: ast.Call, framework: Framework) -> Trained:
    """The models handed to `accelerator.prepare(…)` or `fabric.setup(…)` of the object that got the flag."""
    makers = [(module, call)]
    if framework is Framework.ACCELERATE:
        names = [name for _, name in _holders(project, module, call)]
        makers = [
            (module, c) for c in module.nodes(ast.Call)
            if last(qualified(module, c.func)) == "Accelerator" and _holds(module, c, call, names)
        ]  # fmt: skip
    verbs = ("prepare", "prepare_model") if framework is Framework.ACCELERATE else ("setup", "setup_module")
    models: list[Model] = []
    for home, maker in makers:
        for place, name in _holders(project, home, maker):
            for use in (u for verb in verbs for u in _calls_on(place, name, verb)):
                found = [model_of(project, place, a) for a in use.args if not isinstance(a, ast.Starred)]
                models += [m for m in found if m.classes]
    if not models:
        return Trained(unknown="the model that is prepared is not followed to a class")
    return _judged(project, joined(models), Entry.FORWARD)


def _holds(module: SourceModule, maker: ast.Call, call: ast.Call, names: list[str]) -> bool:
    return any(n is call or (isinstance(n, ast.Name) and n.id in names) for n in ast.walk(maker))


def seen_training(project: Project, wrapper: Wrapper, trained: Trained) -> bool:
    """True if a backward pass stands near the wrapper: in its file, where the model is made, or in a file those import.

    A framework's Trainer calls backward itself. Without one the wrapper may only evaluate.
    """
    if wrapper.framework is not Framework.TORCH:
        return True
    near = {wrapper.module.path, *(e.path for e in trained.evidence)}
    for path in sorted(near):
        module = project.module(path)
        for found in module.imports.values() if module is not None else ():
            resolved = project.resolve(found[0].dotted, path)
            near |= {resolved.path} if resolved is not None else set()
    return any(b".backward(" in (project.read(path) or b"") for path in near)
