"""DDP718: spawned ranks that look for an address in an environment that nobody has filled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.rendezvous import speaks_of_nodes
from codemods.analysis.processes.unset_rendezvous import Unset, unset_rendezvous
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertBefore
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.rewriting.imports import plan_plain
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_VALUES = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
_PORT = lazy(r"(?<!\d)[1-9]\d{3,4}$")
_NODES = "the script takes several nodes: set the variables to the address of the first one, or pass it as `init_method`"
_MORE = "hand `rank` and `world_size` to init_process_group, and set MASTER_ADDR and MASTER_PORT before the ranks are spawned"
_BARE = "set MASTER_ADDR and MASTER_PORT in os.environ before the ranks are spawned"


class UnsetRendezvous(DdpCodemod):
    """Spawned ranks that take the address of their process group from the environment, where nothing has put it.

    ## What it does
    Finds `init_process_group` without an address, or with `env://` (also `env://29500`, of which torch reads no port), in what
    `mp.spawn` runs, where no file of the program and no text of the repository names `MASTER_ADDR` or `MASTER_PORT`. Sets them
    in front of the spawn, where they are not set.

    ## Why it matters
    `torchrun` puts the variables into the environment of the processes that it starts; `mp.spawn` does not. Every rank ends in
    `init_process_group`, in front of the first step: "environment variable MASTER_ADDR expected, but not set".

    ## Example
    ```python
    import os

    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        train(rank)


    if __name__ == "__main__":
        mp.spawn(worker, args=(2,), nprocs=2)
    ```

    ## Use instead
    ```python
    import os

    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        train(rank)


    if __name__ == "__main__":
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29500")
        mp.spawn(worker, args=(2,), nprocs=2)
    ```

    ## Safety
    Safe: a run whose environment has the variables keeps them, and no other one has come past this line. The ranks are on the
    machine of the process that spawns them.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where a file of the program, of a program that imports it, or a text or job file names the variable.
    - Says nothing of a program that a text starts by a launcher, which sets the variables, or that reads
      `os.environ["WORLD_SIZE"]` and does not set it.
    - Says nothing where the program may get variables from elsewhere (dotenv, submitit, SageMaker, Ray), or starts others itself
      (not by `subprocess.run(["git", …])` and the like).
    - Says nothing of another address (`tcp://`, `file://`, an option), and of a `store`.
    - Says nothing of processes that `multiprocessing.Process` starts, unless it is torch's and the file sets the method `spawn`.
    - Reports a script that takes a number of nodes, and a call that is not handed the rank and the number of processes either.

    ## References
    `torch.distributed`: "Environment variable initialization"; torch 2.13 on two processes that `mp.spawn` started.
    """

    code = "DDP718"
    severity = "crash"
    subject = "Give spawned ranks the address of their group"
    must_show = "All ranks come past init_process_group in a shell that has neither variable."
    printed = ("EADDRINUSE", "Timed out waiting …ms for recv operation to complete")
    TRIGGERS = ((b"spawn(", b"start_processes(", b"Process("), (b"multiprocessing",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        if all(v.encode() in data for v in _VALUES) and left(path, None, "it names MASTER_ADDR and MASTER_PORT: it may set them"):
            return False
        return bool(project.files_containing(b"init_process_group"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[ast.Call] = set()
        for found in unset_rendezvous(project, module):
            if found.start.call not in told:
                told.add(found.start.call)
                yield self._told(module, found)

    def _told(self, module: SourceModule, found: Unset) -> Finding:
        edits, reason = _repair(module, found)
        first = found.missing[0]
        started = f"starts `{found.start.worker.node.name}` on several processes, without a launcher"
        here = found.holder is module
        unread = f"; `{found.unread}` says neither, for torch reads nothing behind `env://`" if found.unread else ""
        return self.finding(
            module,
            found.call if here else found.start.call,
            f"every process that {module.text_of(found.start.call.func)} starts ends in "
            f"{found.holder.text_of(found.call.func)}: it looks for {first} in the environment, where nothing in the repository "
            f"puts it (\"environment variable {first} expected, but not set\"){unread}",
            level=Applicability.SAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", started, module.path, found.start.call.lineno),
                Evidence("static", "the group is started without an address", found.holder.path, found.call.lineno),
            ],
            reason=reason,
        )  # fmt: skip


def _repair(module: SourceModule, found: Unset) -> tuple[list[Edit], str]:
    statement = module.statement_of(found.start.call)
    if set(found.missing) - set(_VALUES):
        return [], _MORE
    if speaks_of_nodes(module) or speaks_of_nodes(found.holder):
        return [], _NODES
    planned = plan_plain(module, "os")
    if planned is None or not isinstance(statement, ast.Expr) or not module.is_whole(statement):
        return [], _BARE
    meant = _PORT.search(found.unread)  # `env://29501`
    values = _VALUES | ({"MASTER_PORT": meant.group()} if meant is not None else {})
    lines = [f'{planned.name}.environ.setdefault("{v}", "{values[v]}")' for v in found.missing]
    return [*planned.edits, InsertBefore(module.path, module.span(statement), "\n".join(lines))], ""
