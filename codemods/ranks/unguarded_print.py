"""DDP203: a print that every rank makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.callers import entries
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_module, ranks_in_file, runs_trials
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS, ONE_PROCESS_HOOKS
from codemods.analysis.output.bad_numbers import by_own_data, of_bad_numbers
from codemods.analysis.output.called_lines import with_called_lines
from codemods.analysis.output.effects import Kind, effects_of, effects_of_function, phrases
from codemods.analysis.output.guard_edits import kept_to_zero
from codemods.analysis.output.guard_spelling import has_guard
from codemods.analysis.output.judged_lines import Judged, is_part_of_message, judged_runs
from codemods.analysis.output.muted_print import is_muted
from codemods.analysis.output.observers import is_left_to_rank_zero
from codemods.analysis.output.output_runs import is_guarded_at_its_calls
from codemods.analysis.output.own_lines import Own, own_line
from codemods.analysis.output.printing_functions import prints_below
from codemods.analysis.output.said_for_all import is_for_everybody
from codemods.analysis.ranks.cannot_run import cannot_be_imported
from codemods.analysis.ranks.rank_guards import decorated_ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.spawned_by_fit import starts_ranks_in_fit
from codemods.analysis.ranks.unused import is_never_run
from codemods.analysis.ranks.uses import calls_of
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import AddDecorator, Applicability, Evidence, Finding, Fix
from codemods.data.process_words import OFFERS_A_GUARD, SHOWS_PROCESSES
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.runtime.record import replace
from codemods.store.project import Project

_NEAR = 2  # statements between the lines of a start and of its end
_CLASSES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.HF_CALLBACK, Role.HF_TRAINER)
_HOOKS = LIGHTNING_HOOKS | HF_CALLBACK_HOOKS


class UnguardedPrint(DdpCodemod):
    """A print that every rank makes, so that each line appears once for each process.

    ## What it does
    Finds prints in hooks and methods of Lightning and transformers classes, and in functions that know the rank, that every
    rank reaches, and lets them through on rank 0 alone: by a function of the project that does nothing but print there
    (`log0(…)`), where the file has it at hand or imports something else of that file, by a method of the class
    (`self.log0(…)`), by the `print` of the object that knows the rank (`accelerator.print`, `fabric.print`, `trainer.print`
    from Lightning 2.1 on, `self.print` of a module), by the level of a logger that the class builds itself, else by a test.
    Neighbours share one, an `if` that holds nothing else takes it into its own, and a function that only prints is left at its
    top. Decorates a function of a Lightning file that does nothing but print with `rank_zero_only` (unsafe).

    ## Why it matters
    Each line appears once for each process: with eight processes a log is eight times as long, and the line of one rank that
    differs from the others is hard to find in it.

    ## Example
    ```python
    import lightning.pytorch as pl


    class Model(pl.LightningModule):
        def on_train_epoch_start(self):
            self.schedule.advance(self.current_epoch)
            print(f"epoch {self.current_epoch}")
            print(f"learning rate {self.hparams.lr}")
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl


    class Model(pl.LightningModule):
        def on_train_epoch_start(self):
            self.schedule.advance(self.current_epoch)
            self.print(f"epoch {self.current_epoch}")
            self.print(f"learning rate {self.hparams.lr}")
    ```

    ## Safety
    Only statements that print are changed, with the text that they compute. The `print` of an Accelerator, a Fabric or a
    Trainer shows a line once for each node. A function of the project takes the place of a print where it hands on what it is
    given unchanged, tests the global rank and works with one process. A logger's level is set where its class builds it, once and
    in any case, if no line of it names the rank; the other ranks go on to log warnings. The test is the one the function uses
    already, or fits the place and works with one process: in a script of Lightning a function of the project that reads the
    rank from what launchers set, `LOCAL_RANK` among it, and gives 0 without (`get_rank() == 0`); `trainer.is_global_zero` in a
    callback, `self.global_rank == 0` in a module's helper, which may run without a Trainer, `rank_zero_only.rank == 0` in a data
    module, `state.is_world_process_zero`, `accelerator.is_main_process`, a `rank` that is bound above. Unsafe:
    the launcher's `RANK`, read from the environment where nothing else is known; lines that show a number of each rank's own
    batches or of its clock, or stand under a test of one; methods of a module that no hook is seen to reach; the
    decorator, for it goes by the rank that Lightning reads from the environment, which the launcher must have set before
    the call.

    ## Refuses
    - Prints that name the rank, the process, the host or the device, or show what is measured on one process (memory).
    - Lines under a test whether a rank's own batch gave something at all (`score is None`): a report of that rank.
    - Methods of a LightningModule that only its constructor calls, or nobody, and projects that train with Fabric alone: without
      a Trainer the module's rank is 0 everywhere.
    - Prints in `except`, prints that speak of an error or a warning, and those under a test for NaN or infinity.
    - Prints in a loop over the rank's own share of the items, of what was filled from it, of values made of the rank, and of
      the answers for each batch of an evaluation.
    - Functions that one role alone runs, as the target of a `Process` under a test of the rank, and those that a pool of
      processes runs.
    - Functions that set a logger up, for all that they print: without handlers and a level the other ranks' lines are lost.
    - Half a line (`print("saving ... ", end="")`) whose other half is written elsewhere.
    - Blank lines (`print()`), lines right above an exit or an `assert` that can fail (with a text of its own: lines that show
      what it tests), and lines under an argument that every call leaves off (`verbose=False`).
    - Values that a rank has for itself: drawn at random where no common seed is certain, counted over the parameters of its stage
      of a pipeline; lines under a test of its device or environment; numbers of an evaluation step, and of an evaluation loop of
      a Trainer that gathers nothing; numbers in a function that prints other lines for each rank.
    - A header whose loop of lines stays, and such lines below a header that stays; one end of a work whose other end stays
      (`Saving`, `Saved`); a title whose result stays (`print("Time")`, `took = measure()`, `print(took)`), and such a result; a
      line of the same text as one that stays. Where the other one is unsafe, so is this one.
    - Calls of functions that fill a container of their file, whatever they print.
    - Lines beside a file that every rank writes: one test belongs round both, and a guarded line alone would hide it.
    - Lines of a function or a script in which no test is known at most of the prints: the rest would go on being repeated.
    - Lines about a batch that is short in `predict_step`: Lightning does not pad what the ranks predict.
    - A parameter called `rank` that every caller hands a number, as a low-rank adapter's: it separates no processes.
    - Prints whose argument calls something unknown or a collective: reported in hooks, for the call must stay on every rank.
    - Prints that are guarded already, by a test, a decorator, or every caller, and programs that put a `print` of their own in
      the place of Python's (`builtins.print = …`), bind the name (`print = accelerator.print`) or enter a `with Quiet(rank):`.
    - Lines of a logger in a program that sets a level by the rank, or under a test of it.
    - Lines of a logger where `logging.basicConfig`, or whatever else gives it a handler, runs on rank 0 alone, callers included:
      the others drop what is below WARNING.
    - Lines of a logger where each rank logs to a file that is named by its rank: the guard would empty the files of the others.
    - Constructors, and places where no test is sure to work.
    - Functions that do more than print, whose value is used, or that the project does not call: no decorator.
    - Hooks that only print: DDP201 takes them as a whole.
    - Files that hand each process prompts of its own with `split_between_processes`.
    - A loop with a progress bar stays outside the test, and so does a statement that binds a name used elsewhere.
    - One branch of an `if` whose other branch prints something that must stay; a line beside one that must stay, or beside a loop
      that prints numbers of each rank's own; neighbouring prints are one message, with the loops of prints among them.
    - What a Trainer predicts: each rank has its own samples; functions that ask a person for `input()`.
    - Scripts whose Trainer has one device on one node, and the trials of Ray Tune: they are one process.
    - `prepare_data`, which runs once on each node; a repository's own tests.
    - Functions of a repository of scripts that nothing in it calls, hands on or names; where a project has programs, places
      that none of them comes to with several processes: methods of a class that nobody makes or that its heirs define anew, what
      a program of one process alone reaches, functions whose Trainer has one device.
    - What stands outside `fit` in a program whose Trainer spawns its ranks there (`ddp_spawn`, several devices without a strategy
      below Lightning 2.0), where no launcher starts it: it is one process.
    - Lines that were left over from looking for an error: shapes and types of tensors alone, `print("HERE")`; lines right below a
      heading for debugging, which stays on every rank.
    - Lines under a switch for debugging that the project leaves off.
    - Copies that a newer file has taken the place of (`train_bak.py` beside `train.py`, files in a folder `legacy`) and that no
      program or text names.
    - The branch of a test that a run with several processes does not take (`args.dist == "OFF"`).
    - A test of the process group's rank above Lightning's Trainer, which starts the group: it lets every process in.
    - Modules of Lightning that are held in a `ModuleList`: they have no Trainer.
    - `load_state_dict` of a LightningModule where the project calls `load_from_checkpoint`: without a Trainer its rank is 0.
    - A name for the rank that is -1 without a process group.
    - The launcher's `RANK` where no command of the repository launches the program, and in a file whose processes
      `torch.multiprocessing.spawn` starts: nothing sets it there.

    ## References
    Two-process runs on Lightning 2.6.6: which tests work without a Trainer, what `rank_zero_info` does to a print's
    arguments; transformers 5: callbacks on two ranks.
    """

    code = "DDP203"
    severity = "noise"
    subject = "Print from one process"
    must_show = "The changed lines appear once, not once per process."
    printed = ()
    TRIGGERS = (
        (b"rank", b"RANK", b"lightning", b"torch.distributed", b"ccelerat", b"Trainer", b"Callback", b"Lightning", b"DataModule",
         b"WORLD_SIZE", b"TrainingArguments", b"DistributedDataParallel", b"is_main", b"is_master", b"is_primary"),
        SHOWS_PROCESSES,
        (b"print(", b".info("),
        OFFERS_A_GUARD,
    )  # fmt: skip
    SITES = (Site(rb"(?m)^(?![ \t]*(?:>>>|\.\.\.))[^\n]*?(?:\bprint|\.info)\(", b"print(", b".info("),)  # not in an example
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.holds(b"split_between_processes") or runs_trials(module):
            return
        found = [f for function in module.functions for f in self._function(module, project, function)]
        yield from with_called_lines(project, module, found)
        if not ranks_in_file(project, module) or cannot_be_imported(project, module):
            return
        if not starts_ranks_in_fit(project, module, None):  # the ranks come to nothing else of the script
            yield from self._runs(module, project, module.tree)

    def _function(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        if decorated_ranks(module, function, project=project).some or function.name.startswith("__"):
            return
        if function.name in ONE_PROCESS_HOOKS or _is_loaded_alone(project, module, function):
            return
        if not prints_below(module, function) or _asks_a_person(module, function):
            return  # asked first: whose class it is may stand in other files
        owner = module.parent(function)
        in_class = isinstance(owner, ast.ClassDef) and any(class_facts(project, module, owner).is_a(r) for r in _CLASSES)
        if not in_class and not ranks_in_file(project, module):
            return
        if not in_class and (printer := self._printer(module, project, function)) is not None:
            yield printer
            return
        if not has_guard(project, module, function, lines=True):
            return
        found = list(self._runs(module, project, function))
        if found and is_guarded_at_its_calls(project, module, function, looked_at=lambda f: prints_below(module, f)):
            return
        if found and (is_never_run(project, module, function) or is_run_by_nobody(project, module, function.body[0])):
            return
        if in_class and function.name in _HOOKS:
            found += self._told(module, project, function)
        if found and not is_left_to_rank_zero(project, module, function):  # the dearest question, asked of few
            yield from found

    def _runs(self, module: SourceModule, project: Project, function: FunctionNode | ast.Module) -> Iterator[Finding]:
        """A finding for each run of prints; one for all lines of the function that are assumed to be wanted once."""
        judged = judged_runs(project, module, function)
        made = [(one, self._of_run(module, project, function, one)) for one in judged.going]
        lines: list[Finding] = []
        for found in _at_one_level(module, made):
            if found.applicability is Applicability.SAFE:
                yield replace(found, remaining=judged.remaining)
            else:
                lines.append(found)
        if lines:
            edits = tuple(dict.fromkeys(edit for found in lines for edit in found.edits))
            yield replace(lines[0], fix=Fix(Applicability.UNSAFE, edits), remaining=judged.remaining)

    def _of_run(self, module: SourceModule, project: Project, function: FunctionNode | ast.Module, one: Judged) -> Finding:
        run = one.run
        kept = kept_to_zero(project, module, run, one.spelled)
        assumes = one.assumes or kept.assumes or _where_it_runs(project, module, function)
        assumes = assumes or by_own_data(module, function, run) or own_line(project, module, function, run.statements).assumes
        verb = "prints" if run.makes(Kind.PRINT) else "logs"
        message = f"every rank {verb} in {run_place(module, function)}: the output appears once for each process"
        evidence = [Evidence("safe", kept.how, module.path, run.first.lineno)]
        evidence += [Evidence("static", e.phrase, e.path, e.line) for e in run.effects.output[:2] if e.text != "print(…)"]
        level = Applicability.UNSAFE if assumes else Applicability.SAFE
        return self.finding(module, run.first, message, level=level, edits=kept.edits, evidence=evidence, reason=assumes)

    def _printer(self, module: SourceModule, project: Project, function: FunctionNode) -> Finding | None:
        """A function of a Lightning project that only prints, where no test for rank 0 is known."""
        plain = isinstance(function, ast.FunctionDef) and not function.decorator_list and module.parent(function) is module.tree
        if not plain or (planned := plan_rank_zero_only(module)) is None:
            return None
        if any(not is_for_everybody(module, statement) for statement in function.body):
            return None
        effects = effects_of_function(project, module, function)
        if not effects.only_output or any(e.kind is not Kind.PRINT for e in effects.output):
            return None
        if has_guard(project, module, function, lines=True) or not _is_called_for_nothing(project, module, function):
            return None  # who calls it may stand in many files
        if is_guarded_at_its_calls(project, module, function, looked_at=lambda f: prints_below(module, f)):
            return None
        if ranks_reaching(project, module, function.body[0]).some or is_run_by_nobody(project, module, function.body[0]):
            return None
        own = own_line(project, module, function, function.body)
        if is_muted(project, module, function.body[0]) or own.own is Own.RESULT or of_bad_numbers(module, function.body):
            return None
        return self.finding(
            module,
            function,
            f"every rank prints in {function.name}, which does nothing else: the output appears once for each process",
            level=Applicability.UNSAFE if own.assumes else Applicability.SAFE,
            reason=own.assumes,
            edits=[AddDecorator(module.path, module.span(function), planned.name), *planned.edits],
            evidence=[Evidence("static", e.phrase, e.path, e.line) for e in effects.output[:3]],
        )

    def _told(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        """Prints of a hook whose argument must still be worked out on every rank."""
        for call in module.calls_named("print"):
            statement = module.parent(call)
            if module.function_of(call) is not function or not isinstance(statement, ast.Expr):
                continue
            effects = effects_of(project, module, [statement])
            waits = [e for e in effects.of(Kind.COLLECTIVE, Kind.METRICS) if not e.guarded]
            if waits and any(e.kind is Kind.PRINT for e in effects.output) and is_for_everybody(module, statement):
                message = f"every rank prints in {function.name}: the line appears once for each process"
                reason = f"what it prints is worked out together by the ranks ({phrases(waits)}): keep that above the guard"
                yield self.finding(module, statement, message, reason=reason)


def _at_one_level(module: SourceModule, made: Sequence[tuple[Judged, Finding]]) -> list[Finding]:
    """The findings; one that belongs to the message of an unsafe one is as unsafe, so that both go or stay."""
    unsafe = [(one.run, found) for one, found in made if found.applicability is Applicability.UNSAFE]
    held = {n: found for run, found in unsafe for s in run.statements for n in walk(s) if isinstance(n, ast.Expr)}
    out = []
    for one, found in made:
        other = next((s for s in held if is_part_of_message(module, one.run, [s])), None)
        if found.applicability is Applicability.SAFE and other is not None:
            found = replace(found, fix=Fix(Applicability.UNSAFE, tuple(found.edits)), reason=held[other].reason)
        out.append(found)
    return out


def _is_loaded_alone(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for `load_state_dict` of a LightningModule where the project loads modules without a Trainer: the rank is 0 then."""
    owner = module.parent(function)
    if function.name != "load_state_dict" or not isinstance(owner, ast.ClassDef):
        return False
    loads = bool(project.files_containing(b"load_from_checkpoint("))
    return loads and class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)


def _asks_a_person(module: SourceModule, function: FunctionNode) -> bool:
    """True for a dialogue: whoever answers `input()` sits before one process."""
    inside = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return any(isinstance(c.func, ast.Name) and c.lineno in inside for c in module.calls_named("input"))


def _where_it_runs(project: Project, module: SourceModule, function: FunctionNode | ast.Module) -> str:
    """What is assumed of a method of a LightningModule that no hook is seen to call: it may serve one process at inference."""
    owner = None if isinstance(function, ast.Module) else module.parent(function)
    if isinstance(function, ast.Module) or not isinstance(owner, ast.ClassDef) or function.name in _HOOKS:
        return ""
    facts = class_facts(project, module, owner)
    if not facts.is_a(Role.LIGHTNING_MODULE) or entries(project, facts, function).hooks:
        return ""
    return f"assumes that training calls {function.name}: no hook of the class is seen to reach it"


def _is_called_for_nothing(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where the project calls the function, and no call wants a value of it."""
    sites = calls_of(project, module, function) or ()
    return bool(sites) and all(isinstance(site.module.parent(site.call), ast.Expr) for site in sites)


def run_place(module: SourceModule, function: FunctionNode | ast.Module) -> str:
    return "the script" if isinstance(function, ast.Module) else module.symbol(function)
