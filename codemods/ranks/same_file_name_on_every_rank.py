"""DDP211: each rank writes its own part of the data to a file of one name."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module, runs_trials
from codemods.analysis.files.named_by_rank import Renamed, named_by_rank
from codemods.analysis.files.one_batch_kept import keeps_one_batch
from codemods.analysis.files.own_contents import SPEAKING, OwnContent, own_contents
from codemods.analysis.run_by_ranks import may_be_run_by_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_SHOWN_BATCH = (
    "each round writes the file anew, so that it holds one batch with one process, too: let rank 0 alone write it, or put the "
    "rank into the name"
)
_SHOWN = 40  # characters of the value in a message


class SameFileNameOnEveryRank(DdpCodemod):
    """A file of one name to which each rank writes what it has made of its own share of the data.

    ## What it does
    Finds files that every rank writes under one name with what is its own: predictions of the batches that a
    `DistributedSampler` dealt out to it, lines of `rows[rank::world]`, what `trainer.predict` of Lightning returns, what a hook
    of its `BasePredictionWriter` is handed. Puts the rank into the name.

    ## Why it matters
    The ranks overwrite each other's file, and what is left is the part of the rank that wrote last, or lines of several: of four
    ranks three quarters of the predictions are missing. Under a test for rank 0 they would be missing as well.

    ## Example
    ```python
    import json

    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler


    def predict(model, data):
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
        found = []
        with torch.no_grad():
            for x in loader:
                found.extend(model(x).argmax(1).tolist())
        with open("predictions.json", "w") as f:
            json.dump(found, f)


    def main(data):
        dist.init_process_group("nccl")
        predict(torch.nn.Linear(4, 2).cuda(), data)
    ```

    ## Use instead
    ```python
    import json

    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler


    def predict(model, data):
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
        found = []
        with torch.no_grad():
            for x in loader:
                found.extend(model(x).argmax(1).tolist())
        with open(f"predictions-rank{dist.get_rank()}.json", "w") as f:
            json.dump(found, f)


    def main(data):
        dist.init_process_group("nccl")
        predict(torch.nn.Linear(4, 2).cuda(), data)
    ```

    ## Safety
    Unsafe: whoever reads the file has to read one for each rank.

    ## Refuses
    - Says nothing where the path holds the rank, an item of the rank's own share, a clock or a temporary folder.
    - Says nothing of what is gathered or reduced first, of what is the same on every rank, and of lines that are added (`"a"`).
    - Says nothing of `torch.save` (DDP501), and under a test of the rank.
    - Reports a name that the repository says elsewhere: whoever reads it has to read all of them.
    - Reports what each round of a loop over batches writes anew: it is there to look at, and rank 0's may do.
    - Reports a name that is not written out, and a place where the rank cannot be asked for.
    - Other hooks of Lightning and transformers (DDP201, DDP202); a repository's own tests.

    ## References
    `torch.utils.data.DistributedSampler`: each process gets a subset of the data; runs on two processes. Lightning's
    `BasePredictionWriter`: each process writes the predictions of its own batches.
    """

    code = "DDP211"
    severity = "data"
    takes_several = True
    subject = "Give each rank a file of its own"
    must_show = "There is a file for each rank, and together they hold as many rows as the data."
    printed = ()
    TRIGGERS = (
        (*SPEAKING, b"PredictionWriter"),
        (b"open(", b"save", b"to_csv", b"to_json", b"to_p", b"write_"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_be_run_by_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or runs_trials(module):
            return
        for one in own_contents(project, module):
            yield self._tell(module, project, one)

    def _tell(self, module: SourceModule, project: Project, one: OwnContent) -> Finding:
        statement = module.statement_of(one.found.file.call)
        shown = not one.value.mean and keeps_one_batch(project, module, one.found.file)
        made = Renamed((), why=_SHOWN_BATCH) if shown else named_by_rank(project, module, one.found.file.path, statement)
        text = one.text if len(one.text) <= _SHOWN else one.text[: _SHOWN - 3] + "..."
        chain = [Evidence("static", link.text, link.path, link.line) for link in one.value.chain]
        return self.finding(
            module, one.found.file.call,
            f"each rank writes its own `{text}` to the same file: only the part of the rank that writes last is left",
            level=Applicability.UNSAFE if made.edits else Applicability.DISPLAY,
            edits=made.edits,
            evidence=[*chain, one.found.way.shown],
            reason=made.why or f"assumes that whoever reads the file reads each `{made.name}`",
        )  # fmt: skip
