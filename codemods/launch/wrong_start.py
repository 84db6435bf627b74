"""DDP713: processes that are started with arguments that they cannot take, or as many as all nodes have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.unequal_counts import Unequal
from codemods.analysis.ranks.wrong_starts import BadStart, Wrong, wrong_starts
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class WrongStart(DdpCodemod):
    """The processes are started with arguments that they cannot take, or are not as many as the ranks.

    ## What it does
    Finds `mp.spawn(worker, args=(count))` and `Process(target=worker, args=(count))` of a rank, where the brackets make no tuple
    and `count` is a number or what `parse_args()` gives, and writes `(count,)`. Finds a tuple that holds more or fewer arguments
    than the worker takes. Finds `nprocs=` that is a product with the number of nodes, and one that is not the `world_size` with
    which the worker starts the process group: `nprocs=min(count, 4)` beside `args=(count,)`, a fixed number on one side only.

    ## Why it matters
    The first two end every start with a TypeError; they stand for months in the branch for several GPUs, which nobody has run.
    The third works on one node. On two each node starts the processes of both: twice as many as it has GPUs, and NCCL ends
    with "Duplicate GPU detected", or CUDA with "invalid device ordinal". The fourth waits in `init_process_group` for ranks that
    nobody starts, until the time-out.

    ## Example
    ```python
    import torch
    import torch.multiprocessing as mp


    def worker(gpu, count):
        torch.distributed.init_process_group("nccl", rank=gpu, world_size=count)


    def main():
        count = torch.cuda.device_count()
        mp.spawn(worker, nprocs=count, args=(count))
    ```

    ## Use instead
    ```python
    import torch
    import torch.multiprocessing as mp


    def worker(gpu, count):
        torch.distributed.init_process_group("nccl", rank=gpu, world_size=count)


    def main():
        count = torch.cuda.device_count()
        mp.spawn(worker, nprocs=count, args=(count,))
    ```

    ## Safety
    Safe where the worker is seen to take the one argument: without the comma no process ever runs it. Unsafe where the worker is
    not seen.

    ## Refuses
    - Says nothing of a value that may be a tuple or a list, and of one that is not known.
    - Says nothing of a process that is no rank.
    - Says nothing of a worker with a decorator, one that may be another function, and one that the project does not hold.
    - Reports arguments that do not fit: which of them is wrong is not shown.
    - Reports the number of processes: how they are numbered has to change with it.
    - Reports a number of ranks that is not that of the processes, where the worker takes the number of the process for its rank:
      which of the two is meant is not shown. Says nothing where the file compares the two.
    - Says nothing in a repository's own tests, and of code that no program runs.

    ## References
    `torch.multiprocessing.spawn`: the worker is called as `fn(i, *args)`, and `nprocs` is the number of processes to start here.
    Runs of each of them.
    """

    code = "DDP713"
    severity = "crash"
    subject = "Hand the spawned ranks their arguments as a tuple"
    must_show = "The ranks start; with one process nothing changes."
    printed = ("argument after * must be an iterable", "cannot unpack non-iterable")
    TRIGGERS = ((b"spawn", b"start_processes", b"Process("), (b"args", b"nprocs"), (b"torch",))
    SITES = (Site(rb"\bspawn\(|start_processes\(|\bProcess\(", b"spawn", b"start_processes", b"Process("),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for start in wrong_starts(project, module):
            if not is_run_by_nobody(project, module, start.call):
                yield self._tell(module, start)

    def _tell(self, module: SourceModule, start: BadStart) -> Finding:
        if start.wrong is Wrong.NODES:
            return self._of_all_nodes(module, start)
        if start.unequal is not None:
            return self._of_another_size(module, start, start.unequal)
        if start.wrong is Wrong.COUNT or not start.takes(1):
            return self._that_do_not_fit(module, start)
        text = module.text_of(start.given)
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(start.given), f"({text},)")]
        safe = start.worker is not None and start.most is not None
        return self.finding(
            module, start.given,
            f"`args` is no tuple here: `({text})` is {text} itself, and the start ends with TypeError",
            level=Applicability.SAFE if safe else Applicability.UNSAFE,
            edits=edits,
            evidence=_evidence(start),
            reason="" if safe else "assumes that the function takes this one argument",
        )  # fmt: skip

    def _that_do_not_fit(self, module: SourceModule, start: BadStart) -> Finding:
        count = len(start.given.elts) if isinstance(start.given, ast.Tuple) else 1
        name = start.worker.node.name if start.worker is not None else "the function"
        behind = " behind the number of the process" if start.numbered else ""
        return self.finding(
            module, start.given,
            f"`{name}` takes {_room(start)}{behind}, and is started with {count}: each process ends with TypeError",
            evidence=_evidence(start),
            reason="hand over what it takes",
        )  # fmt: skip

    def _of_all_nodes(self, module: SourceModule, start: BadStart) -> Finding:
        text = module.text_of(start.given)
        return self.finding(
            module, start.given,
            f"`{text}` counts the processes of all nodes, and `spawn` starts them all on this one: on two nodes each has twice "
            "as many processes as GPUs",
            evidence=[Evidence("static", "`nprocs` is the number of processes to start here", module.path, start.given.lineno)],
            reason="start the processes of one node, and give each the rank `node_rank * processes_per_node + index`",
        )  # fmt: skip

    def _of_another_size(self, module: SourceModule, start: BadStart, found: Unequal) -> Finding:
        name, where = found.worker.node.name, found.worker.module.path
        when = f"{found.when} " if found.when else ""
        return self.finding(
            module, start.given,
            f"this starts {found.started}, and `{name}` waits in init_process_group for {found.waited} ranks: {when}they wait "
            "for ranks that nobody starts, until the time-out, or have numbers that are too large",
            evidence=[Evidence("static", f"the number of ranks is {found.waited} here", where, found.group.lineno)],
            reason="hand the worker the number of processes that are started, and start the group with it",
        )  # fmt: skip


def _room(start: BadStart) -> str:
    if start.most is None:
        return f"{start.least} arguments or more"
    least = "" if start.least == start.most else f"{start.least} to "
    return f"{least}{start.most} argument{'' if start.most == 1 else 's'}"


def _evidence(start: BadStart) -> list[Evidence]:
    if start.worker is None:
        return []
    node = start.worker.node
    return [Evidence("static", f"what it takes: {ast.unparse(node.args)}", start.worker.module.path, node.lineno)]
