"""DDP201: a hook that only prints, plots or writes, on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.files.never_true import is_never_put_out
from codemods.analysis.output.effects import Effects, Kind, effects_of
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.left_lines import most_logs_stay
from codemods.analysis.output.levels_by_rank import has_handlers_on_zero_alone, has_levels_by_rank
from codemods.analysis.output.log_files_by_rank import has_log_file_of_each_rank
from codemods.analysis.output.logger_levels import Level, has_level_by_rank, level_by_rank
from codemods.analysis.output.observers import GATHER_FIRST, Observer, observers, transformers_body
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.rank_data import rank_local
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import AddDecorator, Applicability, Edit, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.files.source import FunctionNode, SourceModule
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.store.project import Project

_LONGEST_SUBJECT = 60  # characters
_NAMED = 2  # methods in the subject of a commit


class UnguardedHook(DdpCodemod):
    """A hook that only prints, plots or writes runs on every rank.

    ## What it does
    Finds hooks of a Lightning callback or module whose whole body is output that one rank can make for all, and decorates
    them with `@rank_zero_only`; so for methods that write a file and are called from such hooks alone. The body of a hook of
    a transformers `TrainerCallback` goes under `if state.is_world_process_zero:`. A hook that only logs to a logger which its
    class builds, and which has many lines, stays as it is: the level of the logger goes by the rank.

    ## Why it matters
    Every hook runs on every rank. With four ranks each line stands four times in the log, and four processes write the same
    file at once: lines are lost or torn, and a rank that renames or deletes breaks the others.

    ## Example
    ```python
    import json

    from lightning.pytorch.callbacks import Callback


    class History(Callback):
        def on_train_end(self, trainer, pl_module):
            with open("history.json", "w") as f:
                json.dump({"epochs": trainer.current_epoch}, f)
    ```

    ## Use instead
    ```python
    import json

    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.utilities import rank_zero_only


    class History(Callback):
        @rank_zero_only
        def on_train_end(self, trainer, pl_module):
            with open("history.json", "w") as f:
                json.dump({"epochs": trainer.current_epoch}, f)
    ```

    ## Safety
    Safe where the body, followed through the project's functions, makes output and nothing else. Attributes that the hook
    sets are read by methods that are decorated with it, or under a guard. Unsafe where calls nobody knows stand between the
    output: the finding names them.

    ## Refuses
    - Hooks that every rank needs (`setup`, `training_step`, `configure_optimizers` …).
    - A collective in the body, hidden ones included: `trainer.log_dir`, `metric.compute()`, `self.log`. The metrics of the
      trainer may be read in `on_validation_epoch_end` and the like, unless a callback logs in the same hook; elsewhere the
      read must stay on every rank. Reported where another such hook holds a collective and the validation steps log what the
      sanity check leaves to be reduced.
    - Random numbers, a run of the model, a raised error, a returned value.
    - State that something else reads: attributes of the trainer, the module or `control`, attributes read elsewhere.
    - Unknown calls that stand apart from the output, and those in which the ranks may meet: of a function or a method of the
      class that no source is seen of, of the trainer, a model, Lightning or torch.
    - Output that names the rank, the host or the process.
    - Files of what only this rank has seen (`outputs`, lists filled in a step), reported: gather first. Lines that show it (the
      mean of such a list) are no repetition: nothing is said.
    - Hooks that only log lines, in a file of which every rank goes on logging more: the logger wants a filter.
    - Hooks that only create folders: other ranks may write into them (DDP204).
    - Hooks that are decorated, guarded, or leave by a rank test already.
    - Files in which no import shows the flavour of Lightning to import from, reported.
    - Hooks that only log, in a program that sets the level or the handlers of its loggers by the rank, or gives each rank a log
      file of its own: silent.
    - Hooks of a class that no program of the project makes; a repository's own tests.

    ## References
    Two-process runs on Lightning 2.6.6: decorated hooks with each hidden collective, `callback_metrics` read under a guard in
    `on_train_epoch_end` (hangs) and `on_validation_epoch_end` (finishes; hangs behind a callback that logs there, before a
    collective of the module, and in the sanity check beside one); transformers 5, callbacks on two ranks.
    """

    code = "DDP201"
    severity = "noise"
    subject = "Put out on one process what hooks show"
    must_show = "Files and output appear once, not once per process."
    printed = WAITING
    READS_TESTS = False
    TRIGGERS = ((b"def on_",), (b"print", b"open", b"log", b"write", b"save", b"dump", b"plt", b"to_csv", b"remove"))

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        """With the names of the methods, where they are few: `Run plot_usage on one process`."""
        names = list(dict.fromkeys(f.symbol.rpartition(".")[2] for f in findings))
        said = f"Run {' and '.join(names)} on one process"
        return said if 0 < len(names) <= _NAMED and len(said) <= _LONGEST_SUBJECT else cls.subject

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for node in module.nodes(ast.ClassDef):
            if not node.bases:
                continue
            made = observers(project, module, node)
            logging = [o for o in made.values() if all(e.kind is Kind.LOG for e in o.effects.output)]
            if logging and most_logs_stay(project, module, [o.function for o in logging]):
                unlevelled = {o.function for o in logging if level_by_rank(project, module, _run_of(o)) is None}
                made = {name: o for name, o in made.items() if o.function not in unlevelled}
            for observer in made.values():
                if all(is_never_put_out(project, e.path, e.line) for e in observer.effects.output):
                    continue
                run = _run_of(observer)
                if has_level_by_rank(project, module, run) or _is_dropped_elsewhere(project, observer.effects):
                    continue
                if not is_run_by_nobody(project, module, run.first):
                    level = level_by_rank(project, module, run)
                    yield self._decorate(module, observer, _group(module, node, observer, made), level)
            if class_facts(project, module, node).is_a(Role.HF_CALLBACK):
                yield from self._transformers(module, project, node)

    def _decorate(self, module: SourceModule, made: Observer, group: str, level: Level | None) -> Finding:
        function = made.function
        message = _message(function, made.effects, hook=made.is_hook)
        evidence = [Evidence("static", e.phrase, e.path, e.line) for e in made.effects.output[:3]]
        if made.level is Applicability.SAFE and not made.told:
            evidence.append(_does_nothing_else(module, function))
        if made.told:
            return self.finding(module, function, message, evidence=evidence, reason=made.told)
        planned = plan_rank_zero_only(module)
        if planned is None:
            reason = "no import here shows which rank_zero_only to use, lightning.pytorch's or pytorch_lightning's"
            return self.finding(module, function, message, evidence=evidence, reason=reason)
        edits: list[Edit] = [AddDecorator(module.path, module.span(function), planned.name), *planned.edits]
        if level is not None:  # it only logs, and its logger is set up for all such lines at once
            edits = list(level.edits)
        return self.finding(
            module, function, message, level=made.level, edits=edits, evidence=evidence, reason=made.assumes, group=group
        )

    def _transformers(self, module: SourceModule, project: Project, node: ast.ClassDef) -> Iterator[Finding]:
        for function in node.body:
            if not isinstance(function, ast.FunctionDef) or not (body := transformers_body(project, module, function)):
                continue
            if is_run_by_nobody(project, module, body[0]):
                continue
            effects = effects_of(project, module, body)
            if _is_dropped_elsewhere(project, effects):
                continue
            message = _message(function, effects, hook=True)
            evidence = [Evidence("static", e.phrase, e.path, e.line) for e in effects.output[:3]]
            if any(e.kind is Kind.FILE for e in effects.output) and (own := rank_local(project, module, function, body)):
                reason = f"{own}: {GATHER_FIRST}"
                yield self.finding(module, function, message, evidence=evidence, reason=reason)
                continue
            test = f"{function.args.args[2].arg}.is_world_process_zero"
            guard = guard_edit(project, module, body[0], body[-1], test)
            safe = Applicability.SAFE
            evidence.append(_does_nothing_else(module, function))
            yield self.finding(module, function, message, level=safe, edits=[guard], evidence=evidence)


def _does_nothing_else(module: SourceModule, function: FunctionNode) -> Evidence:
    text = f"{function.name} and what it calls put something out, and change nothing that another rank reads"
    return Evidence("safe", text, module.path, function.lineno)


def _is_dropped_elsewhere(project: Project, effects: Effects) -> bool:
    """True for lines of a logger alone where the program sets its loggers up by the rank: the others say nothing of them, or
    say it in a file of their own."""
    if any(e.kind is not Kind.LOG for e in effects.output):
        return False
    return has_levels_by_rank(project) or has_handlers_on_zero_alone(project) or has_log_file_of_each_rank(project)


def _run_of(made: Observer) -> Run:
    return Run((made.function.body[0],), made.effects)


def _group(module: SourceModule, node: ast.ClassDef, made: Observer, all_made: dict[str, Observer]) -> str:
    """One name for a method that sets state and those that read it: reading alone under the decorator is no harm, so a
    method that sets it on an assumption holds back none that is safe.
    """
    for setter in all_made.values():
        readers = [all_made[name] for name in setter.needs if name in all_made and all_made[name] is not setter]
        together = bool(readers) and all(reader.level is setter.level for reader in readers)
        if together and (made is setter or made in readers):
            return f"{module.path}:{node.name}:{node.lineno}:{setter.level.value}"
    return ""


def _message(function: FunctionNode, effects: Effects, *, hook: bool) -> str:
    files = [e for e in effects.output if e.kind is Kind.FILE]
    opened = [e for e in files if e.called != "write"] or files
    reached = "every rank runs" if hook else "every rank calls"
    first = (opened or effects.output)[0]
    done = f"{reached} {function.name}, which {first.kind.value} by {first.text}"
    return f"{done}: the ranks overwrite or repeat each other's output" if opened else f"{done}: that appears once for each rank"
