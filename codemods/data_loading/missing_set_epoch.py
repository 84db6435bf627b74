"""DDP402: nobody tells a DistributedSampler which epoch it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.endless import Endless, endless_passes
from codemods.analysis.loading.engine_loaders import EngineLoader, engine_loaders
from codemods.analysis.loading.epoch_on_some_ranks import EpochOnSome, epochs_on_some
from codemods.analysis.loading.epoch_repairs import told_each_epoch, told_each_restart
from codemods.analysis.loading.epoch_stays import EpochStays, epochs_that_stay
from codemods.analysis.loading.epochs import Counter, are_told_instead, counter_of, may_be_told, parts_round, written_at
from codemods.analysis.loading.passes import Epochs, goes_round_once, leaves_samplers_alone, training_passes
from codemods.analysis.loading.reordered import is_reordered
from codemods.analysis.loading.restarts import Restart, files_of_steps, is_made_again, restarts
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.told_a_shard import ToldAShard, told_a_shard
from codemods.analysis.loading.told_above import told_above, whole_statement
from codemods.analysis.loading.told_late import ToldLate, told_late
from codemods.analysis.loading.untold import Untold, untold_in
from codemods.analysis.loading.without_epoch import WithoutEpoch, without_epoch
from codemods.analysis.names import dotted
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.variance.paths import parameters
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import (
    Applicability,
    Edit,
    Evidence,
    Finding,
    InsertAfter,
    InsertBefore,
    RemoveStatement,
    ReplaceExpression,
)
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project

_WITHOUT_END = (
    "go through the loader with a generator of your own (`while True: yield from loader`), which counts its rounds and gives the "
    "sampler their number"
)


class MissingSetEpoch(DdpCodemod):
    """A DistributedSampler that nobody gives the epoch.

    ## What it does
    Finds a training loop over a DataLoader whose `DistributedSampler` shuffles, inside of a loop over epochs, where no code calls
    `set_epoch` for it. It calls `set_epoch` at the top of each epoch. Loader and sampler are followed through functions, classes,
    attributes and arguments, into a project's own heir of `BatchSampler`, and so are classes of the project that derive from the
    sampler and read `self.epoch`, a loader class of the project that makes its sampler itself, and an object that goes through
    a loader it was handed (a prefetcher). The batches of an epoch may be drawn with `next(batches)`. Where one function makes
    the loaders of training and test, the call that made this one says whether it shuffles. A generator that goes through such a
    loader without end (`while True: for x in loader: yield x`, or with `iter(loader)` under `except StopIteration`) counts its
    rounds and hands them over. Where a training over steps begins the loader anew (`except StopIteration: batches =
    iter(loader)`), the number of the step is reported, also where the step goes backward in a method of an heir or in another
    file. It reports `itertools.cycle(loader)`, too, which keeps the batches of the first pass. A `set_epoch` inside of the loop
    over the batches, whose order is drawn by then, goes in front of it. It reports a `set_epoch` under a test of the rank, one
    with a number that no epoch changes (`set_epoch(0)`, `set_epoch(self.start_epoch)`; behind a right one it is taken away), and
    one of what has none: a sampler of another class, the one that a loader makes itself, the indices of a sampler, the batch
    sampler that Accelerate puts round an own one.

    ## Why it matters
    The sampler makes its order from its seed and the number of the epoch. Nobody changes that number, so each epoch has the same
    batches in the same order. Nothing fails; the model learns from less variety than the user believes.

    ## Example
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def train(model, data, optimizer):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=8, sampler=sampler)
        for epoch in range(10):
            for x, y in loader:
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def train(model, data, optimizer):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=8, sampler=sampler)
        for epoch in range(10):
            sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
    ```

    ## Safety
    Safe where the loop counts from a constant with `range`: every rank then gives the same number, and each rank keeps its part.
    Where some runs have no such sampler, the call stands behind a test for it. Unsafe where the loop begins at a number that is
    read from somewhere, or counts by itself: all ranks must have the same number. The order of the data changes, as it should.

    ## Refuses
    - Says nothing where any code that may be about this sampler calls `set_epoch`, in whatever file; all such calls may be in
      the same file, each of another sampler that is made beside it.
    - Says nothing where each round has the data itself change its order (`loader.dataset.shuffle(epoch)`).
    - Says nothing with `shuffle=False`, and of loops without a backward pass.
    - Says nothing of what Accelerate puts round a batch sampler where the function makes another such call, or the project speaks
      of `dispatch_batches`.
    - Says nothing under Lightning, Accelerate and Fabric: they call it, or they make their own samplers. Of the loader that
      `deepspeed.initialize` makes of `training_data` it says nothing where a `set_epoch` or a `data_sampler` stands anywhere.
    - Says nothing where the loader may be another one than torch's, or one that something prepared.
    - Says nothing of a `set_epoch` of what is tested (`hasattr`, `isinstance`), or is another sampler with one process alone.
    - Says nothing of a loop that one rank alone comes to, and of a repository's own tests.
    - Says nothing of a loop over files that makes a loader of each, once; with a loop round it, the number is that of the outer
      loop, and it reports one that counts nothing.
    - Says nothing of a number that something in the round may change: by a method that it calls, a class that is not seen, or an
      object that is written to from outside.
    - Reports a loader that has no name at the loop over epochs, is one of a list (`loaders[i]`), or stands in an object without a
      sampler, and a loop that counts nothing.
    - Reports a generator without end that somebody hands something else than a loader of torch.
    - Reports a loader that is begun anew where no loop counts the steps, or where its number comes back (a loop over steps inside
      one over epochs).

    ## References
    The documentation of `torch.utils.data.distributed.DistributedSampler` ("calling the set_epoch() method at the beginning of
    each epoch before creating the DataLoader iterator is necessary"); two processes with torch 2.13. DeepSpeed 0.19.8,
    `DeepSpeedDataLoader`; its later sources move the epoch on by themselves, and keep one that they are given.
    """

    code = "DDP402"
    severity = "data"
    subject = "Give samplers the epoch"
    must_show = "The second epoch has the samples in another order than the first, and each process still its own half."
    printed = ("object has no attribute 'set_epoch'",)
    TRIGGERS = (
        (b"for ", b"while "),
        (b"oader", b"epoch", b"backward", b"ampler", b"StopIteration"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        words = (b"DistributedSampler", b"training_data")
        told = b"batch_sampler.set_epoch(" in (project.read(path) or b"")
        return told or any(project.files_containing(word) for word in words)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        done: set[tuple[int, str]] = set()
        for found in training_passes(project, module.path):
            missing = untold_in(project, found)
            if missing is None:
                continue
            for epochs in missing.rounds(project):
                name = written_at(epochs, found) if missing.listed is None else ""
                key = (id(epochs.loop), name)
                if epochs.module is not module or key in done:
                    continue
                if ranks_reaching(project, module, epochs.loop).some and left(module, epochs.loop, "not all ranks run it"):
                    continue
                paths = {module.path, found.module.path, *(s.module.path for s in epochs.way)}
                if _is_told(project, module, missing, frozenset({*paths, *missing.paths})):
                    left(module, epochs.loop, "set_epoch is called in one of the files from the loop to the sampler")
                    continue
                if is_reordered(missing, epochs) and left(module, epochs.loop, "the order changes with the epoch anyway"):
                    continue
                done.add(key)
                if (told := self._tell(module, missing, epochs, name)) is not None:
                    yield told
        begun: set[int] = set()
        for endless in endless_passes(project, module) if module.holds(b"yield") else ():
            if not may_be_told(project, endless.paths) and _is_trained_in(project, endless.paths):
                begun.add(id(endless.through))
                yield self._of_endless(module, endless)
        if module.holds(b"set_epoch"):
            yield from self._told_wrongly(module, project)
        for made in engine_loaders(project, module) if project.files_containing(b"training_data") else ():
            if not ranks_reaching(project, module, made.epochs.loop).some:
                yield self._of_engine(module, made)
        for restart in restarts(module) if project.files_containing(b"backward(") else ():
            if id(restart.statement) in begun:
                continue
            yield from self._of_restart(module, project, restart)

    def _told_wrongly(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """The calls of `set_epoch` that come too late, are of something else, or do not tell each rank each epoch."""
        yield from (self._of_late(module, late) for late in told_late(project, module))
        yield from (self._of_without(module, without) for without in without_epoch(project, module))
        yield from (self._of_shard(module, shard) for shard in told_a_shard(project, module))
        yield from (self._of_some(module, part) for part in epochs_on_some(project, module))
        for stays in epochs_that_stay(project, module):
            if not ranks_reaching(project, module, stays.call).some:
                yield self._of_staying(module, project, stays)

    def _of_late(self, module: SourceModule, found: ToldLate) -> Finding:
        """A sampler that is told within the pass."""
        movable = found.movable and module.is_whole(found.statement) and module.is_whole(found.batches)
        indent = " " * found.statement.col_offset
        text = "\n".join(line.removeprefix(indent) for line in module.text_of(found.statement).splitlines())
        edits: list[Edit] = [
            InsertBefore(module.path, module.span(found.batches), text),
            RemoveStatement(module.path, module.span(found.statement)),
        ]
        return self.finding(
            module,
            found.call,
            "the batches of this pass are drawn already: each epoch has the order that was set in the one before, and the first "
            "two have the same",
            level=Applicability.SAFE if movable else Applicability.DISPLAY,
            edits=edits if movable else [],
            evidence=[Evidence("static", "the loop draws the order of its batches here", module.path, found.batches.lineno)],
            reason="" if movable else "call it in front of the loop over the batches",
        )

    def _of_without(self, module: SourceModule, found: WithoutEpoch) -> Finding:
        """A call of what has no such method."""
        when = f"where `{found.under}` holds, " if found.under else ""
        message = f"{when}`{found.receiver}` is {found.what}: it has no `set_epoch`, and this line raises AttributeError"
        evidence = [Evidence("static", "it is made here", found.made.module.path, found.made.line)]
        if found.over is None:
            reason = "call it on the DistributedSampler that deals the data out, and where there is none do without"
            return self.finding(module, found.call, message, evidence=evidence, reason=reason)
        sampler, given = module.text_of(found.over.iter), ", ".join(module.text_of(a) for a in found.call.args)
        if not found.alone or not module.is_whole(found.over) or not dotted(found.over.iter) or found.call.keywords:
            return self.finding(module, found.call, message, evidence=evidence, reason=f"call `{sampler}.set_epoch({given})`")
        edits: list[Edit] = [
            InsertBefore(module.path, module.span(found.over), f"{sampler}.set_epoch({given})"),
            RemoveStatement(module.path, module.span(found.over)),
        ]
        return self.finding(module, found.call, message, level=Applicability.SAFE, edits=edits, evidence=evidence)

    def _of_shard(self, module: SourceModule, found: ToldAShard) -> Finding:
        """A batch sampler behind the one that Accelerate puts round it."""
        stays = "the test is false there, and each epoch has the order of the first"
        message = (
            f"with several processes `{found.receiver}` is the BatchSamplerShard that line {found.prepared.lineno} puts "
            f"round the own one: it has no `set_epoch`, so {stays if found.tested else 'this raises AttributeError'}"
        )
        home, line = found.loader.module.path, found.loader.call.lineno
        evidence = [Evidence("static", "its batch sampler takes the order from the epoch", home, line)]
        reason = f"call it on the own batch sampler, or on `{found.receiver}.batch_sampler` where that has one"
        return self.finding(module, found.call, message, evidence=evidence, reason=reason)

    def _of_some(self, module: SourceModule, found: EpochOnSome) -> Finding:
        """A call that only some ranks make."""
        message = (
            f"`{module.text_of(found.test)}` lets only {found.ranks.value} set the epoch: the others deal the data out in the "
            "order of the first epoch each time, so that from the second one on shares overlap, and samples are left out"
        )
        evidence = [Evidence("static", "the test of the rank", module.path, found.test.lineno)]
        reason = "call it on every rank; where one process has no sampler, test the sampler: `if sampler is not None`"
        return self.finding(module, found.call, message, evidence=evidence, reason=reason)

    def _of_undone(self, module: SourceModule, found: EpochStays, above: ast.Call, evidence: list[Evidence]) -> Finding:
        """A sampler that is told the right number, and then one that stays."""
        message = (
            f"line {above.lineno} gives the sampler the number of the epoch, and this line sets it back to "
            f"`{module.text_of(found.number)}`, which is the same in every epoch: each one has the same batches in the same order"
        )
        statement = whole_statement(module, found.call)
        if statement is None or not module.is_whole(statement):
            return self.finding(module, found.call, message, evidence=evidence, reason="take this call away")
        edits: list[Edit] = [RemoveStatement(module.path, module.span(statement))]
        reason = f"assumes that `{found.counted}` is the same on every rank, and that nobody wants one order for all epochs"
        level = Applicability.UNSAFE
        return self.finding(module, found.call, message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _of_staying(self, module: SourceModule, project: Project, found: EpochStays) -> Finding:
        """A sampler that is told the same number each time."""
        message = (
            f"`{module.text_of(found.number)}` is the same in every epoch: the sampler makes its order from it, so each epoch "
            "has the same batches in the same order"
        )
        evidence = [Evidence("static", "the loop over the epochs", found.epochs.module.path, found.epochs.loop.lineno)]
        if (above := told_above(project, module, found)) is not None:
            return self._of_undone(module, found, above, evidence)
        if not found.counted:
            return self.finding(module, found.call, message, evidence=evidence, reason="hand over the number of the epoch")
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(found.number), found.counted)]
        reason = f"assumes that `{found.counted}` is the same on every rank, and that nobody wants one order for all epochs"
        level = Applicability.UNSAFE
        return self.finding(module, found.call, message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _of_restart(self, module: SourceModule, project: Project, restart: Restart) -> Iterator[Finding]:
        """A loader that is begun anew in the middle of a training, and whose sampler nobody tells the epoch."""
        missing = untold_in(project, restart.gone_through)
        if missing is None or ranks_reaching(project, module, restart.at).some:
            return
        paths = frozenset({module.path, *missing.paths, *files_of_steps(project, restart)})
        kept = restart.kept and not is_made_again(project, restart)
        if not _is_trained_in(project, paths) or (not kept and _is_told(project, module, missing, paths)):
            return
        sampler, loader = missing.sampler, short(module, restart.source)
        evidence = [Evidence("static", f"`{short(sampler.module, sampler.node)}`", sampler.module.path, sampler.line)]
        if kept:
            message = f"`itertools.cycle` keeps the batches of `{loader}`: each round has the same ones in the same order"
            yield self.finding(module, restart.at, message, reason=_WITHOUT_END, evidence=evidence)
            return
        message = f"nobody calls set_epoch of the sampler of `{loader}`: each pass from here on has the same batches in one order"
        edits, reason, level = told_each_restart(module, project, missing, restart)
        yield self.finding(module, restart.at, message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _of_engine(self, module: SourceModule, found: EngineLoader) -> Finding:
        """A loader that DeepSpeed makes, with a sampler that it never tells the epoch."""
        name, loop = module.text_of(found.loader), found.epochs.loop
        told = f"{name}.data_sampler.set_epoch({found.counter.name})"
        edits: list[Edit] = [InsertBefore(module.path, module.span(loop.body[0]), told)]
        return self.finding(
            module,
            loop.iter if isinstance(loop, ast.For) else loop.test,
            f"DeepSpeed made `{name}` with a DistributedSampler, and nobody calls its set_epoch: each round of this loop has the "
            "same batches in the same order",
            level=Applicability.UNSAFE,
            edits=edits,
            evidence=[Evidence("static", "`training_data` becomes a loader here", found.made.module.path, found.made.line)],
            reason="assumes DeepSpeed up to 0.19.8, whose loader leaves the epoch as it is",
        )

    def _of_endless(self, module: SourceModule, found: Endless) -> Finding:
        name, at = found.name, found.iterated
        message = (
            f"nobody calls set_epoch of the sampler of `{short(found.loader.module, found.loader.call)}`: each round of this "
            "loop has the same batches in the same order"
        )
        places = {(o.module.path, o.line): o for o in (found.sampler, *found.others)}
        evidence = [Evidence("static", f"`{short(o.module, o.node)}`", *place) for place, o in places.items()]
        count = next((n for n in ("epoch", "rounds") if not _stands_in(found.function, n)), "")
        if not found.known or not count or not module.is_whole(found.through) or not module.is_whole(found.loop):
            reason = f"count the rounds here, and call `{name}.sampler.set_epoch(n)` before each"
            return self.finding(module, at, message, evidence=evidence, reason=reason)
        call = f"{name}.sampler.set_epoch({count})"
        told = call if found.sure else f'if hasattr({name}.sampler, "set_epoch"):\n    {call}'
        edits: list[Edit] = [InsertBefore(module.path, module.span(found.loop), f"{count} = 0")]
        if found.restarts:  # the first round has begun above the loop, and has the number that a sampler begins with
            edits.append(InsertBefore(module.path, module.span(found.through), f"{count} += 1\n{told}"))
        else:
            edits.append(InsertBefore(module.path, module.span(found.through), told))
            edits.append(InsertAfter(module.path, module.span(found.through), f"{count} += 1"))
        return self.finding(module, at, message, level=Applicability.SAFE, edits=edits, evidence=evidence)

    def _tell(self, module: SourceModule, missing: Untold, epochs: Epochs, name: str) -> Finding | None:
        counter = counter_of(epochs)
        if goes_round_once(epochs.loop) or (counter is None and isinstance(epochs.loop, ast.For)):
            return None  # or a loop over folds or files: each pass may be the only one
        outer = parts_round(epochs, name) if name else epochs
        if outer is None:
            return None
        at = outer.loop.iter if isinstance(outer.loop, ast.For) else outer.loop.test
        sampler = missing.sampler
        message = (
            f"nobody calls set_epoch of the sampler of `{short(missing.found.module, missing.found.source)}`: "
            "each round of this loop has the same batches in the same order"
        )
        if outer is not epochs:
            counter = _numbered(counter_of(outer))
            message += f", for each round of the loop in line {epochs.loop.lineno}, which makes a sampler anew"
        evidence = [Evidence("static", f"`{short(sampler.module, sampler.node)}`", sampler.module.path, sampler.line)]
        if epochs.way:
            evidence.append(
                Evidence("static", "the batches are gone through here", missing.found.module.path, missing.found.loop.lineno)
            )
        edits, reason, level = told_each_epoch(module, missing, epochs, name, counter)
        if counter is None and outer is not epochs:
            reason = "call `sampler.set_epoch(n)` with the number of the outer loop: that of the inner one comes back each time"
        if level is Applicability.SAFE and edits:
            alike = "every rank counts these rounds alike, and keeps its own part of the data"
            evidence.append(Evidence("safe", alike, module.path, outer.loop.lineno))
        return self.finding(module, at, message, level=level, edits=edits, evidence=evidence, reason=reason)


def _is_told(project: Project, module: SourceModule, missing: Untold, paths: frozenset[str]) -> bool:
    """True where somebody may tell this very sampler its epoch."""
    if not may_be_told(project, paths):
        return False
    return missing.sampler.module is not module or not are_told_instead(project, module, missing.sampler.node)


def _is_trained_in(project: Project, paths: frozenset[str]) -> bool:
    """True where a file that makes the loader, or hands it over, trains with it."""
    modules = (project.module(p) for p in sorted(paths) if p.endswith(PYTHON_KINDS))
    return any(m is not None and m.holds(b"backward(") and leaves_samplers_alone(m) for m in modules)


def _stands_in(function: FunctionNode, name: str) -> bool:
    return name in parameters(function) or any(isinstance(n, ast.Name) and n.id == name for n in walk(function))


def _numbered(counter: Counter | None) -> Counter | None:
    """The number of an outer loop, where it has a name of its own."""
    return None if counter is None or counter.name == "_" else counter
