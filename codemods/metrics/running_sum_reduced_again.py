"""DDP118: a running sum that is reduced in its own place in each round of the loop that adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.analysis.averages.again import ReducedAgain, sums_reduced_again
from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class RunningSumReducedAgain(DdpCodemod):
    """A running sum is summed over the ranks in its own place, and the loop goes on adding to it and reducing it.

    ## What it does
    Finds `dist.all_reduce(total)`, or `total = reduce_sum(total)`, in a loop that adds to `total` in each round and does not
    set it anew as often.

    ## Why it matters
    Behind the first reduction `total` holds the sum of all ranks, on each of them. The next one adds these up again: with four
    ranks the first step counts four times in the second round, sixteen times in the third. The mean of such sums leans on the
    first steps, the sum itself grows without a limit, and a count reaches its threshold in a few rounds. One process is right.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def train(model, loader, log):
        hits = torch.zeros(1, device="cuda")
        for step, (x, y) in enumerate(loader):
            hits += (model(x).argmax(1) == y).sum()
            dist.all_reduce(hits)
            log(step, hits.item())
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def train(model, loader, log):
        hits = torch.zeros(1, device="cuda")
        for step, (x, y) in enumerate(loader):
            hits += (model(x).argmax(1) == y).sum()
            total = hits.clone()
            dist.all_reduce(total)
            log(step, total.item())
    ```

    ## Safety
    There is no fix: whether the sum is to be set anew or a copy is to be reduced is a choice.

    ## Refuses
    - Says nothing where the sum is set anew as often as it is reduced, and where it is divided or scaled in the loop.
    - Says nothing of a mean over the ranks: the mean of what is the same everywhere is itself.
    - Says nothing where the reduction stands under a test that the sum does not stand under, for it may run once, and where the
      loop ends behind it.
    - Says nothing of fields, whose other methods may set them, and of a group of some ranks.
    - Says nothing in a repository's own tests, and of code that no program runs on several ranks.

    ## References
    torch 2.13: `all_reduce` writes the result into its argument on every rank. Runs on two gloo processes.
    """

    code = "DDP118"
    severity = "data"
    TRIGGERS = ((b"all_reduce", b"reduce"), (b"for ", b"while "))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        return b"all_reduce" in data or b"reduce(" in data or b"reduce_" in data

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for sums in _by_statement(module, sums_reduced_again(project, module)):
            found = sums[0]
            if is_run_by_nobody(project, module, found.reduction):
                continue
            names = " and ".join(f"`{s.name}`" for s in sums)
            makes, them = ("becomes the sum", "it") if len(sums) == 1 else ("become sums", "them")
            yield self.finding(
                module, found.reduction,
                f"{names} {makes} of all ranks here, and the loop adds to {them} and sums {them} over the ranks again: what is "
                f"in {them} is multiplied by the number of processes in each round",
                evidence=[Evidence("static", f"the loop adds to `{s.name}` here", module.path, s.added.lineno) for s in sums],
                reason=f"reduce a copy (`{found.name}.clone()`) and go on with the own sum, or set it to zero each time",
            )  # fmt: skip


def _by_statement(module: SourceModule, found: Iterable[ReducedAgain]) -> list[list[ReducedAgain]]:
    """Sums that one statement reduces are one thing to tell."""
    by: dict[int, list[ReducedAgain]] = {}
    for one in found:
        by.setdefault(id(module.statement_of(one.reduction)), []).append(one)
    return list(by.values())
