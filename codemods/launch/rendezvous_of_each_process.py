"""DDP708: each process works out for itself where the ranks meet."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.left_rendezvous import Left, left_rendezvous
from codemods.analysis.guards.rendezvous import Meeting, Where, handed_to_others, meetings_of_each_process
from codemods.analysis.guards.unsized_branches import UnsizedBranch, unsized_branches
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, InsertAfter
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.store.project import Project

_WORDS = (b"MASTER_PORT", b"MASTER_ADDR", b"tcp://", b"file://", b"SLURM_PROCID")
_CLOCKS = (b"time.time", b"monotonic", b"perf_counter", b"datetime", b"random", b"randint", b"port")


class RendezvousOfEachProcess(DdpCodemod):
    """A port or an address for the process group that each rank, or each node, works out for itself.

    ## What it does
    Finds `MASTER_PORT` and `tcp://` addresses that are made of the clock, a random number without a seed, a free port, or a
    port that is looked for one by one until a socket finds it free, in code that each spawned rank runs, or that the launcher
    of each node runs. Finds `MASTER_ADDR` fixed to `localhost` in a script that takes a number of nodes, and has no option
    for the address. Finds the arm that takes the rank from `SLURM_PROCID` and leaves the number of processes at its default
    of 1, where the arm beside it sets both, and takes `SLURM_NTASKS` for it. Reports a `file://` rendezvous whose path is the
    same in every run, or stands in a folder that an option names (also where a dict or a field of the options holds the address),
    and which nothing removes: whether a run after a killed one meets by the file that it left is a race.

    ## Why it matters
    All ranks have to meet at one address. Those that have drawn another port, or listen on their own node, wait in
    `init_process_group` for the rest until the time-out, and no line of the training has run.

    ## Example
    ```python
    import os
    import time

    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = str(20000 + int(time.time()) % 10000)
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def main(world_size):
        mp.spawn(worker, args=(world_size,), nprocs=world_size)
    ```

    ## Use instead
    ```python
    import os
    import time

    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def main(world_size):
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = str(20000 + int(time.time()) % 10000)
        mp.spawn(worker, args=(world_size,), nprocs=world_size)
    ```

    ## Safety
    There is no fix of a port or an address: which process draws it, how the others get it, and where the nodes learn that of the
    first one, is the launcher's. Unsafe: the number of processes from `SLURM_NTASKS`.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of a port that the parent draws once, and hands to the processes that it spawns on one node.
    - Says nothing of random numbers in a file that sets a seed, and of a number that is broadcast.
    - Says nothing of a search for a free port that rank 0 alone makes.
    - Says nothing under a test that asks for the variable, for the rank or for the number of nodes.
    - Says nothing of `localhost` where the script has an option for the address, takes no number of nodes, or meets in a file.
    - Says nothing of an arm for Slurm where a job file gives the number of processes, where submitit does (`num_tasks`), where
      the option is not seen to be 1, or where the arm sets the environment for others.
    - Says nothing of Slurm's arm where nothing of the project starts it under Slurm: that arm came with copied code.
    - Says nothing of a file in a folder of the run (`tempfile`, the environment, the clock, a parameter), of one that the project
      removes or a script speaks of, of one that an option alone names, and in an arm for Windows.
    - Says nothing of a folder of an option that is not seen to be declared, that a program gives what it works out, or that a
      script or a setting gives a date, a number of the job, or empties.
    - Reports a port or an address that is drawn: it has to be drawn once.

    ## References
    `torch.distributed.init_process_group`: `MASTER_ADDR` and `MASTER_PORT` are those of rank 0; its warning that a file must be
    removed before it is used again; runs on two gloo processes.
    """

    code = "DDP708"
    severity = "hang"
    TRIGGERS = ((*_WORDS, *_CLOCKS), (b"torch.distributed", b"torch import distributed", b"multiprocessing", b"rank"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        if any(word in data for word in _WORDS):
            return True
        return any(c in data for c in _CLOCKS[:4]) and b"rank" in data and bool(project.files_containing(b"MASTER_PORT"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        for found in (*meetings_of_each_process(project, module), *handed_to_others(project, module)):
            if found.at.lineno not in told:
                told.add(found.at.lineno)
                yield self._told(module, found)
        for left in left_rendezvous(project, module):
            yield self._left(module, left)
        for branch in unsized_branches(project, module) if module.holds(b"SLURM_PROCID") else ():
            if _is_run_under_slurm(project):
                yield self._unsized(module, branch)

    def _unsized(self, module: SourceModule, found: UnsizedBranch) -> Finding:
        edits = [InsertAfter(module.path, module.span(found.rank), found.code)] if found.code else []
        return self.finding(
            module,
            found.branch.test,
            f"this arm takes the rank from Slurm and leaves `{found.size}` at its default of 1: init_process_group refuses every "
            "rank but 0, or each task trains alone",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[Evidence("static", "the rank is Slurm's here, the number is not", module.path, found.rank.lineno)],
            reason="assumes that `srun` starts one task for each GPU, and that nothing outside the repository gives the number",
        )

    def _left(self, module: SourceModule, found: Left) -> Finding:
        home, starter = found.starter
        named = " and ".join(f"`{o}`" for o in found.options)
        names = "names" if len(found.options) == 1 else "name"
        where = f"in a folder that {named} {names}" if named else "the same in every run"
        later = "in that folder " if named else ""
        return self.finding(
            module, found.place,
            f"the ranks meet by the file `{found.name}`, {where}, and nothing removes it: a run that is killed leaves it "
            f"behind, and a rank of a later run {later}may read a dead rank's address in it, wait, and end with "
            "\"Connection refused\"",
            evidence=[Evidence("static", "the group is started by it", home.path, starter.lineno)],
            reason="let the process that starts the ranks make a new file for each run (`tempfile.mkdtemp()`) and hand its path "
            "over, or meet by `env://`",
            severity="risk",
        )  # fmt: skip

    def _told(self, module: SourceModule, found: Meeting) -> Finding:
        shown = [Evidence("static", f"{found.where.value} runs this", module.path, found.at.lineno)]
        if found.nodes is not None and found.where is Where.NODE:
            shown.append(Evidence("static", "the script speaks of several nodes", module.path, getattr(found.nodes, "lineno", 0)))
        return self.finding(
            module,
            found.at,
            _message(module, found),
            evidence=shown,
            reason=_ADVICE[found.where] if found.drawn is not None else _ADDRESS,
        )


def _is_run_under_slurm(project: Project) -> bool:
    """True where a script, a text or a program of the project starts jobs of Slurm."""
    kinds = (*SHELL_KINDS, ".md", ".rst", ".txt", ".slurm", ".sbatch", ".py")
    return any(project.files_containing(word, kinds=kinds) for word in (b"srun ", b"sbatch", b"submitit", b"SBATCH"))


_ADDRESS = (
    "keep an address that the environment has (`os.environ.setdefault(\"MASTER_ADDR\", \"localhost\")`), or take it from "
    "an option"
)
_ADVICE = {
    Where.RANK: "draw it once in the process that starts the ranks, and let them take it from the environment or an argument",
    Where.NODE: "take it from an option, or make it of what all nodes have (`SLURM_JOB_ID`)",
}


def _message(module: SourceModule, found: Meeting) -> str:
    if found.drawn is None:
        return (
            "MASTER_ADDR is the node's own on every node, although the script takes several: on the second node no rank 0 "
            "listens, and init_process_group waits until the time-out"
        )
    return (
        f"{found.where.value} makes {found.what} of its own `{module.text_of(found.drawn)}`: those that get different ones wait "
        "for each other in init_process_group until the time-out"
    )
