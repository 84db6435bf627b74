"""DDP205: an experiment tracker that every rank reports to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_module, ranks_in_file
from codemods.analysis.files.file_calls import CHANGES, Act
from codemods.analysis.files.file_flow import steps_in
from codemods.analysis.frameworks import pin_of
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.names import qualified
from codemods.analysis.output.effects import Effect, Kind, effects_of, names_rank, phrases
from codemods.analysis.output.event_writers import writers_of_each_rank
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.output.observers import is_left_to_rank_zero, plain_body
from codemods.analysis.output.output_runs import Run, output_runs
from codemods.analysis.output.runs_of_a_program import may_be_started_by_a_library, runs_beside
from codemods.analysis.output.runs_of_the_parent import ReportWithoutRun, reports_without_run
from codemods.analysis.output.tracker_starts import asks_for_run, runs_of
from codemods.analysis.ranks.rank_guards import decorated_ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.started_groups import starts_no_group
from codemods.analysis.trainer.wandb_callbacks import reports_of_heirs
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, SetKeyword, WrapInGuard
from codemods.data.host_only import TRACKER_FUNCTIONS
from codemods.data.printed_errors import WAITING
from codemods.data.process_words import SHOWS_PROCESSES
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_CLASSES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.HF_CALLBACK, Role.HF_TRAINER)
_HARMLESS = frozenset({"finish"})  # does nothing without a run
_MODE_SINCE = (0, 10, 0)  # mode= of wandb.init: 0.9.7 has none


class TrackerOnEveryRank(DdpCodemod):
    """An experiment tracker that every rank reports to.

    ## What it does
    Finds `wandb.log(...)` and its like that every rank reaches, where only rank 0 has a run, and puts them under a test for
    rank 0, with all of a function that reads files for the report alone; so with `self._wandb.log(...)` in the hooks of an heir
    of transformers' `WandbCallback`. Finds `wandb.init(...)` on every rank, and gives the other ranks a run that is switched
    off (unsafe). Reports a `SummaryWriter` that each rank makes and writes to.

    ## Why it matters
    A `wandb.log` on a rank without a run ends that rank with "You must call wandb.init() before wandb.log()", and the others
    wait for it. A `wandb.init` on each of eight ranks makes eight runs of one training; eight SummaryWriters write eight
    event files into one folder, and TensorBoard draws eight curves over each other.

    ## Example
    ```python
    import lightning.pytorch as pl
    import wandb


    class Samples(pl.Callback):
        def on_validation_epoch_end(self, trainer, pl_module):
            table = wandb.Table(columns=["epoch"], data=[[trainer.current_epoch]])
            wandb.log({"samples": table})
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    import wandb


    class Samples(pl.Callback):
        def on_validation_epoch_end(self, trainer, pl_module):
            table = wandb.Table(columns=["epoch"], data=[[trainer.current_epoch]])
            if trainer.is_global_zero:
                wandb.log({"samples": table})
    ```

    ## Safety
    Safe: rank 0 has the only run, and does what it did. So are calls of the module `wandb` in a project where no rank but 0
    starts a run itself (a `WandbLogger` and transformers' callback start it on rank 0). Unsafe: `wandb.init`, which becomes
    `mode="disabled"` on the other ranks, so that what it returns stays defined and takes every call; and mlflow, which
    starts a run by itself.

    ## Refuses
    - One run for each rank on purpose: `group=`, or anything that names the rank, in a `wandb.init` that is not rank 0's alone.
    - `wandb.init` whose `mode` depends on something already, reported where keywords come from `**options`.
    - `wandb.init` where wandb is pinned below 0.10.0, which has no `mode=`, reported.
    - `wandb.log` where each rank has its run, be it one that is switched off (`mode=None if main else "disabled"`, WANDB_MODE
      set by rank): it is `wandb.init` that has to change, if anything.
    - `wandb.log` where no `wandb.init` of the project is seen under a test of the rank: each rank may have its run. The runs of
      another script, which nothing imports, do not count.
    - `wandb.finish()`, which does nothing without a run.
    - Calls under `if wandb.run is not None`, a test of the rank, a decorator, or called only from such a place.
    - Calls through a logger of Lightning's (`self.logger.experiment.log`), which are rank 0's already.
    - A collective among the arguments, reported: hoist it into a name above the guard.
    - A place where the rank is not known yet, reported: move it below `init_process_group`.
    - `wandb.log` in spawned processes, reported once for what is spawned: none of them has the parent's run, rank 0 neither.
      Says nothing of forked ones, which have it, and where the program starts a run in another place.
    - A SummaryWriter whose folder names the rank, or that only rank 0 writes to; where other ranks may write to it in some
      places alone, it reports their stray event files.
    - Files without a sign of several processes, a repository's own tests.

    ## References
    wandb's guide to distributed training (one process, or `group=` with a run for each); two-process runs of `wandb.log` in
    hooks with a `WandbLogger`, and of script-level `wandb.init`, on Lightning 2.6.6.
    """

    code = "DDP205"
    severity = "data"
    takes_several = True
    subject = "Report to the tracker from one process"
    must_show = "There is one run for one training, and no process ends with an error about a run that it has not."
    printed = ("You must call wandb.init() before wandb.log()", *WAITING)
    TRIGGERS = ((b"wandb", b"SummaryWriter", b"mlflow"), SHOWS_PROCESSES)
    SITES = (Site(
        rb"\bwandb[ \t]*\.[ \t]*(?:log|save|log_artifact|alert|init)[ \t]*\(|SummaryWriter[ \t]*\(|\bmlflow\.log_|"
        rb"\bimport init\b|\bself\._wandb\.\w+[ \t]*\(", b"wandb", b"SummaryWriter", b"mlflow", b"import init"
    ),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or _has_runs_on_purpose(project):
            return
        kept = all(start.guarded and not start.everywhere for start in runs_beside(project, module))
        without = reports_without_run(project, module)
        yield from (self._without_run(module, found) for found in without)
        for call, state in reports_of_heirs(project, module) if kept and module.holds(b"WandbCallback") else ():
            yield self._of_heir(module, project, call, state)
        yield from self._starts(module, project)
        for writer in writers_of_each_rank(project, module):
            yield self.finding(module, writer.call, writer.message, reason=writer.reason)
        if without or _each_rank_has_one(project, module) or _starts_without_a_test(project, module):
            return  # a test for rank 0 is no help where rank 0 has no run
        homes: dict[FunctionNode | ast.Module, None] = {}
        for call in _reports(module):
            homes[module.function_of(call) or module.tree] = None
        for home in homes:
            if isinstance(home, ast.Module) or not decorated_ranks(module, home, project=project).some:
                yield from self._home(module, project, home)

    def _without_run(self, module: SourceModule, found: ReportWithoutRun) -> Finding:
        """A report of a spawned process, whose parent has the only run."""
        name = qualified(module, found.call.func)
        home, init = found.init
        starter, spawn = found.spawn
        return self.finding(
            module,
            found.call,
            f"`{found.worker}` runs in processes of its own, and the run of wandb is that of the process which spawns them: each "
            f'that comes here ends with "You must call wandb.init() before {name}()"',
            evidence=[
                Evidence("static", "the run is started here, in the process that waits", home.path, init.lineno),
                Evidence("static", f"the processes of `{found.worker}` are spawned behind it", starter.path, spawn.lineno),
            ],
            reason=f"call wandb.init in `{found.worker}`, on rank 0, and report there alone",
            severity="crash",
        )

    def _of_heir(self, module: SourceModule, project: Project, call: ast.Call, state: str) -> Finding:
        """A hook of a class that derives from transformers' callback."""
        statement = module.statement_of(call)
        message = (
            f"every rank comes to this hook, and transformers starts the run on rank 0 alone: `{module.text_of(call.func)}` ends "
            "the other ranks with an error"
        )
        waits = effects_of(project, module, [statement]).of(Kind.COLLECTIVE, Kind.METRICS)
        if not isinstance(statement, ast.Expr) or statement.value is not call or waits or not module.is_whole(statement):
            return self.finding(module, call, message, reason=f"report under `if {state}.is_world_process_zero`")
        span = module.span(statement)
        guard = WrapInGuard(module.path, span, f"{state}.is_world_process_zero", span)
        return self.finding(module, statement, message, level=Applicability.SAFE, edits=[guard])

    def _home(self, module: SourceModule, project: Project, home: FunctionNode | ast.Module) -> Iterator[Finding]:
        if not isinstance(home, ast.Module):
            if not _comes_everywhere(project, module, home) or is_left_to_rank_zero(project, module, home):
                return
        elif not ranks_in_file(project, module):
            return
        held: set[int] = set()
        done = 0  # the line to which a guard round a whole body reaches
        for run in output_runs(project, module, home, lambda s: not names_rank(module.text_of(s))):
            lines = range(run.first.lineno, (run.last.end_lineno or run.last.lineno) + 1)
            held |= set(lines)
            if run.makes(Kind.FILE) or not (sent := [e for e in run.effects.output if _is_sent_without_run(project, e)]):
                continue
            first, last = _report_alone(project, module, run) or (run.first, run.last)
            if run.first.lineno > done and (found := self._guard(module, project, run, sent, (first, last))) is not None:
                done = last.lineno
                yield found
        for call in _reports(module):
            if (module.function_of(call) or module.tree) is home and call.lineno not in held:
                yield from self._waiting(module, project, call)

    def _guard(
        self, module: SourceModule, project: Project, run: Run, sent: list[Effect], ends: tuple[ast.stmt, ast.stmt]
    ) -> Finding | None:
        if ranks_reaching(project, module, run.first).some or asks_for_run(module, run.first):
            return None
        first, last = ends
        if (spelled := guard_for(project, module, first)) is None:
            return None
        message = f"every rank comes here, and {phrases(sent[:1])}: only rank 0 has a run, and the others end with an error"
        level, reason = spelled.level(), spelled.assumes
        if all(e.name.startswith("mlflow") for e in sent):
            message = f"every rank comes here, and {phrases(sent[:1])}: each rank's numbers stand there, as a run of its own"
            level, reason = Applicability.UNSAFE, "assumes that a run for each rank is not wanted"
        guard = guard_edit(project, module, first, last, spelled.test)
        edits: list[Edit] = [guard, *spelled.edits]
        evidence = [Evidence("static", e.phrase, e.path, e.line) for e in sent[:2]]
        return self.finding(module, run.first, message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _waiting(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Finding]:
        """A report whose value the ranks work out together."""
        statement = module.statement_of(call)
        waits = [e for e in effects_of(project, module, [statement]).of(Kind.COLLECTIVE, Kind.METRICS) if not e.guarded]
        simple = isinstance(statement, ast.Expr)
        if simple and waits and not ranks_reaching(project, module, call).some and not asks_for_run(module, statement):
            message = f"every rank comes here, and {module.text_of(call.func)}(…) reports to a tracker: only rank 0 has a run"
            reason = f"the value is worked out together ({phrases(waits)}): give it a name above a guard for rank 0"
            yield self.finding(module, statement, message, reason=reason)

    def _starts(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for start in runs_of(project):
            if start.module is not module or not start.everywhere or is_run_by_nobody(project, module, start.call):
                continue
            if _is_of_one_process(project, module):
                continue
            call = start.call
            message = "every rank starts a run of its own here: one training stands there once for each process"
            mode = next((k.value for k in call.keywords if k.arg == "mode"), None)
            spelled = guard_for(project, module, module.statement_of(call))
            if any(k.arg is None for k in call.keywords):
                reason = 'its keywords come from elsewhere: give the other ranks mode="disabled" there'
                yield self.finding(module, call, message, reason=reason)
            elif mode is None and (pin := pin_of(project, "wandb", near=module.path)) and pin.surely_below(_MODE_SINCE):
                reason = f"{pin.text} ({pin.path}:{pin.line}) has no mode=: start it on rank 0 alone, and report there alone"
                yield self.finding(module, call, message, reason=reason)
            elif spelled is None:
                reason = _NOT_YET if group_comes_later(project, module, call) else _NO_TEST
                yield self.finding(module, call, message, reason=reason)
            else:
                given = module.text_of(mode) if mode is not None else "None"
                value = f'{given} if {spelled.test} else "disabled"'
                edits = [SetKeyword(module.path, module.span(call), "mode", value), *spelled.edits]
                reason = "assumes that a run for each rank is not wanted"
                if mode is None and pin is not None and pin.minimum is not None and not pin.surely_at_least(_MODE_SINCE):
                    reason += f", and wandb {'.'.join(map(str, _MODE_SINCE))} or newer: {pin.text} allows older ones"
                yield self.finding(module, call, message, level=Applicability.UNSAFE, edits=edits, reason=reason)


def _is_of_one_process(project: Project, module: SourceModule) -> bool:
    """True for a script without any start of a group, and without torch.distributed, whatever it reads of a launcher."""
    return module.holds(b"__main__") and not module.holds(b"torch.distributed") and starts_no_group(project, module.path)


def _report_alone(project: Project, module: SourceModule, run: Run) -> tuple[ast.stmt, ast.stmt] | None:
    """The whole body of a function that reads files for the report and does nothing else: they may be there on rank 0 only."""
    function = module.function_of(run.first)
    body = plain_body(function) if function is not None else []
    if function is None or not any(s is run.last for s in body) or not (module.is_whole(body[0]) and module.is_whole(body[-1])):
        return None
    end = function.body[-1]
    if isinstance(end, ast.Return) and isinstance(end.value, ast.Name):
        return None  # it may be bound in the body
    if any(isinstance(n, (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)) for s in body for n in walk(s)):
        return None
    if not all(_is_report(e) for e in effects_of(project, module, body).items):
        return None
    acts = (step.act for step in steps_in(project, module, list(body)))
    reads = any(act is not None and act not in CHANGES and act is not Act.ASKS for act in acts)
    return (body[0], body[-1]) if reads else None


_NOT_YET = "the rank is not known yet: start it on rank 0, below where the process group is made"
_NO_TEST = 'no test for rank 0 is seen here: start it on rank 0 alone, or give the other ranks mode="disabled"'


def _has_runs_on_purpose(project: Project) -> bool:
    return any(start.on_purpose for start in runs_of(project))


def _each_rank_has_one(project: Project, module: SourceModule) -> bool:
    return any(start.each_has_one for start in runs_beside(project, module))


def _starts_without_a_test(project: Project, module: SourceModule) -> bool:
    """True where the project starts runs itself and none of them is seen under a test of the rank: then each rank may have one.

    A logger of Lightning or a callback of transformers starts its run on rank 0, beside what else the project has.
    """
    starts = runs_beside(project, module)
    if not starts or any(start.guarded for start in starts):
        return False
    return not may_be_started_by_a_library(project)


def _comes_everywhere(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    place = module.method_of(function.body[0])
    in_class = place is not None and any(class_facts(project, module, place[0]).is_a(role) for role in _CLASSES)
    return in_class or ranks_in_file(project, module) is not None


def _reports(module: SourceModule) -> list[ast.Call]:
    """The calls that report to a tracker's own module."""
    ends = {name.rpartition(".")[2] for name in TRACKER_FUNCTIONS} - _HARMLESS
    return [c for c in module.calls_named(*ends) if qualified(module, c.func) in TRACKER_FUNCTIONS]


def _is_sent_without_run(project: Project, effect: Effect) -> bool:
    """False for a report under `if wandb.run:`: it comes to no error, whoever has a run."""
    if not _is_report(effect):
        return False
    module = project.module(effect.path)
    calls = [c for c in _reports(module) if c.lineno == effect.line] if module is not None else []
    return module is None or not calls or not all(asks_for_run(module, module.statement_of(c)) for c in calls)


def _is_report(effect: Effect) -> bool:
    return effect.kind is Kind.TRACKER and effect.name.startswith(("wandb.", "mlflow.")) and effect.called != "finish"
