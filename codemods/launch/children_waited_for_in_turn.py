"""DDP706: a launcher waits for its ranks one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.forked_ranks import waits_for_one
from codemods.analysis.ranks.waited_in_turn import waits_in_turn
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class ChildrenWaitedForInTurn(DdpCodemod):
    """A launcher that waits for its ranks one after the other, and so never sees that a later one has failed.

    ## What it does
    Finds `process.join()` and `process.wait()` in a loop over the processes that a file has started, where each of them is a
    rank (it joins the process group, or is given `RANK`, `LOCAL_RANK` or `--local_rank`), and where nothing in the file looks
    at the other children or ends them. Finds also a single `os.wait()` or `os.waitpid(...)` behind a loop that forks ranks: the
    parent leaves when one of them ends, however that went.

    ## Why it matters
    Rank 1 fails: rank 0 waits for it in the next collective, and the launcher waits for rank 0. The error stands in the log,
    the job keeps its GPUs until the time-out of the group, half an hour with gloo and ten minutes with NCCL, or for ever.

    ## Example
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def launch(world_size):
        processes = [mp.Process(target=worker, args=(rank, world_size)) for rank in range(world_size)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def launch(world_size):
        mp.spawn(worker, args=(world_size,), nprocs=world_size)
    ```

    ## Safety
    There is no fix: how the children are started and what comes of their errors is the launcher's own.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of children that are not shown to be ranks: preparation, data workers, queues.
    - Says nothing where the file looks at its children (`poll`, `is_alive`, sentinels), ends them, or waits with a time limit.
    - Says nothing of `mp.spawn`, and of a single child.
    - Says nothing of forks where the file ends a process, waits in a loop, or waits at more than one place.

    ## References
    `torch.multiprocessing.spawn`: when one process fails, it ends the others and raises the error; torchrun does the same; a
    two-process run over gloo in which rank 1 raises.
    """

    code = "DDP706"
    severity = "crash"
    TRIGGERS = ((b"Process", b"Popen", b"fork("), (b".join(", b".wait(", b".communicate(", b"wait(", b"waitpid("))
    SITES = (
        Site(rb"\.(?:join|wait|communicate)\([ \t]*\)", b".join(", b".wait(", b".communicate("),
        Site(rb"\bfork\([ \t]*\)", b"fork("),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in waits_in_turn(project, module):
            verb = f"`{module.text_of(found.call)}`"
            yield self.finding(
                module, found.call,
                f"{verb} waits for the ranks one after the other: when a later one fails, the first waits for it in a "
                "collective, and nobody ends the first",
                evidence=[found.why, Evidence("static", "one child after the other", module.path, found.loop.lineno)],
                reason="start them with torch.multiprocessing.spawn or torchrun, or look at all of them in turn (`poll()`, "
                "`exitcode`) and end the others when one has failed",
            )  # fmt: skip
        for one in waits_for_one(project, module):
            yield self.finding(
                module, one.call,
                f"`{module.text_of(one.call)}` waits for one of the ranks that are forked in line {one.loop.lineno}: when it "
                "fails, the parent leaves, and the others stay behind, waiting for it in a collective on their GPUs",
                evidence=[one.why, Evidence("static", "the only wait of the parent", module.path, one.call.lineno)],
                reason="start them with torchrun or torch.multiprocessing.spawn, or wait for as many children as were forked, "
                "end the others when one has failed, and exit with its status",
            )  # fmt: skip
