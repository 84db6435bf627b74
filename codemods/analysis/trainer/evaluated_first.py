"""An `evaluate` or a `predict` of a Hugging Face Trainer in front of the `train` that is to wrap the model.

Measured on two gloo processes with transformers 5.23 and accelerate 1.15: `evaluate` has Accelerate prepare the model for
evaluation, which marks it as prepared, and since accelerate 1.14 `prepare` leaves alone what bears the mark. `train` gets no
wrapper, also by another Trainer of the same model. In 1.13 nothing asks for the mark of a model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.frameworks import accelerate_pin, transformers_pin
from codemods.analysis.names import dotted, family
from codemods.analysis.trainer.trainer_calls import TrainerCall, trainer_calls
from codemods.analysis.wrapped.passing_on import runs_sharded
from codemods.analysis.wrapped.wrapper_tests import arms_exclude, tests_over
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

EVALUATES = ("evaluate", "predict")
_MARKS = (1, 14)  # of accelerate: `prepare_model` leaves alone what is marked
_PREPARES = (4, 31)  # of transformers: the evaluation loop prepares the model
# Methods of a Trainer that decide what is wrapped and when.
_DECIDE = ("_wrap_model", "_inner_training_loop", "_prepare_for_training", "evaluation_loop", "prediction_loop")
_OTHER_WAYS = lazy(rb"_is_accelerate_prepared|accelerator\.prepare|device_map\s*=\s*[\"']auto|\bn_gpu\s*=\s*1\b")
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EXITS = frozenset({"exit", "sys.exit", "quit", "os._exit"})


@record
class EvaluatedFirst:
    """call: the evaluation; train: the training behind it, of the same model."""

    call: ast.Call
    train: ast.Call


@record
class _Trained:
    trainer: TrainerCall
    name: str
    scope: FunctionNode | None


def evaluated_first(project: Project, module: SourceModule) -> Iterator[EvaluatedFirst]:
    """The first evaluation of each model in front of its training."""
    if module.path.endswith(".ipynb") or _OTHER_WAYS.search(module.data) or not _may_be_marked(project, module):
        return
    made = [m for t in trainer_calls(project, module) if (m := _followed(module, t)) is not None]
    for one in made:
        same = [m for m in made if m.scope is one.scope and _same_model(m, one)]
        if any(_gets_another_model(module, m) for m in same):
            continue
        train = next(iter(_calls(module, one, ("train",))), None)
        calls = sorted((c for m in same for c in _calls(module, m, EVALUATES)), key=_place)
        first = next((c for c in calls if train is not None and _comes_before(module, c, train)), None)
        if first is not None and train is not None and _is_first(module, same, first):
            yield EvaluatedFirst(first, train)


def _may_be_marked(project: Project, module: SourceModule) -> bool:
    accelerate, transformers = (pin(project, near=module.path) for pin in (accelerate_pin, transformers_pin))
    if accelerate is not None and accelerate.surely_below(_MARKS):
        return False
    return not (transformers is not None and transformers.surely_below(_PREPARES)) and not runs_sharded(project)


def _followed(module: SourceModule, trainer: TrainerCall) -> _Trained | None:
    """A Trainer of transformers that is bound to one name, and whose class leaves the wrap and the loops to transformers."""
    up = module.parent(trainer.call)
    targets = up.targets if isinstance(up, ast.Assign) else [up.target] if isinstance(up, ast.AnnAssign) else []
    name = dotted(targets[0]) if len(targets) == 1 else ""
    if family(trainer.kind) != "transformers" or trainer.opaque or not name:
        return None
    if trainer.argument("model_init") is not None or any(k.arg is None for k in trainer.call.keywords):
        return None
    if any(trainer.method(n) for n in _DECIDE) or any(_OTHER_WAYS.search(s.module.data) for s in trainer.lineage):
        return None
    for word in (*EVALUATES, "train"):
        own = trainer.method(word)
        if own is not None and not any(own[0].module.text_of(c.func) == f"super().{word}" for c in _calls_in(own[1])):
            return None
    return _Trained(trainer, name, module.function_of(trainer.call))


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _calls_in(function: FunctionNode) -> Iterator[ast.Call]:
    return (n for n in walk(function) if isinstance(n, ast.Call))


def _model_of(one: _Trained) -> str:
    given = one.trainer.argument("model")
    if given is None and one.trainer.call.args and not isinstance(one.trainer.call.args[0], ast.Starred):
        given = one.trainer.call.args[0]
    return dotted(given) if given is not None else ""


def _same_model(one: _Trained, other: _Trained) -> bool:
    return one is other or (bool(_model_of(one)) and _model_of(one) == _model_of(other))


def _calls(module: SourceModule, one: _Trained, words: tuple[str, ...]) -> list[ast.Call]:
    """The calls of the Trainer's methods in the function that makes it, behind the making."""
    here = (c for c in module.calls_named(*words) if module.function_of(c) is one.scope)
    calls = (c for c in here if _place(c) > _place(one.trainer.call))
    return [c for c in calls if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == one.name]


def _gets_another_model(module: SourceModule, one: _Trained) -> bool:
    """True where the Trainer, its model or the name of the model is bound anew in the function."""
    names = {one.name: 1, f"{one.name}.model": 0, f"{one.name}.model_wrapped": 0, f"{one.name}.accelerator": 0}
    stores: list[ast.Name | ast.Attribute] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    for node in stores:
        if isinstance(node.ctx, ast.Store) and (text := dotted(node)) in names and module.function_of(node) is one.scope:
            names[text] -= 1
    model, made = _model_of(one), _place(one.trainer.call)
    bound = (n for n in module.nodes(ast.Name) if n.id == model and isinstance(n.ctx, ast.Store) and _place(n) > made)
    return any(left < 0 for left in names.values()) or any(module.function_of(n) is one.scope for n in bound)


def _is_first(module: SourceModule, same: list[_Trained], call: ast.Call) -> bool:
    """True where no training of the model stands above: that one has wrapped it."""
    return not any(_place(t) <= _place(call) for m in same for t in _calls(module, m, ("train",)))


def _comes_before(module: SourceModule, call: ast.Call, train: ast.Call) -> bool:
    """True where a run that evaluates goes on to train: no exit between them, and no test that lets through one of them."""
    if _place(call) >= _place(train) or arms_exclude(module, call, train):
        return False
    round_train = {id(up) for up in module.ancestors(train)}
    for up in module.ancestors(call):
        if id(up) in round_train:
            break
        block = next((b for b in (getattr(up, n, None) for n in ("body", "orelse")) if isinstance(b, list) and b), [])
        if any(_ends(s) for s in block):
            return False
    above, there = list(tests_over(module, call)), list(tests_over(module, train))
    shared = {id(t) for t in above} & {id(t) for t in there}
    one, other = (_names(t for t in tests if id(t) not in shared) for tests in (above, there))
    return not one & other


def _ends(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return dotted(statement.value.func) in _EXITS
    return isinstance(statement, _ENDS)


def _names(tests: Iterator[ast.expr]) -> set[str]:
    """What the tests ask: `options.fit`, and neither `options` alone nor the module that a function is of."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(tests)
    while waiting:
        node = waiting.pop()
        if text := dotted(node):
            found.add(text)
        else:
            waiting += ast.iter_child_nodes(node)
    return found
