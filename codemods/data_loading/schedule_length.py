"""DDP406: a learning-rate schedule whose length does not fit the steps that the processes make of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.constant_schedules import read_lengths
from codemods.analysis.distribution import is_test_module
from codemods.analysis.epoch_steps import epoch_steps
from codemods.analysis.epochs_before_prepare import EpochsBefore, epochs_before_prepare
from codemods.analysis.left_out_schedules import TooLong, left_out_schedules
from codemods.analysis.lightning_lengths import Whole, whole_lengths
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.names import dotted
from codemods.analysis.schedule_factors import assumed, counts_micro_batches, multiplied, names_of, where, without_accumulation
from codemods.analysis.schedules import Counted, Length, Schedule, lengths, prepared_schedules, speaks_of_processes
from codemods.analysis.trainer_schedules import OfOne, trainer_schedules
from codemods.analysis.unprepared_schedules import Unprepared, unprepared_schedules
from codemods.analysis.whole_set_schedules import OfWhole, whole_set_schedules
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY
_SHORT = (Counted.STEPS, Counted.SHARDED, Counted.OWN, Counted.EITHER)
_LONG = (Counted.UNSHARDED, Counted.EITHER)
_LEAVE_OUT = "leave a schedule that counts epochs out of `prepare`, or give the Accelerator `step_scheduler_with_optimizer=False`"


class ScheduleLength(DdpCodemod):
    """A learning-rate schedule whose length does not fit the steps that the processes make of it.

    ## What it does
    Finds schedulers that are given to `accelerator.prepare` and whose lengths (`num_training_steps`, `T_max`, `total_iters`, the
    warm-up) are a number of optimizer steps, or come from the prepared loader, and multiplies them by the processes. Reports a
    length of the unprepared loader that is multiplied although it counts the batches of all ranks, a prepared scheduler that is
    stepped once an epoch, and schedules and epochs that are worked out of a loader before it is shared out: by Lightning's `fit`,
    by a Trainer of transformers that is handed the schedule, the epochs also above Accelerate's `prepare`, and schedules
    that this `prepare` leaves out. In raw torch it
    reports a length that counts the batches of a whole data set (`epochs * len(data) // batch_size`), where a DistributedSampler
    shares that set out in batches of the same size.

    ## Why it matters
    Accelerate moves a prepared scheduler on by `num_processes` steps with each step of the optimizer. On eight GPUs a schedule of
    10000 steps is at its end after 1250, and the rest of the training runs at a learning rate of zero; a warm-up is over in an
    eighth. A plateau scheduler that is stepped once an epoch sees the same loss eight times, and gives up at once.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator


    def train(args, model, loader):
        accelerator = Accelerator()
        optimizer = torch.optim.AdamW(model.parameters())
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.max_steps)
        model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator


    def train(args, model, loader):
        accelerator = Accelerator()
        optimizer = torch.optim.AdamW(model.parameters())
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.max_steps * accelerator.num_processes)
        model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    ```

    ## Safety
    Unsafe: the setting may be meant to count the batches of one process. One process alone has the same schedule as before,
    but where the accumulation steps go.

    ## Refuses
    - Says nothing of a length that is counted from the loader before it is prepared: the processes cancel out. One that is
      divided by the processes is that of a rank's share.
    - Says nothing where the number of processes is a factor of a number of steps, in whatever file, or may be (`steps * 8`), or
      where the whole or the warm-up is not seen: multiplied alone, the other is in another unit.
    - Says nothing where the Accelerator is given `split_batches`, `step_scheduler_with_optimizer`, or options that may hold them.
    - Says nothing of a scheduler that is not prepared, but for one that is stepped with every micro batch of an accumulation and
      whose length is divided by their number, and for one whose length is that of a loader which the same function prepares
      below, and that moves on in a loop over this loader: these are reported.
    - Takes the processes in the place of the accumulation steps beside `accumulate`: there the scheduler waits, too.
    - Reports a length that is given or else counted from the loader: only the first wants the factor.
    - Says nothing of epochs above `prepare` that are worked out again, under a test, or with the processes as a factor, and where
      the loader goes on under another name.
    - Says nothing under Lightning where the project gives loaders their own samplers, or the devices are a factor.
    - Says nothing of a Trainer's schedule where a name of its length speaks of all processes (`total_batch_size`, `max_steps`).
    - Says nothing of the batches of a whole set where the processes are in the length, or divide the size of a batch anywhere in
      the project, or where the schedule is not seen to move on with each backward pass.
    - Says nothing of lengths that nobody reads: where the configurations and scripts of the project all ask for a constant
      schedule, or for one that warms up for no steps, or a test over the call does (`if args.kind == "constant":`).
    - Says nothing of a number of epochs (`T_max=args.epochs`) for a scheduler that is stepped with each batch: it is wrong by
      another factor than the processes.
    - Reports a scheduler that is stepped once an epoch: it should not be prepared.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `AcceleratedScheduler.step`: `for _ in range(num_processes)`. Runs on two processes. The training scripts of
    diffusers multiply since huggingface/diffusers#3983, and divide the loader's length by the processes since #8312.
    """

    code = "DDP406"
    severity = "data"
    subject = "Let the schedule last as long as the training"
    must_show = "At the last step on two processes the learning rate is where it is on one."
    printed = ()
    TRIGGERS = (
        (b".prepare(", b"Trainer(", b"configure_optimizers", b"DistributedSampler"),
        (b"ccelerat", b"ightning", b"transformers", b"lr_scheduler"),
        (b"sched", b"Sched", b"len("),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        words = (b"Accelerator(", b"ightning", b"optimizers", b"DistributedSampler")
        return any(project.files_containing(word) for word in words)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if module.holds(b"ightning") and not is_kept_to_one_device(project):
            yield from (self._whole(found) for found in whole_lengths(project) if found.module is module)
        yield from (self._epochs(module, found) for found in epochs_before_prepare(project, module))
        for left_out in unprepared_schedules(project, module):
            yield self._left_out(module, left_out)
        yield from (self._too_long(module, found) for found in left_out_schedules(project, module))
        yield from (self._of_one(module, found) for found in trainer_schedules(project, module))
        yield from (self._of_whole_set(module, found) for found in whole_set_schedules(project, module))
        told: set[int] = set()
        for schedule in prepared_schedules(project, module):
            if id(schedule.made) in told:
                continue
            told.add(id(schedule.made))
            known = read_lengths(project, schedule, lengths(project, schedule))
            steps = epoch_steps(project, module, schedule)
            if steps and not any(n.counted is Counted.UNSHARDED for n in known):
                if not speaks_of_processes(project, schedule):
                    yield from (self._epoch(module, schedule, step) for step in steps if id(step) not in told)
                    told |= {id(s) for s in steps}
            elif schedule.module is module:
                yield from self._lengths(project, module, schedule, known)

    def _whole(self, found: Whole) -> Finding:
        if found.epochs:
            what = "the epochs are worked out of it, and with several processes training ends as many times too early"
            reason = "give the Trainer `max_steps` instead of epochs"
        else:
            what = "the schedule counts on, and with several processes it is as many times too long for the steps of an epoch"
            reason = "use `self.trainer.estimated_stepping_batches` in `configure_optimizers`"
        return self.finding(
            found.module,
            found.node,
            f"this is the length of the whole loader, which Lightning shares out over the ranks in `fit`: {what}",
            evidence=[Evidence("static", "it is used here", found.used_in.path, getattr(found.use, "lineno", 0))],
            reason=reason,
        )

    def _epochs(self, module: SourceModule, found: EpochsBefore) -> Finding:
        name, loader = module.text_of(found.epochs.targets[0]), module.text_of(found.length.args[0])
        return self.finding(
            module,
            found.epochs,
            f"`{name}` is worked out of `len({loader})` before `prepare` shares the loader out: on N processes an epoch has an "
            f"Nth of these steps, and training ends after about an Nth of `{module.text_of(found.steps)}`",
            evidence=[
                Evidence("static", "the length is that of the whole loader here", module.path, found.length.lineno),
                Evidence("static", "the loader is shared out", module.path, found.prepared.lineno),
                Evidence("static", "the epochs are gone through", module.path, found.loop.lineno),
            ],
            reason="work the steps of an epoch and the epochs out below `prepare`",
        )

    def _left_out(self, module: SourceModule, found: Unprepared) -> Finding:
        return self.finding(
            module,
            found.prepared or found.step,
            f"the scheduler is not prepared, so `{dotted(found.step.func)}()` inside `accumulate` moves it on with every micro "
            "batch, but its length counts the optimizer's steps: its pace depends on the accumulation and the processes",
            evidence=[
                Evidence("static", "it is stepped with every micro batch", module.path, found.step.lineno),
                Evidence("static", "its length is divided by the accumulation steps", module.path, found.made.lineno),
            ],
            reason="give it to `accelerator.prepare` with the others, which steps it with the optimizer",
        )

    def _too_long(self, module: SourceModule, found: TooLong) -> Finding:
        loader, made = module.text_of(found.length.args[0]), found.schedule.made
        return self.finding(
            module,
            made,
            f"`{found.name}` counts the batches of `{loader}` before `prepare` shares it out, and is not prepared itself: on N "
            "processes each makes an Nth of these steps, and the training ends before the rate has come down",
            evidence=[
                Evidence("static", "the length is that of the whole loader here", module.path, found.length.lineno),
                Evidence("static", "the loader is shared out", module.path, found.schedule.prepared.lineno),
                Evidence("static", "the schedule moves on with the batches of one process", module.path, found.step.lineno),
            ],
            reason="give it to `accelerator.prepare` with the others, which makes a step of it for each process",
        )

    def _of_one(self, module: SourceModule, found: OfOne) -> Finding:
        return self.finding(
            module,
            found.length.node,
            f"`{found.length.name}` counts the steps of a run of one process, and the Trainer shares the data out: with N "
            "processes the training ends after an Nth of the schedule, before the rate has come down",
            evidence=[
                Evidence("static", f"`{found.schedule.kind}` is made", module.path, found.schedule.made.lineno),
                Evidence("static", "the Trainer is handed it", module.path, found.trainer.lineno),
            ],
            reason="divide the batches by the processes and the accumulation steps, or have the Trainer make the schedule",
        )

    def _of_whole_set(self, module: SourceModule, found: OfWhole) -> Finding:
        return self.finding(
            module,
            found.length.node,
            f"`{found.length.name}` counts the batches of the whole set, which a DistributedSampler shares out: with N processes "
            "each makes an Nth of these steps, and the training ends before the rate has come down",
            evidence=[
                Evidence("static", "the length is that of the whole set here", module.path, found.counted.lineno),
                Evidence("static", "each rank has its own part", module.path, found.loader.lineno),
                Evidence("static", "the schedule moves on with each step of the optimizer", module.path, found.step.lineno),
            ],
            reason="divide the batches by the number of processes before the schedule is made, or count those of the loader",
        )

    def _epoch(self, module: SourceModule, schedule: Schedule, step: ast.Call) -> Finding:
        what = "counts as many epochs" if schedule.kind != "ReduceLROnPlateau" else "sees the same number as often"
        return self.finding(
            module,
            step,
            f"the prepared scheduler is stepped once an epoch, and Accelerate makes a step for each process of it: it {what} as "
            "there are processes",
            evidence=[
                Evidence("static", f"`{schedule.kind}` is made", schedule.module.path, schedule.made.lineno),
                Evidence("static", "it is prepared", module.path, schedule.prepared.lineno),
            ],
            reason=_LEAVE_OUT,
        )

    def _lengths(self, project: Project, module: SourceModule, schedule: Schedule, known: list[Length]) -> Iterator[Finding]:
        short = [n for n in known if not n.scaled and n.counted in _SHORT]
        long = [n for n in known if n.scaled and n.counted in _LONG]
        if (not short and not long) or any(n.counted is Counted.UNKNOWN and not n.scaled for n in known):
            return  # a warm-up and a whole in different units are worse than both of one
        shown = [Evidence("static", "the scheduler is prepared", module.path, schedule.prepared.lineno)]
        shown += [Evidence("static", f"`{n.name}` is {n.counted.value}", module.path, n.node.lineno) for n in short or long]
        if short and (micro := [n for n in short if counts_micro_batches(module, n)]):
            yield self._micro(project, module, schedule, micro, shown)
        elif short:
            edits = multiplied(project, module, schedule, short)
            yield self.finding(
                module,
                short[0].node,
                f"Accelerate makes a step for each process whenever the optimizer makes one: `{names_of(short)}` "
                f"{'ends' if len(short) == 1 else 'end'} num_processes times too early{where(short)}",
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                evidence=shown,
                reason=assumed(edits, short),
            )
        else:
            yield self.finding(
                module,
                long[0].node,
                f"`{names_of(long)}` counts the batches of all ranks already, and is multiplied by the processes again: the "
                f"schedule is num_processes times too long{where(long, counted=True)}",
                evidence=shown,
                reason="divide the loader's length by `accelerator.num_processes` before the steps are worked out from it",
            )

    def _micro(
        self, project: Project, module: SourceModule, schedule: Schedule, short: list[Length], shown: list[Evidence]
    ) -> Finding:
        edits = multiplied(project, module, schedule, short, counted=without_accumulation)
        many = len(short) > 1
        return self.finding(
            module,
            short[0].node,
            "inside `accumulate` a prepared scheduler moves on with the optimizer alone, by a step for each process: "
            f"`{names_of(short)}` {'count' if many else 'counts'} the micro batches, where {'they have' if many else 'it has'} "
            "to count the processes",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=shown,
            reason=assumed(edits, short),
        )
