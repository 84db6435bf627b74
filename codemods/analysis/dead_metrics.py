"""Is the `compute_metrics` of a Trainer ever called? The proof that it is not, and what stands against believing it.

transformers calls it once per evaluation or prediction on every rank, if predictions and labels are both there; with
`prediction_loss_only=True` they are not (`trainer.py`: evaluate, evaluation_loop, prediction_step).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.analysis.class_index import HARMLESS_FAMILIES, class_facts, find_class
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.references import Mention, in_text_files
from codemods.analysis.trainer_calls import (
    DECISIVE,
    TrainerCall,
    constant,
    keyword,
    other_uses,
    returns_only_loss,
)
from codemods.findings import Evidence
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk

STRATEGIES = ("eval_strategy", "evaluation_strategy")
# Keys that an evaluation has without any compute_metrics.
_OWN_KEYS = frozenset(
    f"{prefix}_{key}"
    for prefix in ("eval", "test")
    for key in ("loss", "runtime", "samples_per_second", "steps_per_second", "jit_compilation_time",
                "model_preparation_time", "samples", "mem_cpu_alloc_delta", "mem_gpu_alloc_delta")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dead:
    """why: the proof. against: the reason not to touch it, "" if there is none. assumes: what the proof leaves open."""

    why: str
    evidence: tuple[Evidence, ...] = ()
    against: str = ""
    assumes: str = ""


def why_dead(trainer: TrainerCall, function: FunctionNode | None) -> Dead | None:
    """Why the function is never called, or None where it may be."""
    found = _loss_only(trainer) or _step_gives_no_predictions(trainer) or _never_evaluates(trainer)
    if found is None or found.against:
        return found
    against = next(_against(trainer, function), "")
    return Dead(found.why, found.evidence, against, found.assumes) if against else found


# The three proofs


def _loss_only(trainer: TrainerCall) -> Dead | None:
    arguments = trainer.arguments.call
    value = keyword(arguments, "prediction_loss_only") if arguments else None
    if value is None or constant(value) is not True:
        return None
    why = "prediction_loss_only=True keeps predictions from it"
    here = Evidence("static", "prediction_loss_only=True", trainer.module.path, value.lineno)
    if override := trainer.method("prediction_step"):
        if not returns_only_loss(override[1]):
            return Dead(why, (here,), f"{override[0].name} overrides prediction_step, which may give predictions all the same")
    if not trainer.is_plain and not trainer.opaque:
        return Dead(why, (here,), f"{last(trainer.kind)} of {family(trainer.kind)} evaluates in its own way")
    return Dead(why, (here,))


def _step_gives_no_predictions(trainer: TrainerCall) -> Dead | None:
    override = trainer.method("prediction_step")
    if override is None or not returns_only_loss(override[1]):
        return None
    site, method = override
    why = f"{site.name}.prediction_step returns no predictions"
    here = Evidence("static", "every return is (loss, None, None)", site.module.path, method.lineno)
    against = "" if trainer.arguments.call is not None else trainer.arguments.why_not
    return Dead(why, (here,), against)


def _never_evaluates(trainer: TrainerCall) -> Dead | None:
    """No strategy, no call, no callback that asks for an evaluation. Anything that cannot be followed: None."""
    if other_uses(trainer) != "" or _evaluates_itself(trainer):
        return None
    arguments = trainer.arguments
    why = "nothing here evaluates: no evaluation strategy, no evaluate() or predict()"
    if arguments.call is None:
        return _unless_asked_for(trainer) if arguments.filled else None
    for name in (*STRATEGIES, "evaluate_during_training", "eval_on_start"):
        value = keyword(arguments.call, name)
        if value is not None and not _is_off(value):
            return None
    if asked := _first_holding(trainer.project, b"should_evaluate"):
        return Dead(why, (), f"{asked} sets control.should_evaluate, which starts an evaluation")
    if not trainer.is_plain and not trainer.opaque:
        return Dead(why, (), f"{last(trainer.kind)} of {family(trainer.kind)} may evaluate in its own way")
    here = Evidence("static", "no evaluation strategy", trainer.module.path, arguments.call.lineno)
    return Dead(why, (here,), "", _intended(trainer, arguments.call) or _unknown_callback(trainer))


def _is_off(value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr == "NO"
    return isinstance(value, ast.Constant) and value.value in ("no", None, False)


def _intended(trainer: TrainerCall, arguments: ast.Call) -> str:
    """Signs that an evaluation was meant: then the strategy is missing, not the metric needless."""
    if any(keyword(arguments, name) is not None for name in STRATEGIES):
        return ""
    signs = [k.arg for k in arguments.keywords if k.arg in ("do_eval", "eval_steps") and constant(k.value) is not False]
    data = trainer.argument("eval_dataset")
    if data is not None and not isinstance(data, ast.Constant):
        signs.append("eval_dataset")
    return f"assumes that no evaluation is wanted, although {signs[0]} is given; else eval_strategy is missing" if signs else ""


def _unknown_callback(trainer: TrainerCall) -> str:
    value = trainer.argument("callbacks")
    added = trainer.module.calls_named("add_callback")
    if value is None and not added:
        return ""
    elements = list(value.elts) if isinstance(value, (ast.List, ast.Tuple)) else [] if value is None else [value]
    elements += [call.args[0] for call in added if call.args]
    for element in elements:
        func = element.func if isinstance(element, ast.Call) else element
        if not _is_known_callback(trainer.project, trainer.module, func):
            return f"assumes that {trainer.module.text_of(func)} does not ask for evaluations"
    return ""


def _is_known_callback(project: Project, module: SourceModule, func: ast.expr) -> bool:
    written = dotted(func)
    if site := find_class(project, module, written) if written else None:
        facts = class_facts(project, site.module, site.node)
        return not facts.unresolved and all(family(n) in HARMLESS_FAMILIES | {"transformers"} for n in facts.external)
    return family(qualified(module, func)) == "transformers"


def _unless_asked_for(trainer: TrainerCall) -> Dead | None:
    """Arguments from outside, and nobody in the repository is seen to give a strategy."""
    project = trainer.project
    for name in (*STRATEGIES, "do_eval", "eval_on_start"):
        if project.files_containing(name.encode()) or in_text_files(project, name):
            return None
    why = "nothing in this repository evaluates: no evaluation strategy, no evaluate() or predict()"
    return Dead(why, (), f"{trainer.arguments.why_not}, and an evaluation strategy given there makes it live")


def _evaluates_itself(trainer: TrainerCall) -> bool:
    """True where a class of the lineage calls one of the loops from somewhere else than the method of that name."""
    loops = ("evaluate", "_evaluate", "predict", "evaluation_loop", "prediction_loop", "hyperparameter_search")
    for site in trainer.lineage:
        for node in walk(site.node):
            if isinstance(node, ast.Attribute) and node.attr in loops:
                place = site.module.method_of(node)
                if place is None or place[1].name not in loops:
                    return True
    return False


# What stands against it


def _against(trainer: TrainerCall, function: FunctionNode | None) -> Iterator[str]:
    if trainer.opaque:
        yield f"the base {trainer.opaque[0]} of {trainer.lineage[0].name} is not in the project: it may use the function"
    if reader := next(attribute_uses(trainer.project), None):
        yield f"{reader} uses the attribute compute_metrics"
    for name in ("evaluate", "predict", "prediction_loop"):
        if override := trainer.method(name):
            yield f"{override[0].name} overrides {name}"
    if (override := trainer.method("evaluation_loop")) and not _hands_on(override[1]):
        yield f"{override[0].name} overrides evaluation_loop without handing prediction_loss_only on to it"
    if changed := next(_changed_elsewhere(trainer), ""):
        yield changed
    yield from _wanted(trainer, function)


def attribute_uses(project: Project) -> Iterator[Mention]:
    """`x.compute_metrics`, read or written; not that of a class with a method of that name which is no Trainer."""
    for path in project.files_containing(b".compute_metrics"):
        module = project.module(path)
        if module is None:
            yield Mention("unreadable", path, 0)
            continue
        for node in module.nodes(ast.Attribute):
            if node.attr != "compute_metrics":
                continue
            place = module.method_of(node) if dotted(node.value) == "self" else None
            own = place and any(isinstance(f, ast.FunctionDef) and f.name == "compute_metrics" for f in place[0].body)
            if not own:
                yield Mention("use", path, node.lineno)


def _hands_on(method: FunctionNode) -> bool:
    """True where the method calls that of its base class, and never with a prediction_loss_only of its own."""
    calls = [
        n for n in walk(method)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == method.name
        and isinstance(n.func.value, ast.Call) and dotted(n.func.value.func) == "super"
    ]  # fmt: skip
    written = {n.id for n in walk(method) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for call in calls:
        value = keyword(call, "prediction_loss_only")
        if value is None and len(call.args) > 2 and not any(isinstance(a, ast.Starred) for a in call.args):
            value = call.args[2]
        handed = value is None or constant(value) is True or (isinstance(value, ast.Name) and value.id == "prediction_loss_only")
        if not handed or "prediction_loss_only" in written:
            return False
    return bool(calls)


def _changed_elsewhere(trainer: TrainerCall) -> Iterator[str]:
    """Training arguments that decide are set on an object, or a loop is called with an argument of its own."""
    for word in sorted(DECISIVE - {"compute_metrics"}):
        for path in trainer.project.files_containing(word.encode()):
            module = trainer.project.module(path)
            for node in module.nodes(ast.Attribute) if module else ():
                if node.attr == word and not isinstance(node.ctx, ast.Load):
                    yield f"{path}:{node.lineno} sets {word}"
            for call in module.nodes(ast.Call) if module and word == "prediction_loss_only" else ():
                if constant(keyword(call, word)) is False and not last(dotted(call.func)).endswith(("Arguments", "Config")):
                    yield f"{path}:{call.lineno} passes prediction_loss_only=False"


def _wanted(trainer: TrainerCall, function: FunctionNode | None) -> Iterator[str]:
    """Somebody wants the numbers: then the code is broken, and removing the function is not the repair."""
    arguments = trainer.arguments.call
    if arguments is not None:
        best = keyword(arguments, "metric_for_best_model")
        if best is not None and not isinstance(best, ast.Constant):
            yield "metric_for_best_model is no literal: it may name a metric that only this function gives"
        elif best is not None and constant(best) not in (None, "loss", "eval_loss"):
            yield f"metric_for_best_model={constant(best)!r} wants a metric that only this function gives, and will not get it"
        generate = keyword(arguments, "predict_with_generate")
        if last(trainer.kind) == "Seq2SeqTrainer" and generate is not None and not _is_off(generate):
            yield "predict_with_generate asks for generated text, which only this function looks at"
    if reader := next(_key_reads(trainer, returned_keys(function)), ""):
        yield reader


def returned_keys(function: FunctionNode | None) -> tuple[str, ...]:
    """The keys of the dictionaries that the function returns, () where they are not all literal."""
    keys: list[str] = []
    for node in walk(function) if function else ():
        if isinstance(node, ast.Return):
            if not isinstance(node.value, ast.Dict):
                return ()
            for key in node.value.keys:
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                    return ()
                keys.append(key.value)
    return tuple(keys)


def _key_reads(trainer: TrainerCall, keys: tuple[str, ...]) -> Iterator[str]:
    """Who reads a metric that only the function gives: by its exact key where that is known, else any that is not built in."""
    project = trainer.project
    for key in keys:
        for word in (f"eval_{key}", f"test_{key}", f"eval/{key}"):
            for path in project.files_containing(word.encode()):
                module = project.module(path)
                for node in module.nodes(ast.Constant) if module else ():
                    if isinstance(node.value, str) and word in node.value:
                        yield f"{path}:{node.lineno} wants {word!r}, which only this function gives"
            if word.replace("/", "_") not in _OWN_KEYS and (found := in_text_files(project, word)):
                yield f"{found[0]} wants {word!r}, which only this function gives"
    for path in () if keys else project.files_containing(b"eval_"):
        module = project.module(path)
        if module is None or not any(m.partition(".")[0] == "transformers" for m in module.imported_modules):
            continue
        for node in module.nodes(ast.Constant):
            if isinstance(node.value, str) and node.value.startswith(("eval_", "test_")) and node.value not in _OWN_KEYS:
                if _is_read(module, node):
                    yield f"{path}:{node.lineno} reads {node.value!r}"


def _is_read(module: SourceModule, node: ast.Constant) -> bool:
    up = module.parent(node)
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Load)
    return isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "get"


def _first_holding(project: Project, word: bytes) -> str:
    return next(iter(project.files_containing(word)), "")
