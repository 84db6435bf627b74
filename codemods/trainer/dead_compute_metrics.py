"""DDP601: a compute_metrics that is never called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.names import dotted, last
from codemods.analysis.output.guard_spelling import has_guard
from codemods.analysis.trainer.dead_metrics import Dead, why_dead
from codemods.analysis.trainer.live_metrics import guarding, unguarded_calls, writes
from codemods.analysis.trainer.metric_obstacles import attribute_uses, meant_for_a_trainer, returned_keys
from codemods.analysis.trainer.orphans import Removal, removal
from codemods.analysis.trainer.overwritten_metrics import why_overwritten
from codemods.analysis.trainer.references import (
    Mention,
    binding_scope,
    bindings,
    functions_named,
    in_comments,
    in_other_files,
    in_strings,
    in_text_files,
    names_of,
)
from codemods.analysis.trainer.trainer_calls import Handed, TrainerCall, trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropImport, DropKey, DropKeyword, Edit, Evidence, Finding, RemoveStatement
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

NAME = "compute_metrics"
LOGITS = "preprocess_logits_for_metrics"  # runs on predictions, for compute_metrics alone
# Training arguments that only feed the function.
FEEDS = ("include_for_metrics", "include_inputs_for_metrics", "batch_eval_metrics")
_HF = frozenset({"transformers", "trl", "peft", "sentence_transformers", "setfit"})


class DeadComputeMetrics(DdpCodemod):
    """A `compute_metrics` that is never called.

    ## What it does
    Finds a `compute_metrics=` argument of a Hugging Face `Trainer` that is provably never called: predictions are kept from it
    (`prediction_loss_only=True`, or a `prediction_step` that returns `(loss, None, None)`), or nothing ever evaluates; or that is
    called for nothing, as `eval_loss` is all that it returns, which the evaluation writes its own over. It takes
    the argument out, the function where nobody else refers to it, and what only the function used: imports,
    `evaluate.load(…)` objects, constants, helper functions. `preprocess_logits_for_metrics` goes with it.
    A function `compute_metrics` of a training script that nobody in the repository refers to goes likewise.
    In a live `compute_metrics` what only writes or prints goes under a test for rank 0: every rank calls it.

    ## Why it matters
    A metric that looks as if it were reported, and is not, misleads whoever tunes by it; and its metric scripts are still
    downloaded by every process at the start of each run.

    ## Example
    ```python
    import numpy as np
    from transformers import Trainer, TrainingArguments


    def compute_metrics(prediction):
        return {"accuracy": float(np.mean(prediction.predictions.argmax(-1) == prediction.label_ids))}


    def train(model, train_set, dev_set):
        args = TrainingArguments("out", eval_strategy="epoch", prediction_loss_only=True)
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=train_set,
            eval_dataset=dev_set,
            compute_metrics=compute_metrics,
        )
        trainer.train()
    ```

    ## Use instead
    ```python
    from transformers import Trainer, TrainingArguments


    def train(model, train_set, dev_set):
        args = TrainingArguments("out", eval_strategy="epoch", prediction_loss_only=True)
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=train_set,
            eval_dataset=dev_set,
        )
        trainer.train()
    ```

    ## Safety
    Safe: with the proof the function is called on no rank, so neither losses nor metrics change. An overridden
    `evaluation_loop` that calls super stays as it is. What returns nothing but `eval_loss` changes no number either: the
    evaluation has its own by then. Every rank has the same predictions, so a guard inside of a live one loses
    nothing; unsafe where it rests on the launcher's `RANK`. Unsafe where something that only the function used cannot go with it,
    where an evaluation seems to have been meant, or where the file is a library's and code elsewhere may import the function.

    ## Refuses
    - `metric_for_best_model` names one of its metrics, or is no literal: the numbers are wanted, the setting is the error
    - a callback, a script or a configuration file reads one of its keys (`eval_accuracy`)
    - `prediction_step`, `evaluate` or `predict` is overridden, or `evaluation_loop` without handing `prediction_loss_only` on
    - code reads or sets the attribute `compute_metrics`, or the Trainer subclass handles it or the training arguments itself
    - generation is on in a `Seq2SeqTrainer`
    - a comment beside the evaluation's setting says how it is turned on (`eval_strategy="no",  # "epoch" to evaluate`)
    - the training arguments come from a `**kwargs` that is not one dict literal for this call alone, or are changed on the way
    - they come from a command line of which no job file of the repository, or not all of it, is to be seen (`"$@"`): where all
      are seen, the removal is unsafe
    - a base of the Trainer subclass is not in the project, or the Trainer is not one of transformers
    - the argument is made by a call or an expression
    - a callback sets `control.should_evaluate`
    - a live function names the file that it writes again: the others would read it too early
    - the numbers of an unreferenced function are wanted by `metric_for_best_model` or a reader of its keys
    - an unreferenced function is named in a comment or a file that is no Python
    - another file reads the function's name and binds it nowhere: its import may be what is missing

    ## References
    transformers 5.23 `trainer.py`, `evaluation_loop` and `prediction_step`; two-process runs that count the calls. Every rank
    calls it with the gathered predictions of all ranks.
    """

    code = "DDP601"
    severity = "noise"
    subject = "Remove compute_metrics that is never called"
    must_show = "One evaluation runs to its end, and whatever reads its metrics finds the keys it wants."
    printed = ("KeyError: 'eval_", "The `metric_for_best_model` training argument is set to")
    TRIGGERS = ((b"compute_metrics",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        groups: dict[object, list[tuple[TrainerCall, Dead]]] = {}
        told: set[ast.AST] = set()
        for trainer in trainer_calls(project, module, with_argument=NAME):
            value = trainer.argument(NAME)
            if value is None or (isinstance(value, ast.Constant) and value.value is None):
                continue
            target = _target(project, module, value)
            function = target[1] if target else None
            dead = why_dead(trainer, function) or why_overwritten(trainer, function)
            if dead is None:
                if target and target[0] is module and target[1] not in told:
                    told.add(target[1])
                    yield from self._written_by_every_rank(module, project, target[1])
            elif reason := dead.against or _no_plain_name(module, value, target):
                message = f"{NAME} of this {last(dotted(trainer.call.func))} {dead.shown}: {dead.why}"
                yield self.finding(module, _place(trainer), message, evidence=dead.evidence, reason=reason)
            else:
                groups.setdefault(target[1] if target else value, []).append((trainer, dead))
        for group in groups.values():
            yield self._never_called(module, project, group)
        for function in functions_named(module, NAME):
            yield from self._unreferenced(module, project, function)

    def _never_called(
        self, module: SourceModule, project: Project, group: Sequence[tuple[TrainerCall, Dead]]
    ) -> Finding:
        handed = [h for trainer, _ in group for h in _dead_arguments(trainer)]
        edits: list[Edit] = [_dropped(module, h) for h in handed]
        first_nodes: list[tuple[SourceModule, ast.AST]] = [(module, n) for h in handed for n in _nodes(h)]
        plan = removal(project, first_nodes)
        value = group[0][0].argument(NAME)
        target = _target(project, module, value) if value is not None else None
        if target and target[0] is not module:
            plan = _with_far_function(project, module, plan, first_nodes, target)
        first, dead = group[0]
        open_points = [d.assumes for _, d in group if d.assumes] + plan.left + _idle_feeds(group)
        keys = ", ".join(returned_keys(target[1] if target else None))
        lost = f", so {keys} {'is' if ',' not in keys else 'are'} never reported" if keys and not dead.counts_for else ""
        message = f"{NAME} of this {last(dotted(first.call.func))} {dead.shown}: {dead.why}{lost}{_also(plan, NAME)}"
        return self.finding(
            module,
            _place(first),
            message,
            level=Applicability.UNSAFE if open_points else Applicability.SAFE,
            edits=[*edits, *plan.edits],
            evidence=[e for _, d in group for e in d.evidence] + _kept_override(first),
            reason="; ".join(dict.fromkeys(open_points)),
            group=f"{self.code}:{module.path}:{first.call.lineno}"
            if any(e.path != module.path for e in plan.edits)
            else "",
        )

    def _unreferenced(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        if not _is_of_hugging_face(module) or _referrer(project, module, function):
            return
        message = f"{NAME} is given to no Trainer and called by nobody in this repository, so its numbers are never reported"
        if sign := meant_for_a_trainer(project, module, function):
            yield self.finding(module, function, message, reason=f"{sign}: giving it to the Trainer may be what is missing")
            return
        plan = removal(project, [(module, function)])
        mentions = in_comments(module, NAME, skip=plan.nodes) + in_text_files(project, NAME)
        if mentions:
            yield self.finding(
                module, function, message, reason=f"{mentions[0]} has the word: see whether it means this function"
            )
            return
        open_points = list(plan.left)
        if not _is_script(project, module):
            open_points.insert(0, f"assumes that nobody outside this repository imports it from {module.path}")
        yield self.finding(
            module,
            function,
            message + _also(plan, ""),
            level=Applicability.UNSAFE if open_points else Applicability.SAFE,
            edits=[RemoveStatement(module.path, module.span(function)), *plan.edits],
            reason="; ".join(open_points),
        )

    def _written_by_every_rank(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        bare = unguarded_calls(module, function)
        if not bare:
            return
        call = next((c for c in bare if writes(module, c)), bare[0])
        shown = module.text_of(call.func)
        does = "writes the same file or record at once" if writes(module, call) else "prints it"
        message = f"every rank calls {function.name}, so {shown}(…) runs on each of them and every rank {does}"
        if ranks_in_file(project, module) and has_guard(project, module, function):
            return  # DDP202 and DDP203 see the same statements, and know a test for them
        guards = guarding(project, module, function)
        if guards is None or guards.why_not:
            advice = "guard this call by the global rank, not the function: every rank needs the dictionary it returns, or the "
            advice += "ranks would choose the best checkpoint differently"
            reason = f"{guards.why_not}; {advice}" if guards else advice
            yield self.finding(module, call, message, reason=reason)
            return
        yield self.finding(
            module,
            guards.first,
            message,
            level=Applicability.UNSAFE if guards.assumes else Applicability.SAFE,
            edits=guards.edits,
            evidence=[Evidence("static", "each rank has the gathered predictions of all ranks", module.path, function.lineno)],
            reason=guards.assumes,
        )


# What the argument is


def _target(project: Project, module: SourceModule, value: ast.expr) -> tuple[SourceModule, FunctionNode] | None:
    """The function that a plain name means, in this file or the one it is imported from."""
    value = _chosen(value)
    if not isinstance(value, ast.Name):
        return None
    bound = bindings(module, value.id, binding_scope(module, value))
    if len(bound) != 1:
        return None
    if isinstance(bound[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return module, bound[0]
    if not isinstance(bound[0], ast.ImportFrom):
        return None
    alias = next(a for a in bound[0].names if (a.asname or a.name) == value.id)
    source = "." * bound[0].level + (bound[0].module or "")
    resolved = project.resolve(source, module.path)
    far = project.module(resolved.path) if resolved and not resolved.rest else None
    found = [f for f in functions_named(far, alias.name) if isinstance(far.parent(f), ast.Module)] if far else []
    return (far, found[0]) if far and len(found) == 1 else None


def _chosen(value: ast.expr) -> ast.expr:
    """`f` of `f if wanted else None`, where asking has no effects: it is given or not, and no other is."""
    if not isinstance(value, ast.IfExp) or any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in walk(value.test)):
        return value
    sides = [s for s in (value.body, value.orelse) if not (isinstance(s, ast.Constant) and s.value is None)]
    return sides[0] if len(sides) == 1 else value


def _no_plain_name(module: SourceModule, value: ast.expr, target: object) -> str:
    if isinstance(value, ast.Lambda) or target:
        return ""
    if isinstance(value, ast.Name):
        bound = bindings(module, value.id, binding_scope(module, value))
        if len(bound) == 1 and isinstance(bound[0], (ast.Import, ast.ImportFrom)):
            return ""
        return f"what {value.id} is, is not shown by one definition"
    return f"{module.text_of(value)} is no plain name: making it may have effects"


def _place(trainer: TrainerCall) -> ast.keyword | ast.expr:
    found = trainer.handed(NAME)
    assert found is not None
    return found.place


def _dead_arguments(trainer: TrainerCall) -> list[Handed]:
    """The arguments that go: compute_metrics, and what prepares the predictions for it."""
    logits = trainer.handed(LOGITS)
    wanted = (trainer.handed(NAME), logits if logits and isinstance(logits.value, (ast.Name, ast.Lambda)) else None)
    return [h for h in wanted if h]


def _dropped(module: SourceModule, handed: Handed) -> Edit:
    edit = DropKey if isinstance(handed.holder, ast.Dict) else DropKeyword
    return edit(module.path, module.span(handed.holder), handed.name)


def _nodes(handed: Handed) -> tuple[ast.AST, ...]:
    return (handed.place,) if isinstance(handed.place, ast.keyword) else (handed.place, handed.value)


def _idle_feeds(group: Sequence[tuple[TrainerCall, Dead]]) -> list[str]:
    found = []
    for trainer, _ in group:
        given = [k.arg for k in trainer.arguments.call.keywords] if trainer.arguments.call else []
        found += [f"{name} in the training arguments then serves nobody" for name in FEEDS if name in given]
        left = trainer.argument(LOGITS)
        if left is not None and not isinstance(left, (ast.Name, ast.Lambda)) and not isinstance(left, ast.Constant):
            found.append(f"{LOGITS} is then never called either")
    return found


def _kept_override(trainer: TrainerCall) -> list[Evidence]:
    if (override := trainer.method("evaluation_loop")) is None:
        return []
    site, method = override
    return [
        Evidence(
            "static", f"{site.name}.evaluation_loop calls super and stays as it is", site.module.path, method.lineno
        )
    ]


def _also(plan: Removal, but: str) -> str:
    """What goes with it, for the message."""
    names = [n for n in plan.names if n != but] + [e.name for e in plan.edits if isinstance(e, DropImport)]
    return (
        f"; {', '.join(dict.fromkeys(names))} {'serves' if len(names) == 1 else 'serve'} nothing else" if names else ""
    )


def _with_far_function(
    project: Project,
    module: SourceModule,
    plan: Removal,
    first: list[tuple[SourceModule, ast.AST]],
    target: tuple[SourceModule, FunctionNode],
) -> Removal:
    """The plan with the function in another file, if its import goes and nobody else refers to it there."""
    far, function = target
    imports = [e for e in plan.edits if isinstance(e, DropImport)]
    here = {Mention("import", module.path, e.span.line) for e in imports}
    others = set(in_other_files(project, far.path, function.name)) - here
    if not imports or others or names_of(far, function.name, far.tree) or function.decorator_list:
        return plan
    wider = removal(project, [*first, (far, function)])
    named = in_strings(project, function.name, skip=wider.nodes) + in_text_files(project, function.name)
    named += in_comments(far, function.name, skip=wider.nodes)
    if named:
        plan.left.append(f"{function.name} ({far.path}:{function.lineno}) is named at {named[0]}")
        return plan
    wider.edits.append(RemoveStatement(far.path, far.span(function)))
    return wider


# A function that nobody refers to


def _is_of_hugging_face(module: SourceModule) -> bool:
    return any(name.partition(".")[0] in _HF for name in module.imported_modules)


def _referrer(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where anything in code refers to the function, or its removal is not a plain one."""
    scope = module.parent(function)
    if not isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)) or function.decorator_list:
        return True
    if len(bindings(module, NAME, scope)) != 1 or names_of(module, NAME, scope):
        return True
    if isinstance(scope, ast.Module):
        users = in_other_files(project, module.path, NAME)
        if missing := next((u for u in users if u.kind == "unbound"), None):
            return left(module, function, "{} reads the name and binds it nowhere: its import may be missing", str(missing))
        if users or any(attribute_uses(project)):
            return True
    return bool(in_strings(project, NAME, skip=frozenset({function})))


def _is_script(project: Project, module: SourceModule) -> bool:
    """True for a file that is run, not imported: it has a main guard, or builds its Trainer."""
    guard = any(isinstance(s, ast.If) and "__main__" in module.text_of(s.test) for s in module.tree.body)
    return guard or bool(trainer_calls(project, module))
