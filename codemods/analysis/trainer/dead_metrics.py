"""Is the `compute_metrics` of a Trainer ever called? The proof that it is not, and what stands against believing it.

transformers calls it once per evaluation or prediction on every rank, if predictions and labels are both there; with
`prediction_loss_only=True` they are not (`trainer.py`: evaluate, evaluation_loop, prediction_step).
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import HARMLESS_FAMILIES, class_facts, find_class
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.trainer.job_arguments import Jobs, jobs_of
from codemods.analysis.trainer.metric_obstacles import obstacles
from codemods.analysis.trainer.references import in_text_files
from codemods.analysis.trainer.told_switches import told_switch
from codemods.analysis.trainer.trainer_calls import (
    TrainerCall,
    constant,
    is_off,
    keyword,
    other_uses,
    returns_only_loss,
)
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

STRATEGIES = ("eval_strategy", "evaluation_strategy")


@record
class Dead:
    """why: the proof. against: the reason not to touch it, "" if there is none. assumes: what the proof leaves open.

    counts_for: "nothing" where the function is called, and nothing comes of it; "" where it never is.
    """

    why: str
    evidence: tuple[Evidence, ...] = ()
    against: str = ""
    assumes: str = ""
    counts_for: str = ""

    @property
    def shown(self) -> str:
        return f"counts for {self.counts_for}" if self.counts_for else "is never called"


def why_dead(trainer: TrainerCall, function: FunctionNode | None) -> Dead | None:
    """Why the function is never called, or None where it may be."""
    found = _loss_only(trainer) or _step_gives_no_predictions(trainer) or _never_evaluates(trainer) or _started_loss_only(trainer)
    if found is None or found.against:
        return found
    against = next(obstacles(trainer, function), "")
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
            return Dead(
                why, (here,), f"{override[0].name} overrides prediction_step, which may give predictions all the same"
            )
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
        if value is not None and not is_off(value):
            return None
    if asked := _first_holding(trainer.project, b"should_evaluate"):
        return Dead(why, (), f"{asked} sets control.should_evaluate, which starts an evaluation")
    if not trainer.is_plain and not trainer.opaque:
        return Dead(why, (), f"{last(trainer.kind)} of {family(trainer.kind)} may evaluate in its own way")
    here = Evidence("static", "no evaluation strategy", trainer.module.path, arguments.call.lineno)
    if told := told_switch(trainer.module, arguments.call):
        return Dead(why, (here,), f"the comment at {told.path}:{told.line} keeps the evaluation for whoever turns it on")
    return Dead(why, (here,), "", _intended(trainer, arguments.call) or _unknown_callback(trainer))


def _intended(trainer: TrainerCall, arguments: ast.Call) -> str:
    """Signs that an evaluation was meant: then the strategy is missing, not the metric needless."""
    if any(keyword(arguments, name) is not None for name in STRATEGIES):
        return ""
    signs = [k.arg for k in arguments.keywords if k.arg in ("do_eval", "eval_steps") and constant(k.value) is not False]
    data = trainer.argument("eval_dataset")
    if data is not None and not isinstance(data, ast.Constant):
        signs.append("eval_dataset")
    return (
        f"assumes that no evaluation is wanted, although {signs[0]} is given; else eval_strategy is missing"
        if signs
        else ""
    )


def _unknown_callback(trainer: TrainerCall) -> str:
    value = trainer.argument("callbacks")
    if value is None and any(k.arg is None for k in trainer.call.keywords) and trainer.packed is None:
        return "assumes that no callback among the ** arguments asks for evaluations"
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


def _started_loss_only(trainer: TrainerCall) -> Dead | None:
    """Arguments from a command line, and every command of the repository asks for the loss only."""
    jobs = jobs_of(trainer) if trainer.arguments.filled and "command line" in trainer.arguments.why_not else None
    if jobs is None or jobs.unknown or not jobs.every("prediction_loss_only"):
        return None
    why = "every job of this repository that starts it gives --prediction_loss_only, which keeps predictions from it"
    if override := trainer.method("prediction_step"):
        if not returns_only_loss(override[1]):
            against = f"{override[0].name} overrides prediction_step, which may give predictions all the same"
            return Dead(why, jobs.places, against)
    return _by_jobs(trainer, jobs, why)


def _by_jobs(trainer: TrainerCall, jobs: Jobs, why: str) -> Dead:
    wanted = jobs.some("metric_for_best_model", "predict_with_generate")
    if wanted:
        return Dead(why, jobs.places, f"{wanted} asks for a number that only this function gives")
    if not trainer.is_plain and not trainer.opaque:
        return Dead(why, jobs.places, f"{last(trainer.kind)} of {family(trainer.kind)} may evaluate in its own way")
    places = ", ".join(dict.fromkeys(f"{e.path}:{e.line}" for e in jobs.places[:3]))
    return Dead(why, jobs.places, "", f"assumes that it is always started as at {places}")


def _unless_asked_for(trainer: TrainerCall) -> Dead | None:
    """Arguments from outside, and nobody in the repository is seen to give a strategy."""
    project = trainer.project
    jobs = jobs_of(trainer) if "command line" in trainer.arguments.why_not else None
    if jobs is not None and not jobs.unknown and not _first_holding(project, b"should_evaluate"):
        if jobs.some(*STRATEGIES, "eval_on_start", "evaluate_during_training"):
            return None
        why = "no job of this repository that starts it asks for an evaluation, and no code calls for one"
        return _by_jobs(trainer, jobs, why)
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


def _first_holding(project: Project, word: bytes) -> str:
    return next(iter(project.files_containing(word)), "")
