"""DDP411: the ranks have unequal shares of the data, so they make unequal numbers of steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.neighbour_rounds import exchanges_with_one
from codemods.analysis.guards.set_by_one_rank import is_set_by_test
from codemods.analysis.loading.cropped_lists import are_cropped
from codemods.analysis.loading.early_ends import early_ends
from codemods.analysis.loading.evened_rounds import counts_its_steps, is_joined
from codemods.analysis.loading.offset_rows import offset_rows
from codemods.analysis.names import dotted, last
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.variance.loaders import training_loaders, uneven_batches
from codemods.analysis.variance.mismatches import Form, Mismatch, mismatches_in
from codemods.analysis.variance.paths import goes_through_entries
from codemods.analysis.variance.shards import is_of_shards
from codemods.analysis.variance.values import Cause, How, Value
from codemods.analysis.variance.wording import chain, head, message
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.data.rank_variance import COLLECTIVE_WORDS
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ADVICE = (
    "give every rank as many rounds: cut or pad the whole to a multiple of the ranks before it is split (DistributedSampler "
    "pads), or run the loop under `Join([model])`"
)
_ADVICE_OF_START = (
    "let one rank say where the loop begins and ends, and hand the numbers to all others (`broadcast_object_list`) above it"
)
_ADVICE_OF_SHARDS = (
    "give every rank as many batches: `.with_epoch(batches)`, with `resampled=True` for the shards, or run the loop under "
    "`Join([model])`"
)
_ADVICE_OF_KEYS = (
    "let every rank go through the same keys: give each of them a value on all ranks (0 where a count is 0), or gather the "
    "dictionaries (`all_gather_object`) and put them together"
)
_ADVICE_OF_SETTING = "leave it out, or train under `accelerator.join_uneven_inputs([model])`"
_ADVICE_OF_END = (
    "raise an error that ends the run (`RuntimeError`), which the launcher sees, or give another sample in the place of this one"
)
_OFFSET = (
    "`{}` takes all ranks to have as many rows: where the last batches differ in size, the labels of every rank but 0 point at "
    "other rows of what is gathered"
)
_ADVICE_OF_OFFSET = "begin at the sum of the sizes of the ranks before it, which the gather has asked for, or drop the last batch"
_SHOWN = 60
_LOADER = (
    "the training loader goes through each rank's own share, whose length may differ: the ranks with more batches wait in "
    "the next backward for those that are done"
)
_SETTING = (
    "even_batches=False lets the last ranks get fewer batches: the others wait for them in the next backward, or gather, "
    "until the time-out"
)


class UnevenSteps(DdpCodemod):
    """A loop that runs more often on one rank than on another, with a collective in each round.

    ## What it does
    Finds loops over a share of the data whose length depends on the rank (`rows[rank::world_size]`, the elements with `i %
    world_size == rank` in a list or a stream, parts of `array_split` and `tensor_split`, slices with one more for the first `n
    % world_size` ranks, slices from `n * rank // world_size` to the next such bound, files of each rank, a sampler or a data
    set of the project that splits without padding, windows of a length that is rounded up (`range(first, min(first + n,
    total))`), a generator that passes over what is not the rank's, `shard` and `split_dataset_by_node` of datasets, shards that
    webdataset's `split_by_node` gives each rank), also behind a prefetcher of the project, or over the keys that its own
    batches have put into a dictionary, or decide on (`if kept > 0: scores["hits"] = …`), where each round comes to a
    collective: the backward of a wrapped model, an all_reduce, a barrier. Finds a data set whose `__getitem__` raises
    `StopIteration` when a sample fails: the loader hands it on, and the loop ends as if the data were done. In such a loop,
    finds labels that begin at `len(rows) * rank` of rows that are gathered in any size.

    ## Why it matters
    41 rows on two ranks are 21 and 20. The rank with fewer batches leaves the loop; the other waits for it in the next gradient
    all-reduce, until the time-out. It happens at the end of the first epoch, and only for some sizes of the data.

    ## Example
    ```python
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    def train(net, rows, optimizer, loss_of):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        model = DDP(net)
        for batch in DataLoader(rows[rank::world_size], batch_size=4):
            optimizer.zero_grad()
            loss_of(model(batch)).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    def train(net, rows, optimizer, loss_of):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        model = DDP(net)
        even = len(rows) // world_size * world_size
        for batch in DataLoader(rows[:even][rank::world_size], batch_size=4):
            optimizer.zero_grad()
            loss_of(model(batch)).backward()
            optimizer.step()
    ```

    ## Safety
    There is no fix: whether rows are dropped or repeated is a decision about the data.

    ## Refuses
    - Says nothing in a repository's own tests, and nothing of a loop that comes to no collective.
    - Says nothing of a backward where the project starts its group itself and wraps no model: it waits for nobody.
    - Says nothing of `DistributedSampler` and loaders that Accelerate, Fabric or Lightning prepare: they pad, or even out.
    - Says nothing where the whole is cut to a multiple first (`//`, `%`), made up to one (`rows += rows[:missing]`), or checked
      (`if len(files) % world_size: raise`), of a stream that begins anew for ever (`while True`, `itertools.cycle`),
      and of a generator that goes on until it has given a number of all ranks (`while given < most: given += 1; yield rows[:n]`).
    - Says nothing under `Join`, `model.join()` and `accelerator.join_uneven_inputs`, and where a test of the number of steps
      leaves the loop.
    - Says nothing where the number of steps is reduced over the ranks, or given by a setting.
    - Says nothing of shards that are resampled, of a stream with `with_epoch`, `slice` or `repeat`, and of a loop over shards
      that is left by `break`.
    - Says nothing of the Trainer's own loader where anything sets `max_steps`: all ranks make as many then.
    - Says nothing of keys that are written out, that name the kind of an item (`item.request_type`), that come from what the
      model gives, or that all ranks have gathered.
    - Says nothing of numbers that one rank alone sets, under a test of the rank (DDP305).
    - Says nothing of rounds that are counted by the rank and hand something to one other rank, or take it (`isend`, `recv`): the
      stages of a pipeline make unequal numbers of them.
    - Says nothing of lists that rank 0 fills under a progress bar and the others without one.
    - Says nothing of a `StopIteration` that the index decides on, that the class catches, or that a stream raises (`__next__`),
      and of programs that are not shown to run on several processes.

    ## References
    torch 2.13: `DistributedSampler` pads to equal lengths, `torch.distributed.algorithms.join.Join` is for unequal ones; runs on
    two gloo processes.
    """

    code = "DDP411"
    severity = "hang"
    TRIGGERS = ((*COLLECTIVE_WORDS, b"StopIteration"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in mismatches_in(project, module):
            if _is_share(found) and not _is_evened(module, found):
                if are_cropped(project, ((link.path, link.line) for link in found.value.chain)):
                    left(module, found.node, "what the ranks go through is cut to one length")
                    continue
                if found.value.cause is Cause.RANK and _counts(found) and exchanges_with_one(project, module, found.node):
                    left(module, found.node, "each round pairs up with one of a neighbour")
                    continue
                shown = list(chain(found))
                text = message(found, head(module, found.node))
                yield self.finding(module, found.node, text, evidence=shown, reason=_advice(found))
                for rows in offset_rows(project, module, found.node):
                    text = " ".join(module.text_of(rows).split())
                    yield self.finding(
                        module, rows, _OFFSET.format(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."), evidence=shown,
                        reason=_ADVICE_OF_OFFSET, severity="data",
                    )  # fmt: skip
        for node, value in training_loaders(project, module):
            shown = [Evidence("static", link.text, link.path, link.line) for link in value.chain]
            advice = _ADVICE_OF_SHARDS if is_of_shards(value) else _ADVICE
            yield self.finding(module, node, _LOADER, evidence=shown, reason=advice, severity="risk")
        for keyword in uneven_batches(project, module):
            yield self.finding(module, keyword, _SETTING, reason=_ADVICE_OF_SETTING)
        for end in early_ends(project, module):
            shown = [Evidence("static", "a sample fails on the rank that has it", module.path, end.failed.lineno)]
            text = (
                f"the StopIteration of {end.owner} ends the loop over its loader on the rank whose sample fails, as if the data "
                "were done: the others wait for it in their next step until the time-out"
            )
            yield self.finding(module, end.at, text, evidence=shown, reason=_ADVICE_OF_END)


_PICKS = lazy(r" if |append\(|filter\(|nonzero|unique|select|where\(|split\(|nms|\[[^\]]*[<>=]")  # by what the elements hold


# `key = item.request_type`
_KIND = lazy(r"= \w+(?:\.\w+)*\.(?:\w+_)?(?:type|kind|mode|method|task|split|stage|phase|format)`$")
_SLOT = lazy(r"\w\[(?:\w+\.)*\w*rank\w*\]", re.IGNORECASE)


def _is_share(found: Mismatch) -> bool:
    """A loop over a share; what a `while` asks is a decision, DDP305's."""
    if found.form is not Form.ROUNDS or not found.value.sized or isinstance(found.node, ast.While):
        return False
    if found.value.cause is Cause.RANK and is_set_by_test(found):
        return False  # what one rank alone sets is DDP305's
    if found.value.cause is Cause.PLACE:
        return False  # a number read from a file that all have, or not: where they start over, not what they share out
    if is_of_shards(found.value) and any(isinstance(n, ast.Break) for n in walk(found.node)):
        return False  # it counts its steps, fewer than the shards hold
    if _is_slot(found.value):
        return False  # a place for each rank in one list: what stands there may be the same
    links = found.value.chain
    shown = is_of_shards(found.value) or any(link.how is How.SHARE or _PICKS.search(link.text) for link in links)
    if found.value.cause is Cause.DATA and not shown and _counts(found):
        return False  # how long a batch is, loaders that pad make the same on all ranks
    sampled = any("DataLoader(" in link.text or "its sampler" in link.text for link in found.value.chain)
    if found.value.cause is Cause.DATA and not shown and sampled and not _goes_through_keys(found.node):
        return False  # a loader whose share is not seen: samplers that share the data out pad
    if not _goes_through_keys(found.node):
        return True
    if found.value.chain and _KIND.search(found.value.chain[0].text):
        return False  # what kinds of items there are, each rank's share shows alike
    if not found.value.keyed and not shown:
        return False  # a rank's own items are in the values, under keys that all of them have
    source = found.node.iter if isinstance(found.node, (ast.For, ast.AsyncFor)) else found.node
    held = any(isinstance(n, ast.Name) and n.id == "self" for n in walk(source))  # what it holds, all ranks made alike
    return not held and (found.meeting is None or found.meeting.name != "forward")


def _advice(found: Mismatch) -> str:
    if _counts(found) and found.value.cause is not Cause.DATA:
        return _ADVICE_OF_START
    if is_of_shards(found.value):
        return _ADVICE_OF_SHARDS
    return _ADVICE_OF_KEYS if found.value.keyed and _goes_through_keys(found.node) else _ADVICE


def _is_slot(value: Value) -> bool:
    """True for `names[rank]`, but for the part of a whole that is cut there (`array_split(rows, world_size)[rank]`)."""
    cut = value.origin.text.partition("`")[2].partition("`")[0] if value.origin and value.origin.how is How.SHARE else ""
    return any(_SLOT.search(link.text.replace(cut, "") if cut else link.text) for link in value.chain)


def _is_evened(module: SourceModule, found: Mismatch) -> bool:
    """True where the ranks leave the loop together, or those with fewer rounds make up for them."""
    return is_joined(module, found.node) or counts_its_steps(found.node) or _is_topped_up(module, found)


def _is_topped_up(module: SourceModule, found: Mismatch) -> bool:
    """True where a loop of the function makes the rounds that are missing (`for _ in range(most - mine)`), with the same call."""
    function = module.function_of(found.node)
    name = found.meeting.name if found.meeting is not None else ""
    for loop in walk(function) if function is not None and name else ():
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "range":
            missing = any(isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub) for a in loop.iter.args)
            if missing and any(isinstance(c, ast.Call) and last(dotted(c.func)) == name for c in walk(loop)):
                return True
    return False


def _counts(found: Mismatch) -> bool:
    """True for `for i in range(...)`, and for a bar round it that is made in the line before."""
    source = found.node.iter if isinstance(found.node, (ast.For, ast.AsyncFor)) else None
    made = found.value.chain[0].text if isinstance(source, ast.Name) and found.value.chain else ""
    return "range(" in (ast.unparse(source) if source is not None else "") or "range(" in made


def _goes_through_keys(node: ast.AST) -> bool:
    """True for `for name in results.keys()`: a forward for each result is the evaluation's, which one rank may make alone."""
    source = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else None
    return source is not None and goes_through_entries(source)
