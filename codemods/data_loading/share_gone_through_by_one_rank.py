"""DDP415: rank 0 alone goes through a loader that the ranks share out."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.walked_alone import Harm, WalkedAlone, walked_alone
from codemods.analysis.variance.told_numbers import numbers_of_one_rank
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARDS
from codemods.files.source import SourceModule
from codemods.store.project import Project

_WAITS = (
    "rank 0 alone begins a pass over `{loader}`{there}, which is prepared and shuffled: Accelerate then brings the generators "
    "together, by a broadcast that the other ranks do not make; rank 0 hangs, or is out of step with their next collective"
)
_SHARE = (
    "rank 0 alone goes through `{loader}`{there}, which is shared out over the ranks: it sees its own share of the set, and "
    "nobody looks at the rest"
)
_ADVICE = {
    Harm.WAITS: (
        "let every rank go through the loader, outside of the test, and gather; or give rank 0 a loader of its own that is not "
        "prepared"
    ),
    Harm.SHARE: (
        "let every rank go through its share and gather what comes of it, or give rank 0 a loader of the whole set: not "
        "prepared, and without the sampler"
    ),
}


class ShareGoneThroughByOneRank(DdpCodemod):
    """Rank 0 alone goes through a loader that the ranks share out.

    ## What it does
    Finds a loop over a loader, `next(...)` of one, or a call of a function that goes through it, that rank 0 alone comes to,
    where Accelerate has prepared the loader, or its sampler is a DistributedSampler. Follows iterators that are made of a loader
    (`iter`, `cycle`, a generator of the project), attributes, entries of a dictionary, and arguments through calls.

    ## Why it matters
    The loader hands rank 0 its own share: the pictures, the FID or the accuracy are those of an eighth of the set on eight GPUs,
    and nothing says so. A loader that shuffles is worse with Accelerate: each pass begins with a broadcast of its generator's
    state. Rank 0 makes it alone, and waits, or its broadcast meets the next all-reduce of the others.

    ## Example
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader


    def train(model, optimizer, rows, held_out, score):
        accelerator = Accelerator()
        train_loader = DataLoader(rows, batch_size=8, shuffle=True)
        test_loader = DataLoader(held_out, batch_size=8)
        model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)
        for batch in train_loader:
            accelerator.backward(model(batch).mean())
            optimizer.step()
        if accelerator.is_main_process:
            inner = accelerator.unwrap_model(model)
            for batch in test_loader:
                score.add(inner(batch))
            score.save("score.json")
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader


    def train(model, optimizer, rows, held_out, score):
        accelerator = Accelerator()
        train_loader = DataLoader(rows, batch_size=8, shuffle=True)
        test_loader = DataLoader(held_out, batch_size=8)
        model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
        for batch in train_loader:
            accelerator.backward(model(batch).mean())
            optimizer.step()
        if accelerator.is_main_process:
            inner = accelerator.unwrap_model(model)
            for batch in test_loader:
                score.add(inner(batch.to(accelerator.device)))
            score.save("score.json")
    ```

    ## Safety
    There is no fix: whether all ranks evaluate, or rank 0 with a loader of its own, is a decision.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of a few batches of a loader that is not seen to shuffle: a loop with a `break`, `next(iter(loader))`.
    - Says nothing of a loader that may be made without the sampler (but for where there is no data, either), and of one that
      rank 0 alone prepares.
    - Says nothing of a hang where the Accelerator is given `rng_types`, `dispatch_batches` or `use_seedable_sampler`.
    - Says nothing of an iterator of which the other ranks take batches too: they have begun the pass together.
    - Says nothing where the other arm of the test goes through something as well.
    - Says nothing where the number that comes of it is reported by DDP106.

    ## References
    Accelerate 1.15, `DataLoaderShard.__iter__` and `synchronize_rng_states`; runs on two gloo processes: a shuffled loader on the
    main process alone hangs, one that is not shuffled gives it 8 of 16 rows.
    """

    code = "DDP415"
    severity = "hang"
    subject = "Go through a shared loader on every rank"
    must_show = "An evaluation on two processes counts as many rows as on one."
    printed = ()
    TRIGGERS = (GUARDS, PROCESSES, (b"oader", b"_dl", b"dl_"))
    SITES = RANK_GUARDS
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b".prepare(") or project.files_containing(b"DistributedSampler"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in walked_alone(project, module):
            if found.harm is Harm.WAITS or not _is_told(project, module, found):
                yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: WalkedAlone) -> Finding:
        loader = module.text_of(found.loader)
        shown = [Evidence("static", found.shared.text, found.shared.path, found.shared.line)]
        there = ""
        if found.loop is not None:
            path, line = found.loop
            there = f" in line {line}" if path == module.path else f" ({path}:{line})"
            shown.append(Evidence("static", "it is gone through here", path, line))
        if found.made:
            shown.append(Evidence("static", "it shuffles", module.path, found.made))
        text = _WAITS if found.harm is Harm.WAITS else _SHARE
        return self.finding(
            module, found.node, text.format(loader=loader, there=there), evidence=shown, reason=_ADVICE[found.harm]
        )


def _is_told(project: Project, module: SourceModule, found: WalkedAlone) -> bool:
    """True where DDP106 tells of the number that the loop comes to."""
    return any(number.alone and number.at is found.node for number in numbers_of_one_rank(project, module))
