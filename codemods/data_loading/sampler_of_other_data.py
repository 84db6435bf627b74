"""DDP420: a loader whose DistributedSampler deals out the indices of another data set."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.other_data import OtherData, part_of, samplers_of_other_data
from codemods.analysis.loading.samplers import short
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project


class SamplerOfOtherData(DdpCodemod):
    """A loader whose `DistributedSampler` was made over another data set than the loader reads.

    ## What it does
    Finds a `DataLoader` over the data of one part (test) whose `DistributedSampler` is made over those of another one (train).
    Where the sampler is this loader's alone, and its name says so, it is made over the data that the loader reads.

    ## Why it matters
    A sampler gives numbers of samples, from 0 to the length of its data set. Where the loader's own is shorter, it is asked past
    its end: IndexError in the middle of the first test. Where it is longer, its end is never read, and nothing fails.

    ## Example
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def make_loaders(train_data, test_data):
        train_sampler = DistributedSampler(train_data)
        test_sampler = DistributedSampler(train_data, shuffle=False)
        train_loader = DataLoader(train_data, batch_size=8, sampler=train_sampler)
        test_loader = DataLoader(test_data, batch_size=8, sampler=test_sampler)
        return train_loader, test_loader
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def make_loaders(train_data, test_data):
        train_sampler = DistributedSampler(train_data)
        test_sampler = DistributedSampler(test_data, shuffle=False)
        train_loader = DataLoader(train_data, batch_size=8, sampler=train_sampler)
        test_loader = DataLoader(test_data, batch_size=8, sampler=test_sampler)
        return train_loader, test_loader
    ```

    ## Safety
    Safe: nothing but this loader takes the sampler, whose name speaks of the same part of the data as the loader's own, and these
    are made above it on every way.

    ## Refuses
    - Says nothing of data whose names do not speak of two parts (train and test): both may have the same rows.
    - Says nothing where one of the two is made of the other, or both are made in the same way but for what becomes of a row.
    - Says nothing where one of the samplers that the loader may be given is made over its own data, or is not seen to be made.
    - Says nothing where a test decides over the loader by what decides over the sampler.
    - Reports a sampler that another loader takes, too: this one wants a sampler of its own.
    - Says nothing in a repository's own tests, and of code that no program runs.

    ## References
    `torch.utils.data.distributed.DistributedSampler`: "dataset: Dataset used for sampling"; runs with torch 2.13.
    """

    code = "DDP420"
    severity = "crash"
    subject = "Make samplers over the data of their loaders"
    must_show = "Two processes go through all samples of the test set between them."
    printed = ()
    TRIGGERS = ((b"DataLoader",), (b"ampler",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"DistributedSampler"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in samplers_of_other_data(project, module):
            if not is_run_by_nobody(project, module, found.loader.call):
                yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: OtherData) -> Finding:
        data, dealt = module.text_of(found.data), module.text_of(found.dealt)
        message = (
            f"the sampler deals out the indices of `{dealt}`, and the loader reads `{data}` with them: where that is shorter, "
            "it is asked past its end (IndexError), and where it is longer, its end is never read"
        )
        if not found.own:
            return self.finding(
                module, found.given, message,
                evidence=[Evidence("static", f"`{short(module, found.sampler.node)}`", module.path, found.sampler.line)],
                reason=f"give the loader a DistributedSampler of its own, over `{data}`",
            )  # fmt: skip
        safe = part_of(found.given) == part_of(found.data) and _is_made_above(module, found)
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(found.dealt), data)]
        return self.finding(
            module, found.dealt, message,
            level=Applicability.SAFE if safe else Applicability.DISPLAY,
            edits=edits if safe else [],
            evidence=[Evidence("static", "the loader", module.path, found.loader.call.lineno)],
            reason="" if safe else f"make the sampler over `{data}`",
        )  # fmt: skip


def _is_made_above(module: SourceModule, found: OtherData) -> bool:
    """True where the loader's data have their one value before the sampler is made, whatever way leads there."""
    bound = name_or_field_bindings(module, found.data)
    if len(bound) != 1 or module.function_of(bound[0].node) is not module.function_of(found.sampler.node):
        return False
    if bound[0].parameter:
        return True
    statement = module.statement_of(bound[0].node)
    block = module.block_of(statement)
    return statement.lineno < found.sampler.line and any(up in block for up in module.ancestors(found.sampler.node))
