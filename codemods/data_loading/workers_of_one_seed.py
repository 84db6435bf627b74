"""DDP418: the workers of the loaders draw the same numbers on every rank, because of how they are seeded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.seeded_workers import SeededWorkers, seeded_workers
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class WorkersOfOneSeed(DdpCodemod):
    """A seed of the loader's workers that is the same on every rank.

    ## What it does
    Finds `worker_init_fn` of a loader whose sampler shares the data out, where it seeds Python's, numpy's or torch's numbers by a
    constant, or by the number of the worker and nothing else (`np.random.seed(worker_id)`), and where samples are drawn for by
    them: crops, flips, noise, masks. Finds the same in a `__getitem__` that seeds by `get_worker_info().id`.

    ## Why it matters
    Each rank has a worker 0. All of them draw the same numbers, so in each step the ranks crop and flip alike; and since workers
    begin anew in each epoch, so do their numbers. torch gives each worker a seed that no other has. Nothing fails.

    ## Example
    ```python
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, Dataset, DistributedSampler


    class Rows(Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.rows[index] + np.random.normal()


    def seed_worker(worker_id):
        np.random.seed(worker_id)


    def main(rows, optimizer):
        dist.init_process_group("nccl")
        data = Rows(rows)
        loader = DataLoader(data, num_workers=4, sampler=DistributedSampler(data), worker_init_fn=seed_worker)
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        for x in loader:
            model(x).mean().backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, Dataset, DistributedSampler


    class Rows(Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.rows[index] + np.random.normal()


    def seed_worker(worker_id):
        np.random.seed(torch.initial_seed() % 2**32)


    def main(rows, optimizer):
        dist.init_process_group("nccl")
        data = Rows(rows)
        loader = DataLoader(data, num_workers=4, sampler=DistributedSampler(data), worker_init_fn=seed_worker)
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        for x in loader:
            model(x).mean().backward()
            optimizer.step()
    ```

    ## Safety
    There is no fix: where every rank seeds torch alike, `torch.initial_seed()` is the same on all of them as well, and the rank
    has to be added.

    ## Refuses
    - Says nothing of a seed that takes torch's own (`torch.initial_seed()`, `get_worker_info().seed`), the state of the process,
      a clock, or the rank by any name.
    - Says nothing where no draw of a data set or of a transform in the files that it imports is seen.
    - Says nothing of a loader of Lightning, which may seed the workers itself, and of one that no training goes through.
    - Says nothing of a function that is put together (`partial(seed_worker, rank=rank)`).
    - Says nothing in a repository's own tests.

    ## References
    The documentation of torch.utils.data, "Randomness in multi-process data loading"; two processes with two workers each.
    """

    code = "DDP418"
    severity = "data"
    TRIGGERS = ((b"seed(",), (b"worker", b"init_fn"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        used = project.files_containing(b"worker_init_fn") or project.files_containing(b"get_worker_info")
        return bool(used) and bool(project.files_containing(b"DistributedSampler"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in seeded_workers(project, module):
            yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: SeededWorkers) -> Finding:
        what = short(found.draw_in, found.draw)
        who = "the workers of one number on all ranks" if found.by_worker else "all workers of all ranks"
        again = "" if _persists(found) else ", and in each epoch the same again"
        loader = found.deal.loader
        return self.finding(
            module, found.seed,
            f"`{short(module, found.seed)}` gives {who} the same numbers{again}: `{what}` draws alike for their samples",
            evidence=[
                Evidence("static", f"`{what}` draws for each sample", found.draw_in.path, found.draw.lineno),
                Evidence("static", "the ranks share the samples of this loader", loader.module.path, loader.call.lineno),
            ],
            reason="seed by `torch.initial_seed() % 2**32`, which torch draws for each worker, and add the rank where all "
            "ranks seed torch alike",
        )  # fmt: skip


def _persists(found: SeededWorkers) -> bool:
    given = found.deal.loader.argument("persistent_workers", 99)
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)
