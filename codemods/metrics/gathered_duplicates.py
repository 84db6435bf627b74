"""DDP605: samples that are repeated to even out the ranks, and count twice in a metric of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import accelerate_pin
from codemods.analysis.loading.cut_gathers import cut_gathers
from codemods.analysis.loading.gathered_behind import gathered_behind
from codemods.analysis.loading.gathered_rounds import Round, gathered_rounds
from codemods.analysis.loading.padded_counts import padded_counts
from codemods.analysis.short_texts import short
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project

_SAMPLER = (
    "this sampler repeats samples until every rank has as many, and the evaluation puts the ranks' results together: the "
    "repeated ones count twice, and the number changes with the number of ranks"
)
_REASON = (
    "let each sample carry its number, gather the numbers too, and count each once; or give the evaluation a share without "
    "padding (`Subset(data, range(rank, len(data), world_size))`) where its rounds come to no collective, and sum counts behind "
    "the loop"
)
_DROPPED = (
    "each rank leaves out the last batch of its share where it is not full, and the sampler shuffles: the number of the "
    "evaluation is not that of its set, and what is left out changes with the number of ranks, and with each `set_epoch`"
)
_KEEP = (
    "keep the last batch (`drop_last=False`), with `shuffle=False` for the sampler, weigh each batch by its size, and count what "
    "the sampler repeats once"
)
_CUT = (
    "the ranks' shares stand one behind the other, and what DistributedSampler repeats stands at the end of each of the last "
    "shares: on three ranks and more this cut takes samples away that come once, and leaves repeated ones"
)
_INTERLEAVE = (
    "put the rows back in the order in which they were dealt out, and cut then: `torch.stack(shares, dim=1).flatten(0, 1)[:n]` "
    "for tensors of one size, `[row for turn in zip(*shares) for row in turn][:n]` for lists"
)
_GATHER = (
    "`gather` keeps the samples that Accelerate repeats to even out the last batches: they count twice in what is made of {}"
)
_BEHIND = (
    "`{}` has an entry for each sample of the loop above, and `gather` keeps those that Accelerate repeats to even out the last "
    "batches: they count twice in what is made of it"
)
_INSIDE = (
    "gather the entries of each batch inside the loop, by `gather_for_metrics`: it cuts what is repeated while the loop is at "
    "its last batch, and not behind it"
)
_ASSUMED = "assumes that it is made of the current batch of a prepared loader, a row for each sample"

_LISTS = (
    "`gather_object` cuts nothing: its lists would no longer fit to tensors that `gather_for_metrics` has cut; gather both by "
    "`accelerator.gather_for_metrics(rows)`, which takes lists as well"
)

_SINCE = (0, 12)  # the first Accelerate with `gather_for_metrics`
_BY_HAND = "the pinned Accelerate has no `gather_for_metrics` (0.12): cut what the last batch repeats by hand, or raise the pin"


class GatheredDuplicates(DdpCodemod):
    """Samples that are repeated to even out the ranks, and count twice in a metric of all ranks.

    ## What it does
    Finds an evaluation that goes through a `DistributedSampler` and sums or gathers counts and predictions over the ranks, or
    averages the scores of its batches over them, also by `compute()` of a torchmetrics object, and in a function that trains
    and evaluates by its mode. Finds `accelerator.gather` of predictions and labels in an evaluation loop, of a function or of
    a script, of a function that the loop hands its batch, or behind `model.eval()` of an epoch, and writes
    `gather_for_metrics`. Where a function goes through a prepared loader, what `generate` makes of the batch counts whatever
    its name, and so does what a function works out by chunks of it. Finds a list with an entry for each sample that is
    gathered behind the loop, itself or as its mean or sum, where the loader of the loop is prepared in the function, in the
    class, or by who calls it, also for each of several loaders. Finds `torch.cat(gathered)[:len(dataset)]`, which puts the
    shares of such a sampler one behind the other and cuts what is too much off the last, also in a function that is handed
    the length. A class of the project that repeats rows as torch's sampler does counts as one, also an heir of it, and one
    that does so by an option which is on. The ranks' counts come together as well where each rank writes its part to a file
    and one adds up all parts, where `module.all_gather(rows)` gives back those of all ranks, and where a list of scores is
    averaged over them behind the loop, and where a logger of meters, into which the loop puts the score of each batch, adds
    up the sums and counts of its meters. Finds the loader at a place of a list that a loop fills (`for data, sampler in
    zip(sets, samplers): loaders.append(...)`), with its sampler and the options of that place. In a loop that trains and
    evaluates by its mode it takes the loader that stands where the mode does not train (`else: rows = self.held`). Finds
    gathered rows by how they are read, too: `kept[i]` beside `batch["text"][i]`.

    Reports `drop_last=True` of a loader that only evaluates, behind a `DistributedSampler` that shuffles: each rank leaves
    samples out, others in each epoch.

    ## Why it matters
    Of 1001 images on eight ranks each rank gets 126, seven images come twice, and the confusion matrix has 1008 of them. The
    score depends on the number of GPUs, and on which images are repeated. With few samples it picks another best checkpoint.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator


    @torch.no_grad()
    def evaluate(accelerator: Accelerator, model, loader, metric):
        for x, labels in loader:
            predictions = model(x).argmax(-1)
            metric.add_batch(*accelerator.gather((predictions, labels)))
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator


    @torch.no_grad()
    def evaluate(accelerator: Accelerator, model, loader, metric):
        for x, labels in loader:
            predictions = model(x).argmax(-1)
            metric.add_batch(*accelerator.gather_for_metrics((predictions, labels)))
    ```

    ## Safety
    Unsafe: `gather_for_metrics` cuts the last batch to the rows that are left of the data set, which is right for tensors with a
    row for each sample. There is no fix for a sampler: what replaces it depends on whether the rounds wait for each other.

    ## Refuses
    - Says nothing of repeated samples where the sampler or the loader has `drop_last=True`, also where the call that makes them
      for the evaluation says so to a function (`loader_for(data, drop_last=True)`), and nothing of such a loader where
      a training goes through its sampler, or where the sampler keeps the order or drops the rest itself; and of losses, times
      and means over the ranks, but for the mean of such a list.
    - Says nothing where the function asks whether the data divide by the ranks, or what it calls collects the results and cuts
      them.
    - Says nothing of what is gathered with the sampler's word on which rows count (`is_valid=i < loader.sampler.valid_length`),
      and of a function that tests it.
    - Says nothing where samples are distinguished by name or number, or what is gathered is cut to the length of the data in
      the order in which it was dealt out.
    - Says nothing where each rank keeps its results in a mapping under a key of the batch, and the mappings are merged by key;
      and of a count that only divides a sum of losses.
    - Says nothing of a script that gathers predictions without labels: it may keep them by their order.
    - Says nothing where an object that gathers them asks of each, in another method, whether it has been seen.
    - Says nothing of a network's output whose name speaks of no samples: it may be a loss. Nor of generated rows of which each
      sample has several (`num_return_sequences`), or in a loop that puts results under a key that it works out.
    - Says nothing of a step that is also called outside of such loops, and of a list with one entry for a batch.
    - Says nothing of a loop that trains, and of `gather` whose result is reduced to a number at once.
    - Says nothing where the function writes out the number of its samples, and eight processes share it out evenly.
    - Says nothing of a `TensorDataset`, whose size the program chooses, and of a sampler that is given the epoch, but where the
      training is seen to go through another one.
    - Says nothing where the way from the loop to the sampler is not seen, and of a sampler that is made under a test for the
      training (`if distributed and training:`).
    - Reports a loop without a fix where `gather_object` gathers lists as well, and the rows are not read by the length of the
      gathered tensors.
    - Says nothing of a logger of meters into which the loop puts losses alone.
    - Reports a sampler: the evaluation has to be given its share in another way.
    - A repository's own tests.

    ## References
    torch 2.13, `DistributedSampler` ("add extra samples to make it evenly divisible"); Accelerate 1.15,
    `Accelerator.gather_for_metrics`. Runs on two processes: five samples are counted as six.
    """

    code = "DDP605"
    severity = "data"
    subject = "Count each sample of an evaluation once"
    must_show = "With a number of samples that two does not divide, the evaluation counts as many on two processes as on one."
    printed = ()
    TRIGGERS = (
        (b"DistributedSampler", b".gather(", b"all_gather"),
        (b"DistributedSampler", b"ccelerat", b"CCELERAT", b"all_gather"),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in padded_counts(project) if module.holds(b"DistributedSampler") else ():
            if found.module is module:
                shown = [
                    Evidence("static", "the share is gone through here", found.where.path, found.loop.lineno),
                    Evidence("static", "the results of the ranks come together here", found.joined_in.path, found.joined.lineno),
                ]
                text, reason = (_DROPPED, _KEEP) if found.dropping else (_SAMPLER, _REASON)
                yield self.finding(module, found.sampler, text, evidence=shown, reason=reason)
        yield from self._cut(module, project)
        for gathered in gathered_rounds(project, module):
            yield self._gather(project, module, gathered)
        for behind in gathered_behind(project, module):
            shown = [Evidence("static", "the batches come from here", module.path, behind.loop.lineno)]
            yield self.finding(module, behind.call, _BEHIND.format(behind.entries), evidence=shown, reason=_INSIDE)

    def _cut(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not project.files_containing(b"all_gather") or not project.files_containing(b"DistributedSampler("):
            return
        for found in cut_gathers(project, module):
            shown = [
                Evidence("static", "the share is gone through here", module.path, found.loop.lineno),
                Evidence("static", "this deals the samples out in turn", found.where.path, found.sampler.lineno),
            ]
            yield self.finding(module, found.cut, _CUT, evidence=shown, reason=_INTERLEAVE)

    def _gather(self, project: Project, module: SourceModule, found: Round) -> Finding:
        same = [c.func for c in found.calls if isinstance(c.func, ast.Attribute)]
        what = ", ".join(f"`{short(module, c.args[0])}`" for c in found.calls)
        evidence = [Evidence("static", "the batches come from here", found.where.path, found.loop.lineno)]
        if found.beside_lists or _lacks_the_call(project, module):
            why = _LISTS if found.beside_lists else _BY_HAND
            return self.finding(module, found.first, _GATHER.format(what), evidence=evidence, reason=why)
        return self.finding(
            module,
            found.first,
            _GATHER.format(what),
            level=Applicability.UNSAFE,
            edits=[
                ReplaceExpression(module.path, module.span(f), f"{module.text_of(f.value)}.gather_for_metrics") for f in same
            ],
            evidence=evidence,
            reason=_ASSUMED,
        )


def _lacks_the_call(project: Project, module: SourceModule) -> bool:
    """True where the pinned Accelerate has no `gather_for_metrics` yet."""
    pin = accelerate_pin(project, near=module.path)
    return pin is not None and pin.surely_below(_SINCE)
