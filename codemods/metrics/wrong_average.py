"""DDP115: a number that is put together from all ranks, and divided by the wrong count."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.averages.divided_behind import is_divided_behind
from codemods.analysis.averages.divided_by_rows import ByAllRows, divided_by_rows
from codemods.analysis.averages.divided_by_whole import ByTheWhole, divided_by_whole
from codemods.analysis.averages.never_joined import NeverJoined, never_joined
from codemods.analysis.averages.own_keys import OwnKey, own_keys
from codemods.analysis.averages.reset_by_one import ResetByOne, reset_by_one
from codemods.analysis.averages.scale import At
from codemods.analysis.averages.summed_losses import SummedLoss, summed_losses
from codemods.analysis.averages.wrong import Fault, Wrong, wrong_numbers
from codemods.analysis.distribution import is_test_module
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.variance.parallel_files import may_be_parallel
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.data.rank_words import SHOWS_NUMBERS
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class WrongAverage(DdpCodemod):
    """A number that is reduced over the ranks, and divided by the wrong count.

    ## What it does
    Follows the numbers that a program prints, logs or writes back to the reduction over the ranks, through returns, lists,
    dicts and functions, and counts how often the number of processes W enters, as one does with units: a count of the own
    share is a W-th of the whole, a sum over the ranks multiplies by W, `len(loader)` behind a DistributedSampler is a W-th.
    Reports a number that is W times too large (a sum over the ranks, divided by a count of one of them; a sum of their
    means), one that is W times too small (a mean that is divided by the number of processes again, the rank's own number, which
    nothing sums over them, or the sum of the rank's steps, divided by `len(dataset) // batch_size` or `len(loader.dataset)`),
    and a mean of quotients of the ranks whose divisors their own data make: the F1 of each rank, or a loss per token. Also
    reports what is summed over the ranks and put under a key that each rank draws from random numbers of its own, or that is the
    category of its own batch: the losses of several tasks become those of one; and a running sum that the loop puts together
    over the ranks, and that rank 0 alone sets back to its start.

    ## Why it matters
    The number looks like one of all ranks, and is none. On eight ranks an error is shown eight times too large, and changes with
    the number of GPUs. A mean of the ranks' F1 is not the F1 of the set: a rank with few hits counts as much as one with many.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset, loss_of):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        total = torch.zeros(1, device="cuda")
        for batch in loader:
            total += loss_of(model(batch))
        dist.all_reduce(total)
        loss = total.item() / len(loader)
        if dist.get_rank() == 0:
            print(f"validation loss {loss:.4f}")
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset, loss_of):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        total = torch.zeros(1, device="cuda")
        for batch in loader:
            total += loss_of(model(batch))
        dist.all_reduce(total)
        loss = total.item() / (len(loader) * dist.get_world_size())
        if dist.get_rank() == 0:
            print(f"validation loss {loss:.4f}")
    ```

    ## Safety
    There is no fix: whether the sum, the count or the reduction is to be changed is a choice.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of `len(dataset) // batch_size` where the loader of the loop is not seen to share out that dataset in batches
      of that size, and where the sum, or what goes into it, is reduced.
    - Says nothing of `len(loader.dataset)` where the loader is not seen to be prepared or to have a DistributedSampler.
    - Says nothing of a number of which one part is not seen: a setting, a result of a library.
    - Says nothing where each rank has as many items as the others: the mean of the means is right behind a sampler that pads, and
      where a count of the shapes of the batches is the same on all ranks.
    - Says nothing where the count is reduced as well, or the number of processes stands among the divisors.
    - Says nothing of an own number divided by the processes where a call that reduces takes it in any line of the function, where
      it is handed in, where the quotient goes to a backward pass (DDP107), and where the project multiplies a loss by them.
    - Says nothing of what is no average, and of what neither its name nor a word beside it calls a loss or a metric: the tokens
      of a step, the rows of a GPU.
    - Says nothing of the mean of quotients in a loop that trains: that such a curve is rough is known.
    - Says nothing of a running sum that is set back in another place of the loop as well, or to something else than its start.
    - Says nothing of a maximum or minimum over the ranks, and of a number that nothing shows.

    ## References
    torch 2.13: `all_reduce` adds unless it is asked for something else; `len(DistributedSampler)` is the number of samples of one
    rank. Accelerate 1.15: `reduce` adds, Fabric 2.6: `all_reduce` averages. Runs on two gloo processes.
    """

    code = "DDP115"
    severity = "data"
    TRIGGERS = (
        (b"reduce", b"gather", b"val", b"test", b"eval", b"num_processes", b"world_size", b"DistributedSampler",
         b".dataset)"),
        (b"print", b"log", b"add_scalar", b"write", b"dump", b"report"),
    )
    SITES = (SHOWS_NUMBERS, Site(rb"reduce", b"reduce"))  # a number under a rank's own key need not be shown
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        if not may_show_ranks(project, path):
            return False
        return b"all_reduce" in (project.read(path) or b"") or may_be_parallel(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        wrong = wrong_numbers(project, module)
        for found in wrong:
            if found.fault is Fault.TOO_LARGE and found.at is found.joined and is_divided_behind(found.joined):
                continue
            here = found.at.module is module
            at = found.at.node if here else found.shown.call.node
            advice = _ADVICE_OF_SUMS if found.fault is Fault.TOO_LARGE and found.at is found.joined else _ADVICE[found.fault]
            yield self.finding(module, at, _message(found, here=here), evidence=_way(found), reason=advice)
        told = {found.joined.line for found in wrong if found.joined.module is module}
        for loss in summed_losses(project, module) if module.holds(b"all_reduce") else ():
            if loss.reduced.lineno not in told:
                yield self._summed(module, loss)
        yield from (self._never_joined(module, found) for found in never_joined(project, module))
        yield from (self._by_the_whole(module, found) for found in divided_by_whole(project, module))
        yield from (self._by_all_rows(module, found) for found in divided_by_rows(project, module))
        yield from (self._reset(module, found) for found in reset_by_one(project, module))
        for own in own_keys(project, module) if module.holds(b"reduce") else ():
            yield self._under_own_key(module, own)

    def _reset(self, module: SourceModule, found: ResetByOne) -> Finding:
        return self.finding(
            module,
            found.statement,
            f"rank 0 alone sets `{found.name}` back here: the other ranks go on with their old sums, and line "
            f"{found.joined.lineno} puts these together with the new one of rank 0",
            evidence=[
                Evidence("static", "every rank adds to it here", module.path, getattr(found.added, "lineno", 0)),
                Evidence("static", "this puts it together over the ranks", module.path, found.joined.lineno),
            ],
            reason="set it back on every rank: take this line, and what counts its steps, out of the test of the rank",
        )

    def _under_own_key(self, module: SourceModule, own: OwnKey) -> Finding:
        whose = "which each rank has drawn on its own" if own.drawn else "which is that of the rank's own batch"
        text = (
            f"what line {own.call.lineno} puts together from all ranks goes under `{own.key}`, {whose}: the parts of the others "
            "belong under other keys"
        )
        way = [Evidence("way", x.text, x.path, x.line) for x in own.way]
        advice = _ADVICE_OF_KEYS if own.drawn else _ADVICE_OF_BATCHES
        return self.finding(module, own.statement, text, evidence=way, reason=advice)

    def _summed(self, module: SourceModule, found: SummedLoss) -> Finding:
        text = " ".join(module.text_of(found.reduced).split())
        return self.finding(
            module,
            found.reduced,
            f"`{text}` adds up the losses of all ranks, and nothing divides by the number of processes: line "
            f"{found.shown.lineno} takes a loss that is as many times too large as there are",
            evidence=[
                Evidence("static", f"each rank's `{found.loss}` is a mean of its own", module.path, found.backward.lineno),
                Evidence("static", "this shows it, or keeps it to be shown", module.path, found.shown.lineno),
            ],
            reason=_ADVICE_OF_SUMS,
        )

    def _never_joined(self, module: SourceModule, found: NeverJoined) -> Finding:
        return self.finding(
            module,
            found.division,
            f"`{found.number}` is this rank's own number, and nothing sums it over the ranks: divided by the number of "
            f"processes, line {found.shown.lineno} shows it as many times too small as there are",
            evidence=[Evidence("static", "this shows it", module.path, found.shown.lineno)],
            reason="sum it over the ranks above (`all_reduce`, `accelerator.reduce`), on every rank, or leave the division out",
        )

    def _by_the_whole(self, module: SourceModule, found: ByTheWhole) -> Finding:
        text = " ".join(module.text_of(found.count).split())
        return self.finding(
            module,
            found.count,
            f"`{text}` is how many steps one process would make, and `{found.number}` adds up those of this rank's share: line "
            f"{found.shown.lineno} shows an average that is as many times too small as there are processes",
            evidence=[
                Evidence("static", "the loader of this loop gives each rank its own share", module.path, found.loop.lineno),
                Evidence("static", "this shows it", module.path, found.shown.lineno),
            ],
            reason="divide by the steps that the rank makes: `len(loader)`",
        )

    def _by_all_rows(self, module: SourceModule, found: ByAllRows) -> Finding:
        text = " ".join(module.text_of(found.count).split())
        return self.finding(
            module,
            found.count,
            f"`{text}` counts the rows of the whole set, and `{found.number}` adds up what this rank's share gives: line "
            f"{found.shown.lineno} shows an average that is as many times too small as there are processes",
            evidence=[
                Evidence("static", "the loader of this loop gives each rank its own share", module.path, found.loop.lineno),
                Evidence("static", "this shows it", module.path, found.shown.lineno),
            ],
            reason="reduce the sum over the ranks first, on every rank (`all_reduce`, `accelerator.reduce`)",
        )


_ADVICE_OF_KEYS = (
    "draw it from a generator with one seed on all ranks, or reduce a number for each key once the loop is done"
)
_ADVICE_OF_BATCHES = (
    "keep the rank's own number under its key, and reduce the sum and the count of each key over the ranks behind the loop"
)
_ADVICE_OF_SUMS = (
    "divide by the number of processes behind the reduction (`dist.get_world_size()`), or reduce with `ReduceOp.AVG`"
)
_ADVICE = {
    Fault.TOO_LARGE: "reduce the count as well (`all_reduce` of both), or divide by the number of processes, too",
    Fault.TOO_SMALL: "divide by the number of processes once: behind a sum over the ranks, not behind a mean",
    Fault.UNEVEN: "reduce the sums and the counts over the ranks first, then divide",
}


def _message(found: Wrong, *, here: bool) -> str:
    shown = found.shown
    where = f"`{shown.text}` in line {shown.call.line}" if here else f"`{shown.text}`"
    made = f"`{found.at.text}`" if here else f"`{found.at.text}` ({found.at.module.path}:{found.at.line})"
    if found.fault is Fault.TOO_LARGE and found.at is found.joined:
        return (
            f"{made} adds up the means of all ranks, and nothing divides by the number of processes: {where} is as many times "
            "too large as there are"
        )
    if found.fault is Fault.TOO_LARGE:
        return (
            f"{made} divides a sum over all ranks by the count of one of them: {where} is as many times too large as there are "
            "processes"
        )
    if found.fault is Fault.TOO_SMALL:
        return (
            f"{made} divides by the number of processes what is no sum over them: {where} is as many times too small as there "
            "are processes"
        )
    if found.at is not found.joined:
        return (
            f"{made} divides by what this rank's own data make, and the quotients of the ranks are put together: {where} is not "
            "the number of the whole set"
        )
    return (
        f"{made} puts together quotients of the ranks, whose divisors differ by their own data: {where} is not the number of the "
        "whole set"
    )


def _way(found: Wrong) -> list[Evidence]:
    steps: list[tuple[At, str]] = [(found.joined, f"`{found.joined.text}` reduces over the ranks")]
    ratio = found.shown.scale.divided
    if ratio is not None:
        steps.insert(0, (ratio, f"`{ratio.text}` divides by what this rank's own data make"))
    steps.append((found.shown.call, "this shows it"))
    return [Evidence("static", text, at.module.path, at.line) for at, text in steps]
