"""Trainers that find no targets in their batches: no parameter of the model's forward is called a label, or too many are.

Measured on transformers 5.23: `find_labels` takes the parameters of `forward` with "label" in their name; where there is none,
or the batch lacks one of them, and `label_names` does not say otherwise, each batch of an evaluation counts as one without
targets. The training does not ask, and goes on as ever.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.batch_keys import evaluation_keys
from codemods.analysis.trainer.references import binding_scope, bindings, names_of
from codemods.analysis.trainer.trainer_calls import TrainerCall, constant, keyword, literals
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

NAME = "label_names"
_SET = lazy(rb"\.label_names\b\s*\+?=(?!=)|[\"']label_names[\"']|^[ \t]+label_names[ \t]*:", re.M)
_STRATEGIES = ("eval_strategy", "evaluation_strategy")
_OWN_LOOP = ("prediction_step", "evaluate", "evaluation_loop", "prediction_loop")
_SAME_OBJECT = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval"})
_LOSSES = ("loss", "criterion", "cross_entropy", "nll", "bce")
_TARGETS = ("label", "target")


@record
class Model:
    """The project's class that a Trainer is given an object of. wrapped: the line that may wrap it in another, else 0."""

    site: ClassSite
    forward: FunctionNode
    wrapped: int = 0


@record
class Unlabelled:
    """A Trainer without labels. arguments: the call that `label_names` belongs into. targets: the inputs that the loss is made
    with, none where that is not shown. missing: what is called a label, and is in no batch. lost: what the evaluation lacks,
    each a clause.
    """

    arguments: ast.Call
    model: Model
    targets: tuple[str, ...]
    missing: tuple[str, ...]
    lost: tuple[str, ...]


def unlabelled(trainer: TrainerCall) -> Unlabelled | None:
    """What a Trainer loses for want of labels; None where it has them, never evaluates, or where that is not shown."""
    arguments = trainer.arguments.call
    if not trainer.is_plain or arguments is None or keyword(arguments, NAME) is not None or _is_set(trainer.project):
        return None
    if any(trainer.method(name) for name in _OWN_LOOP) or not _evaluates(trainer, arguments):
        return None
    model = _model_of(trainer)
    if model is None or "QuestionAnswering" in model.site.name or _makes_its_own(model.forward):
        return None
    labels = [a.arg for a in _parameters(model.forward) if "label" in a.arg]
    held = evaluation_keys(trainer) if labels else frozenset()
    targets, missing = [n for n in labels if n in held], [n for n in labels if n not in held]
    if labels and not (targets and missing):
        return None
    if not labels and not trainer.method("compute_loss"):
        targets = _targets(model.forward)
    return Unlabelled(arguments, model, tuple(targets), tuple(missing), _lost(trainer, arguments))


def _is_set(project: Project) -> bool:
    """True where the project gives the names in another way than as an argument."""
    def build() -> bool:
        paths = [p for p in project.files_containing(NAME.encode()) if not is_test_file(p)]
        return any(_SET.search(project.read(p) or b"") for p in paths)

    return project.memo("label names are set", build)


def _evaluates(trainer: TrainerCall, arguments: ast.Call) -> bool:
    data = trainer.argument("eval_dataset")
    if data is None or (isinstance(data, ast.Constant) and data.value is None):
        return False
    for name in _STRATEGIES:
        given = keyword(arguments, name)
        if isinstance(given, ast.Attribute) and given.attr in ("EPOCH", "STEPS"):
            return True
        if given is not None and any(v not in ("no", None, False) for v in literals(given) or ()):
            return True
    up = trainer.module.parent(trainer.call)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return False
    uses = names_of(trainer.module, target.id, binding_scope(trainer.module, target))
    return any(isinstance(p := trainer.module.parent(n), ast.Attribute) and p.attr == "evaluate" for n in uses)


# The model


def _model_of(trainer: TrainerCall) -> Model | None:
    value = trainer.argument("model") or next(iter(trainer.call.args), None)
    made = _made_here(trainer, value) if value is not None else None
    if made is None:
        return None
    site, wrapped = made
    facts = class_facts(trainer.project, site.module, site.node)
    found = facts.method("forward")
    if found is None or (found[0].node is not site.node and facts.unresolved):
        return None
    return Model(site, found[1], wrapped)


def _made_here(trainer: TrainerCall, value: ast.expr) -> tuple[ClassSite, int] | None:
    """(the class whose object the name holds, the line where a test may put another one in its place)."""
    if isinstance(value, ast.Call):
        site = find_class(trainer.project, trainer.module, dotted(value.func)) if dotted(value.func) else None
        return (site, 0) if site else None
    if not isinstance(value, ast.Name):
        return None
    module = trainer.module
    scope = binding_scope(module, value)
    sites: list[ClassSite] = []
    wrapped = 0
    for bound in bindings(module, value.id, scope):
        call = bound.value if isinstance(bound, (ast.Assign, ast.AnnAssign)) else None
        if not isinstance(call, ast.Call):
            return None
        if _is_same_object(call, value.id):
            continue
        if site := find_class(trainer.project, module, dotted(call.func)) if dotted(call.func) else None:
            if not _surely_runs_before(module, bound, trainer.call):
                return None
            sites.append(site)
        elif not _surely_runs_before(module, bound, trainer.call) and value.id in {dotted(a) for a in call.args}:
            wrapped = call.lineno
        else:
            return None
    return (sites[0], wrapped) if len(sites) == 1 else None


def _is_same_object(call: ast.Call, name: str) -> bool:
    """`model.to(device)` is the model."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _SAME_OBJECT and dotted(call.func.value) == name


def _surely_runs_before(module: SourceModule, statement: ast.AST, call: ast.Call) -> bool:
    """True for a statement of a block that the call stands in as well, at any depth: no test of its own stands before it."""
    while isinstance(up := module.parent(statement), (ast.With, ast.AsyncWith, ast.Try)):
        statement = up
    block = module.block_of(statement) if isinstance(statement, ast.stmt) else []
    return any(one is above for above in module.ancestors(call) for one in block)


# The signature


def _parameters(function: FunctionNode) -> list[ast.arg]:
    given = function.args
    packs = [a for a in (given.vararg, given.kwarg) if a is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *packs]


def _makes_its_own(forward: FunctionNode) -> bool:
    """True where the Trainer knows that the model makes a loss without labels."""
    given = forward.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [*zip(reversed(positional), reversed(given.defaults), strict=False)]
    defaults += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
    return any(a.arg == "return_loss" and constant(d) is True for a, d in defaults)


def _targets(forward: FunctionNode) -> list[str]:
    """The one input that the loss is made with: by the call that makes it, by its name, or as a key of `**kwargs`."""
    names = {a.arg for a in _parameters(forward)[1:]}
    pack = forward.args.kwarg.arg if forward.args.kwarg else ""
    names -= {pack}
    found = {n for n in names if "target" in n}
    for call in (n for n in walk(forward) if isinstance(n, ast.Call)):
        if any(word in last(dotted(call.func)).lower() for word in _LOSSES):
            read = {n.id for a in (*call.args, *(k.value for k in call.keywords)) for n in walk(a) if isinstance(n, ast.Name)}
            found |= read & names
    found |= {key for key in _keys_of(forward, pack) if any(word in key for word in _TARGETS)}
    return list(found) if len(found) == 1 else []


def _keys_of(forward: FunctionNode, pack: str) -> set[str]:
    """The keys that `kwargs["k"]`, `.get("k")` and `.pop("k")` read."""
    found: set[str] = set()
    for node in walk(forward) if pack else ():
        key: object = None
        if isinstance(node, ast.Subscript) and dotted(node.value) == pack:
            key = constant(node.slice)
        elif isinstance(node, ast.Call) and dotted(node.func) in (f"{pack}.get", f"{pack}.pop") and node.args:
            key = constant(node.args[0])
        if isinstance(key, str):
            found.add(key)
    return found


# The harm


def _lost(trainer: TrainerCall, arguments: ast.Call) -> tuple[str, ...]:
    metrics = trainer.argument("compute_metrics")
    called = metrics is not None and constant(metrics) is None and not isinstance(metrics, ast.Constant)
    lost = ["it gives no eval_loss", *(["compute_metrics is never called"] if called else [])]
    best = keyword(arguments, "metric_for_best_model")
    at_end = keyword(arguments, "load_best_model_at_end")
    if any(v not in (None, False) for given in (best, at_end) if given is not None for v in literals(given) or ()):
        lost.append("the choice of the best checkpoint ends the run with a KeyError")
    return tuple(lost)
