"""Reductions that wait for the end of an epoch, and the code that may meet them on some ranks only.

Measured on Lightning 2.6.6, two processes: a training value with `sync_dist=True` is reduced when the metrics are first read
after the epoch. On rank 0 the progress bar reads them in `on_train_epoch_end`, before the module's own hook; the other ranks
go straight on to that hook. A collective in it then pairs with rank 0's reduction: the run hangs or mixes values. A read of
`trainer.callback_metrics` under a rank test does the same; at the end of an evaluation it does so to what is logged there, and
to nothing else: while one runs, the Trainer's results are those of the evaluation (`FitLoop._results`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.hooks import EVALUATION_HOOKS
from codemods.analysis.logged.behind_runs import is_behind_a_run
from codemods.analysis.names import dotted
from codemods.analysis.ranks.collectives import PENDING, collective_at
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

TRAINING_ENDS = ("on_train_epoch_end", "training_epoch_end")
_NO_SANITY = lazy(rb"num_sanity_val_steps[\"']?\s*[=:]\s*0(?![.\d])")
_FIRST_IN_THE_SANITY_CHECK = ("on_validation_epoch_end",)
EVALUATION_ENDS = ("on_validation_epoch_end", "on_test_epoch_end", "validation_epoch_end", "test_epoch_end")


@record
class Place:
    """A line somewhere in the project, and what stands there."""

    text: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.text} ({self.path}:{self.line})"


def guarded_read(project: Project, *, evaluation: bool) -> Place | None:
    """A read of `trainer.callback_metrics` & co. on some ranks only; with `evaluation`, in an evaluation's epoch-end hook."""
    return project.keep(("guarded metric read", evaluation), lambda: _guarded_read(project, evaluation))


def _guarded_read(project: Project, evaluation: bool) -> Place | None:
    for view in sorted(PENDING):
        for path in project.files_containing(view.encode()):
            module = None if is_test_file(path) else project.module(path)
            for node in module.nodes(ast.Attribute) if module else ():
                if node.attr != view or module is None:
                    continue
                function = module.function_of(node)
                if evaluation and (function is None or function.name not in EVALUATION_ENDS):
                    continue
                if not evaluation and function is not None and function.name in EVALUATION_HOOKS:
                    continue
                if ranks_at(module, node, project=project).some and not is_behind_a_run(project, module, node):
                    return Place(f"{view} is read on some ranks only", path, node.lineno)
    return None


def logged_by_a_callback(project: Project, hook: str) -> Place | None:
    """A callback of the project that logs in `hook`, the end of an evaluation: what it logs waits to be reduced when the hooks
    behind it run, the module's own among them.
    """
    return project.keep(("logged by a callback", hook), lambda: _logged_by_a_callback(project, hook))


def _logged_by_a_callback(project: Project, hook: str) -> Place | None:
    if hook not in EVALUATION_ENDS:
        return None
    for path in project.files_containing(f"def {hook}(".encode()):
        module = None if is_test_file(path) else project.module(path)
        for function in module.functions if module else ():
            owner = module.class_of(function) if module and function.name == hook else None
            if module is None or owner is None or class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE):
                continue
            for node in walk(owner):
                if isinstance(node, ast.Call) and _logs_through_the_module(module, node) and _may_wait(project, module, node):
                    return Place(f"{owner.name} logs in {hook}", path, node.lineno)
    return None


def _logs_through_the_module(module: SourceModule, call: ast.Call) -> bool:
    """`pl_module.log(...)`, whatever the module is called; not `math.log(x)`, not `logger.log(...)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("log", "log_dict"):
        return False
    owner = dotted(call.func.value)
    return owner.partition(".")[0] not in module.imports and not any(w in owner for w in ("logger", "experiment", "wandb"))


def nothing_waits_in_training(project: Project) -> bool:
    """True where the project logs, and no value of a training epoch is left to be reduced at its end: none has `sync_dist`,
    and none may be a metric.
    """
    return project.keep("nothing waits in training", lambda: _nothing_waits(project))


def _nothing_waits(project: Project) -> bool:
    seen = False
    for path in sorted({p for word in (b".log(", b".log_dict(") for p in project.files_containing(word)}):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named("log", "log_dict") if module else ():
            if module is None or not _logs_through_the_module(module, call):
                continue
            seen = seen or dotted(call.func).startswith(("self.", "pl_module."))
            function = module.function_of(call)
            if (function is None or function.name not in EVALUATION_HOOKS) and _may_wait(project, module, call):
                return False
    return seen


def waits_at_evaluation_end(project: Project, module: SourceModule, function: FunctionNode) -> Place | None:
    """A log in this hook at the end of an evaluation, or of a callback before it: what the steps logged is reduced by then,
    but for those of the sanity check before the training.
    """
    for node in walk(function):
        if isinstance(node, ast.Call) and _logs_through_the_module(module, node) and _may_wait(project, module, node):
            return Place(module.text_of(node.func), module.path, node.lineno)
    if function.name == "on_validation_epoch_end" and "sanity_checking" not in module.text_of(function):
        return logged_by_a_callback(project, function.name) or logged_in_the_sanity_check(project)
    return logged_by_a_callback(project, function.name)


def logged_in_the_sanity_check(project: Project) -> Place | None:
    """A log of a validation step that waits to be reduced when `on_validation_epoch_end` runs in the sanity check.

    There `update_eval_epoch_metrics` reads nothing (Lightning 2.6.6), so the first read is the hook's own: on rank 0 alone,
    before a barrier of the hook, it hangs before the first training step.
    """
    return project.keep("logged in the sanity check", lambda: _logged_in_the_sanity_check(project))


def _logged_in_the_sanity_check(project: Project) -> Place | None:
    if any(_NO_SANITY.search(project.read(path) or b"") for path in project.files_containing(b"num_sanity_val_steps")):
        return None
    for path in project.files_containing(b"def validation_step("):
        module = None if is_test_file(path) else project.module(path)
        for step in module.functions if module else ():
            owner = module.class_of(step) if module and step.name == "validation_step" else None
            if module is None or owner is None:
                continue
            called = {n.func.attr for n in walk(step) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
            steps = [f for f in owner.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and f.name in called]
            for call in (n for f in (step, *steps) for n in walk(f) if isinstance(n, ast.Call)):
                if _logs_through_the_module(module, call) and _may_wait(project, module, call):
                    return Place(module.text_of(call.func), path, call.lineno)
    return None


def _may_wait(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True unless the value is shown to stay each rank's own: no `sync_dist`, and no metric among what is logged.

    Lightning up to 1.6 reduces every value of an epoch.
    """
    given = {k.arg: k.value for k in call.keywords}
    synced = given.get("sync_dist")
    if None in given or (synced is not None and not (isinstance(synced, ast.Constant) and not synced.value)):
        return True
    new = any(n.partition(".")[0] in ("lightning", "lightning_fabric") for n in module.imported_modules)
    pin = lightning_pin(project, near=module.path)
    if not new and (pin is None or not pin.surely_at_least((1, 7))):
        return True
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    position = 0 if function == "log_dict" else 1
    value = call.args[position] if len(call.args) > position else given.get("dictionary", given.get("value"))
    return value is None or _may_hold_a_metric(module, value)


def _may_hold_a_metric(module: SourceModule, value: ast.expr, depth: int = 0) -> bool:
    if isinstance(value, ast.Dict):
        return any(k is None or _may_hold_a_metric(module, v, depth) for k, v in zip(value.keys, value.values, strict=True))
    if isinstance(value, ast.Name):
        given = [b.value for b in bindings_of(module, value) if b.value is not None]
        return depth > 2 or any(_may_hold_a_metric(module, v, depth + 1) for v in given)
    if isinstance(value, (ast.Attribute, ast.Subscript)):
        return dotted(value if isinstance(value, ast.Attribute) else value.value).startswith(("self.", "pl_module."))
    return isinstance(value, (ast.DictComp, ast.IfExp))


def epoch_end_collective(project: Project) -> Place | None:
    """A collective in a hook that the project's modules and callbacks run at the end of a training epoch."""
    return project.keep("epoch-end collective", lambda: _collective(project, TRAINING_ENDS))


def mixed_up_in_the_sanity_check(project: Project, module: SourceModule, function: FunctionNode) -> str:
    """Why `trainer.callback_metrics` may not be read in this hook on rank 0 alone, "" where it may.

    The read is then the first one behind the sanity check's steps: the reduction of what they logged meets a collective in
    another `on_validation_epoch_end`. Measured on Lightning 2.6.6: with a `self.all_gather` or a barrier in the module's hook, or
    a barrier in a callback's, the run hangs before the first step; in `on_validation_end` and without such a hook it does not.
    """
    if function.name not in _FIRST_IN_THE_SANITY_CHECK or "sanity_checking" in module.text_of(function):
        return ""
    logged = logged_in_the_sanity_check(project)
    met = project.keep("validation-end collective", lambda: _collective(project, _FIRST_IN_THE_SANITY_CHECK)) if logged else None
    if met is None or (met.path == module.path and function.lineno <= met.line <= (function.end_lineno or 0)):
        return ""
    return (
        f"in the sanity check nothing has reduced yet what {logged} leaves, and rank 0 alone would do so here while the other "
        f"ranks go on: {met}, a hang before the first step; read the metrics on every rank, and guard what is made of them"
    )


def _collective(project: Project, hooks: tuple[str, ...]) -> Place | None:
    for name in hooks:
        for path in project.files_containing(f"def {name}(".encode()):
            module = None if is_test_file(path) else project.module(path)
            for function in module.functions if module else ():
                if function.name != name or module is None or "sanity_checking" in module.text_of(function):
                    continue
                owner = module.class_of(function)
                facts = class_facts(project, module, owner) if owner else None
                if facts is None or not (facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.LIGHTNING_CALLBACK)):
                    continue
                for text, line in _collectives_of(project, module, function):
                    return Place(f"{name} runs {text}", path, line)
    return None


def _collectives_of(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[str, int]]:
    """The collectives of a hook, those under a test and those of the functions it calls too."""
    for node in walk(function):
        if not isinstance(node, (ast.Call, ast.Attribute)):
            continue
        found = collective_at(module, node, project)
        if found is not None and found.name not in PENDING and not _only_logs(found.text):
            yield found.text, node.lineno
        elif isinstance(node, ast.Call) and _may_be_a_metric(node):
            yield f"{module.text_of(node.func)}, which may be a metric's", node.lineno
        elif isinstance(node, ast.Call) and (inner := reached_by(project, module, node)) is not None:
            if inner.collective.name not in PENDING and not _only_logs(inner.collective.text):
                yield inner.text, node.lineno


def _may_be_a_metric(call: ast.Call) -> bool:
    """`self.x.compute()`: nearly always a metric, wherever it was made."""
    own = isinstance(call.func, ast.Attribute) and call.func.attr == "compute" and not call.args and not call.keywords
    return own and dotted(call.func).startswith(("self.", "pl_module."))


def _only_logs(text: str) -> bool:
    """True for `self.log(metric)` and `self.log(..., sync_dist=True)`: they only add to what waits."""
    return ".log(" in text or ".log_dict(" in text
