"""DDP305: one rank decides, and the others do not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.guards import failing_exits
from codemods.analysis.guards.agreed_skips import ASSUMED, advice_for_skip, agreed_skips
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.guards.counted_by_one import counted_by_one
from codemods.analysis.guards.empty_rounds import is_of_a_loop
from codemods.analysis.guards.measured_models import only_measures
from codemods.analysis.guards.one_rank_decisions import Decision, Form, decisions, tests_gathered_loss
from codemods.analysis.guards.raised_alike import raised_alike
from codemods.analysis.guards.reduced_tests import reduced_test
from codemods.analysis.guards.set_by_one_rank import is_decision, set_by_one_rank, stays_on_one_rank
from codemods.analysis.guards.sums_left_out import SumLeftOut, sums_left_out
from codemods.analysis.guards.swallowed_errors import swallowed
from codemods.analysis.names import dotted, family
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.short_texts import short
from codemods.analysis.variance.consequences import consequence, without_loss
from codemods.analysis.variance.exits import is_failure
from codemods.analysis.variance.guesses import is_guess
from codemods.analysis.variance.mismatches import Form as Parting
from codemods.analysis.variance.mismatches import Mismatch, mismatches_in
from codemods.analysis.variance.values import Cause, Link
from codemods.analysis.variance.wording import after_an_error, chain, head, message
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter
from codemods.data.printed_errors import WAITING
from codemods.data.rank_variance import COLLECTIVE_WORDS, SERVERS
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.store.project import Project

# What a file of several processes speaks of; what is decided in the others is asked of those that import them.
_PROCESSES = (b"torch.distributed", b"ightning", b"Trainer", b"ccelerat", b"DistributedDataParallel", b"import distributed",
              b"deepspeed.initialize(")  # fmt: skip
_OWN_WORDS = (b"should_stop", b"should_training_stop", b"finally", b"sys.exit", b"exit()", b"exit(0)", b"isnan", b"isfinite",
              b"isinf", b"return None", b"early_stop", b"stop_early", b"EarlyStop")  # fmt: skip
_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class OneRankDecision(DdpCodemod):
    """A decision to stop or to skip that one rank takes alone.

    ## What it does
    Finds `trainer.should_stop = True` under a rank test, or decided by the rank's own clock, disk or batch, and reduces it
    over the ranks behind it. Reports a loop that is left for what a signal handler sets, a flag or a `threading.Event`. In
    a training loop of raw torch, finds an exit for a loss that is not a number, and lets all ranks take it when one does;
    so for a `training_step` that returns None. Reports `control.should_training_stop` under a rank test, such a None
    through helpers, an exception that a `backward` hook swallows, what rank 0 alone sets where it decides over all ranks, a
    loop that is left by rank 0, or by the answer of an object that rank 0 alone gives anything, and a collective in a
    `finally`, which an exception on one rank leads to. Reports a rank that leaves out a batch (for what it holds, or since
    an error left its result empty), an output of its model or a score that is missing, or the backward of a wrapper for
    what its batch holds, and one that ends by `exit()` in an exception handler, also in the `forward` of a model, and a way
    that is drawn from random numbers whose seed takes the rank. Reports a learning rate that each rank changes by its own
    loss, and a sum over the ranks that one leaves out which has nothing to add to it (`if n > 0:` round the `all_reduce` of
    `n`). Finds `sys.exit(1)` and `raise` for a loss that is not a number, where the repository starts the program so that
    the other ranks run on: by srun without `--kill-on-bad-exit`, by submitit, by `torch.distributed.launch` of a torch
    below 1.8, by processes that are joined in turn.

    ## Why it matters
    The rank that stops makes no more collectives. The others wait for it in the next backward pass, until the time-out. The way
    of the value that decides, as the review page draws it:

    ```text
    some ranks | the others
    │   │
    ●   ○   train.py:9
    │   │   its sampler gives each rank its own share of the data
    ●   ○   train.py:13  loss = model(batch).mean()
    ◆───╮   train.py:14
    │   ┆   each rank decides for itself here
    ■╌╌╌┆   train.py:17  torch.distributed.all_reduce
        ┆   these wait here for the others
    ```

    ## Example
    ```python
    import time

    import lightning.pytorch as pl


    class TimeLimit(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if time.monotonic() > self.end:
                trainer.should_stop = True
    ```

    ## Use instead
    ```python
    import time

    import lightning.pytorch as pl


    class TimeLimit(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if time.monotonic() > self.end:
                trainer.should_stop = True
            trainer.should_stop = trainer.strategy.reduce_boolean_decision(trainer.should_stop, all=False)
    ```

    ## Safety
    Always unsafe: that any rank may stop all of them is an assumption, and each call costs a collective. One process alone
    decides as before: the reduction of Lightning does nothing there, and that of raw torch stands behind `is_initialized()`. A
    `training_step` that returns None by the rank's own batch skips it on all ranks, with a loss of gradients of zero.

    ## Refuses
    - The truth of a loader (`if not loader: return`), which has batches on all ranks or on none: silent.
    - Says nothing in a repository's own tests.
    - Says nothing where the decision is made of what every rank has: the epoch, the step, reduced metrics, configuration,
      the state of a checkpoint, also where a handler begins anew without one.
    - Says nothing where a collective in the function, or above the test in the loop, may have made the value everybody's.
    - Says nothing of a loss that nothing but its name shows, and which is called reduced or gathered.
    - Says nothing of a collective that the called function keeps to rank 0 by a test of its own: DDP301 judges it.
    - Says nothing of the learning rate of an optimizer of single tensors (`Adam([delta])`): it may be the rank's own.
    - Says nothing of a loop that rank 0 leaves where all leave it in the same round, by the same test in its body.
    - Says nothing of a loop in which no rank waits for another, as where the model was built without its wrapper (`ddp=False`).
    - Says nothing of an output that is asked for None where the `forward` of the model is seen and never returns None.
    - Says nothing of an exit with a status other than 0, or of a `raise`, where only torchrun, `mp.spawn` or another launcher
      that stops the others is seen to start the program.
    - Says nothing of an exception that a function catches which measures a model: it makes no step of an optimizer, and nothing
      of a repository with programs calls it.
    - Says nothing of an exception of the project's own where every `raise` of it stands under a test of what all ranks have.
    - Says nothing of an exception round the import of a package that may be missing, and what is set up by it.
    - Says nothing of exceptions that a server (Flask, FastAPI, Streamlit, Gradio) catches: one process runs it.
    - Says nothing of what the ranks answer together: `core_context.preempt.should_preempt()`, `accelerator.check_trigger()`.
    - Says nothing of a draw where one of the seeds of its library does not take the rank, or none is seen.
    - Says nothing of the control that the callbacks of transformers give back to their Trainer.
    - Says nothing of an entry of a dict in a field (`self.config["task"]`) where another entry of it is the process's own.
    - Says nothing of such a sum where the tested number counts batches or samples, which are there on all ranks or on none,
      where it was reduced above, and where the other branch makes the sum, too.
    - Says nothing of a number of a dict to which a time of the process was added: which of them decides is not shown.
    - Reports a decorated hook, and one with an early exit by rank: the reduction has to stand where every rank comes.
    - Reports Lightning older than 1.6, which has no `trainer.strategy`.
    - Reports `control.should_training_stop`: what the callback is given is the same on every rank, so the rank test can go.
    - Reports a `training_step` that returns None (Lightning 2.3 refuses it with several processes, older ones hang) where a rank
      may leave it in another way, in a loop or a handler, and in a project with sharded parameters or steps made by hand.
    - Reports a loop that rank 0 leaves: its decision has to be broadcast; a counter that rank 0 alone advances, counted on all.
    - Reports a collective in a `finally`: its place is behind the `try`.
    - Reports a test whose value is no tensor of a known name, a `return`, and a test with an `else`.

    ## References
    Lightning 2.6.6 on two processes (`should_stop` is not reduced by the Trainer); its error "Skipping the `training_step` by
    returning None in distributed training is not supported"; runs with torch 2.13 over gloo.
    srun's manual (`--kill-on-bad-exit`, `--wait`; KillOnBadExit is 0 as slurm.conf is delivered); pytorch issue 41067 and pull
    request 49305 for `torch.distributed.launch`.
    """

    code = "DDP305"
    severity = "hang"
    subject = "Decide on all ranks together"
    must_show = "A process whose own number says stop, and one whose does not, go the same way."
    printed = WAITING
    TRIGGERS = ((*COLLECTIVE_WORDS, *_OWN_WORDS),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        origins: set[Link] = set()
        named = any(word in module.data for word in _PROCESSES) or not left(module, None, _NAMES_NONE)
        for found in decisions(project, module) if named else ():
            edits, reason = _repair(project, module, found)
            shown = [Evidence("static", f"`{short(module, found.node)}`", module.path, found.node.lineno)]
            if found.guard is not None:
                shown.insert(0, Evidence("static", "only rank 0 passes the test", module.path, found.guard.line))
            if found.node.lineno in told and left(module, found.node, "it is changed together with another one"):
                continue
            told |= {found.node.lineno, found.anchor.lineno, *_changed_with(project, module, found)}
            yield self.finding(
                module,
                found.node,
                _message(module, found),
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                evidence=shown,
                reason=reason,
                severity=without_loss(project, module, found.node) if found.form is Form.NO_LOSS else "",
            )
        caught = swallowed(project, module) if module.holds(b"except") else ()
        whole = {found.node.lineno for found in caught if found.handler is not None}  # DDP309 tells these
        serves = any(family(name) in SERVERS for name in module.imported_modules)  # one process answers requests
        partings = mismatches_in(project, module)
        for parted in partings:
            if is_of_a_loop(parted, partings):
                continue
            if parted.form in (Parting.RAISES, Parting.WAITS) and (parted.node.lineno in whole or serves):
                left(module, parted.node, "DDP309 reports this handler, or a server catches it in one process")
                continue
            if parted.form is Parting.RAISES and group_comes_later(project, module, parted.node):
                left(module, parted.node, "who fails there has not joined the others yet")
                continue  # what fails on one rank there most often fails on all
            if parted.form in (Parting.RAISES, Parting.WAITS) and (
                only_measures(project, module, parted.node)
                or (raised_alike(project, module, parted.node) and left(module, parted.node, _ALIKE))
            ):
                continue
            lines = {parted.node.lineno, getattr(parted.leaving, "lineno", 0)}
            if parted.form is Parting.FAILS or (parted.form is Parting.ENDS and is_failure(parted.leaving)):
                if not lines & told and not (is_guess(project, module, parted) and left(module, parted.node, _GUESS)):
                    told |= lines
                    yield from self._failing(project, module, parted)
                continue
            origin = parted.value.origin if parted.value.cause is Cause.RANK else None
            if origin is not None and origin in origins:
                continue  # one place decides over all of them
            if is_decision(parted) and not lines & told and not (
                is_guess(project, module, parted) and left(module, parted.node, _GUESS)
            ):
                if stays_on_one_rank(project, module, parted) and left(module, parted.node, "it stays on one rank"):
                    continue
                if tests_gathered_loss(project, module, parted.node) and left(module, parted.node, "the loss was gathered"):
                    continue
                origins |= {origin} if origin is not None else set()
                told |= lines
                told_as = message(parted, head(module, parted.node))
                at = set_by_one_rank(module, parted)
                if at is not parted.node and at is not parted.leaving:
                    told_as = f"only some ranks set this, and in line {parted.node.lineno} {told_as}"
                skip = parted.leaving if parted.form is Parting.NO_LOSS else None
                edits, also = agreed_skips(project, module, skip)
                told |= also
                yield self.finding(
                    module, at, told_as, evidence=chain(parted), level=_UNSAFE if edits else _DISPLAY, edits=edits,
                    reason=ASSUMED if edits else _advice(project, module, parted), severity=consequence(project, module, parted),
                )  # fmt: skip

        for tested in sums_left_out(project, module):
            if tested.test.lineno not in told:
                yield self._left_out(module, tested)

    def _left_out(self, module: SourceModule, found: SumLeftOut) -> Finding:
        made = short(module, found.summed)
        return self.finding(
            module, found.test,
            f"each rank decides by `{found.part}` whether it comes to the sum over the ranks in line {found.summed.lineno}: a "
            "rank that has none leaves it out, goes on to its next collective, and the others wait for it",
            evidence=[Evidence("static", f"`{made}` adds up what each rank has of its own", module.path, found.summed.lineno)],
            reason="make the call on every rank (one that has none adds 0), and test the sum behind it",
        )  # fmt: skip

    def _failing(self, project: Project, module: SourceModule, parted: Mismatch) -> Iterator[Finding]:
        """An exit with an error: most launchers end the others with it, and nothing is said."""
        start = failing_exits.lasting(project, module, parted)
        if start is None and left(module, parted.node, "the launchers that are seen end the other ranks with this one"):
            return
        if start is None:
            return
        edits, reason = failing_exits.repair(module, parted, start)
        yield self.finding(
            module, parted.node, failing_exits.words(module, parted, start), level=_UNSAFE if edits else _DISPLAY, edits=edits,
            evidence=[*failing_exits.shown(parted, start)], reason=reason,
        )  # fmt: skip


_NAMES_NONE = "a `finally`, an exit or a flag to stop is looked at where processes are named: this file names none"
_ALIKE = "the exceptions are the project's own, and no test over a `raise` of them is shown to be one rank's own"
_GUESS = "only the name of a parameter says that the value is the rank's own"


def _changed_with(project: Project, module: SourceModule, found: Decision) -> set[int]:
    return agreed_skips(project, module, found.node)[1] if found.form is Form.NO_LOSS else set()


def _advice(project: Project, module: SourceModule, found: Mismatch) -> str:
    if found.form is Parting.WAITS:
        return after_an_error(found)
    if found.form is Parting.RAISES:
        return (
            "let the exception end the process, so that the launcher stops the others, or let all ranks agree by a reduced "
            "flag first"
        )
    if found.form is Parting.NO_LOSS:
        return advice_for_skip(project, module, found.leaving)
    if found.form is Parting.STOPS:
        return (
            "reduce the decision over the ranks first (`trainer.strategy.reduce_boolean_decision(flag, all=False)`, or an "
            "all_reduce)"
        )
    if found.form is Parting.ENDS and found.value.cause is Cause.RANK and isinstance(found.node, ast.Expr):
        return "end with an error (a `raise`, or a status other than 0): the launcher then stops the others as well"
    if found.form is Parting.ENDS:
        return "reduce the test over the ranks first (an all_reduce with MAX of 0 or 1), and let every rank end with it"
    if any(i.dotted.startswith("accelerate") for found_imports in module.imports.values() for i in found_imports):
        return "gather the deciding number first (`accelerator.gather(value).mean()`), so that every rank decides alike"
    return (
        "reduce the deciding number over the ranks first (an all_reduce with MAX of 0 or 1, or its mean), so that all decide "
        "alike"
    )


def _message(module: SourceModule, found: Decision) -> str:
    if found.form is Form.FINALLY:
        return (
            f"{found.own} stands in a `finally`: a rank that raised runs it while the others are still in the body, and both "
            "wait: the error is not seen before the time-out"
        )
    comes = "rank 0 alone comes here" if found.guard is not None else f"each rank decides by {found.own}"
    if found.form is Form.SHOULD_STOP:
        return f"{comes}, and the Trainer does not pass should_stop on: a rank that stops leaves the others in the next backward"
    if found.form is Form.CONTROL:
        return f"{comes}, and what it asks of the Trainer stays on that rank: the others go on and wait for it"
    if found.form is Form.NO_LOSS:
        who = "rank 0 alone decides" if found.guard is not None else f"{comes},"
        return f"{who} whether there is a loss: a rank without one skips the backward pass that the others wait in"
    word = type(found.node).__name__.lower()
    what = f"rank 0 alone decides whether to take this {word}" if found.guard is not None else f"{comes} on this {word}"
    return f"{what}: a rank that takes it leaves the others in their next collective"


def _repair(project: Project, module: SourceModule, found: Decision) -> tuple[list[Edit], str]:
    if found.form is Form.SHOULD_STOP:
        return _reduced_flag(project, module, found)
    if found.form is Form.CONTROL:
        return [], "take the rank test off this line: state, args and metrics are the same on every rank"
    if found.form is Form.FINALLY:
        return [], "put it behind the `try`, where only ranks come that ended well: a `finally` must wait for nobody"
    if found.form is Form.NO_LOSS:
        edits, _ = agreed_skips(project, module, found.node)
        return edits, ASSUMED if edits else advice_for_skip(project, module, found.node)
    asked = next((up.test for up in module.ancestors(found.node) if isinstance(up, ast.If)), None)
    if found.guard is not None and asked is not None and (counted := counted_by_one(project, module, asked)) is not None:
        return [], counted.count_on_all(f"this {type(found.node).__name__.lower()}")
    if found.guard is not None or found.own.startswith("`"):
        return [], "broadcast the decision of rank 0 first (`broadcast_object_list`, or a tensor), and let every rank act on it"
    return reduced_test(module, found.node, found.anchor, found.test)


def _reduced_flag(project: Project, module: SourceModule, found: Decision) -> tuple[list[Edit], str]:
    assert isinstance(found.node, ast.Assign)
    holder = dotted(found.node.targets[0]).rpartition(".")[0]
    pin = lightning_pin(project, near=module.path)
    if pin is not None and pin.surely_below((1, 6)):
        return [], "before Lightning 1.6 there is no trainer.strategy: reduce the decision with trainer.training_type_plugin"
    if found.guard is not None and found.guard.kind in ("decorator", "exit"):
        return [], "the reduction has to stand where every rank comes: take the decorator or the early exit off first"
    if not module.is_whole(found.anchor):
        return [], "the test is an elif, or shares its line"
    code = f"{holder}.should_stop = {holder}.strategy.reduce_boolean_decision({holder}.should_stop, all=False)"
    assumed = "assumes that one rank may stop all of them, and that every rank comes here equally often"
    return [InsertAfter(module.path, module.span(found.anchor), code)], assumed
