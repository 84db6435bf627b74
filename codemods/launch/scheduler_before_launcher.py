"""DDP711: the rank comes from Slurm where torchrun has set one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.launcher_order import Order, orders, started_by_launcher
from codemods.analysis.ranks.tasks_for_ranks import tasks_for_ranks
from codemods.analysis.ranks.tasks_over_ranks import tasks_over_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule
from codemods.store.project import Project

_TASKS = "take the number of tasks for that of processes"
_TAKEN = {"SLURM_PROCID": "take the same rank", "SLURM_LOCALID": "take the same local rank"}


class SchedulerBeforeLauncher(DdpCodemod):
    """The number of a Slurm task is taken for the rank before torchrun is asked, which may have been started in that task.

    ## What it does
    Finds places that read `SLURM_PROCID`, `SLURM_LOCALID` or `SLURM_NTASKS` before `RANK`, `LOCAL_RANK` and `WORLD_SIZE`: a list
    of names of which the first that is set counts, a default of `os.environ.get`, and `if "SLURM_PROCID" in os.environ:` whose
    other arm reads what the launcher sets, where this one does not, or overwrites it first. Asks the launcher first. Finds them
    under a test that the launcher's variable is set (`if int(os.environ.get("RANK", -1)) != -1:`), too, and reads that one.
    Finds `os.environ["RANK"] = os.environ["SLURM_PROCID"]` under a test for a Slurm job alone, in a program that a command of the
    repository starts by torchrun, and leaves it out where the launcher has set a rank.

    ## Why it matters
    Slurm numbers tasks, and each process that a task starts inherits the number of the task. `torchrun` on a node of a job (in an
    `sbatch` script, under `srun`, in an interactive session) is one task: all of its processes take the same rank. They end with
    "Duplicate GPU detected" or an address in use, wait for ranks that nobody has, or train each for itself as rank 0 of 1.

    ## Example
    ```python
    import os


    def rank_of_process():
        if "SLURM_PROCID" in os.environ:
            return int(os.environ["SLURM_PROCID"])
        elif "RANK" in os.environ:
            return int(os.environ["RANK"])
        else:
            raise SystemExit("start this with srun or torchrun")
    ```

    ## Use instead
    ```python
    import os


    def rank_of_process():
        if "SLURM_PROCID" in os.environ and "RANK" not in os.environ:
            return int(os.environ["SLURM_PROCID"])
        elif "RANK" in os.environ:
            return int(os.environ["RANK"])
        else:
            raise SystemExit("start this with srun or torchrun")
    ```

    ## Safety
    Unsafe: assumes that `RANK` and `LOCAL_RANK` come from the launcher where they are set. A job under `srun python` alone has
    neither, and runs as before.

    ## Refuses
    - Says nothing where the file does not speak of torchrun or `torch.distributed.launch`, and no text or job file of the
      repository starts a program with one of them.
    - Says nothing where the launcher's variables are asked first, or by the same test.
    - Says nothing where an option chooses Slurm (`if args.launcher == "slurm":`), and where the other arm reads no rank.
    - Says nothing of what is set for others (`os.environ["RANK"] = os.environ["SLURM_PROCID"]`) under another test, or in a
      program that no command starts by torchrun, and of lines that are printed.
    - A repository's own tests.

    ## References
    Slurm's `srun`: `SLURM_PROCID`, `SLURM_LOCALID`; torchrun's documentation: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`; two processes
    with the variables of one task on torch 2.13.
    """

    code = "DDP711"
    severity = "crash"
    subject = "Ask the launcher before Slurm for the rank"
    must_show = "torchrun within one Slurm task gives each process a rank of its own; srun alone gives the same ranks as before."
    printed = ("Duplicate GPU detected", *WAITING)
    TRIGGERS = ((b"SLURM_PROCID", b"SLURM_LOCALID", b"SLURM_NTASKS", b"SLURM_NPROCS"), (b"RANK", b"WORLD_SIZE"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        grouped: dict[ast.AST | None, list[Order]] = {}
        for one in (*orders(module), *tasks_for_ranks(module), *tasks_over_ranks(project, module)):
            grouped.setdefault(module.function_of(one.node), []).append(one)
        start = started_by_launcher(project, module) if grouped else None
        for found in grouped.values() if start is not None else ():
            assert start is not None
            yield self._tell(module, sorted(found, key=lambda o: o.node.lineno), start)

    def _tell(self, module: SourceModule, found: list[Order], start: tuple[str, int]) -> Finding:
        first = found[0]
        names = " and ".join(f"`{v}`" for v in dict.fromkeys(o.variable for o in found))
        what = next((_TAKEN[o.variable] for o in found if o.variable in _TAKEN), _TASKS)
        asked = f", taken where `{first.asked}` is set," if first.asked else ""
        stands = f"is taken where torchrun has set `{first.under}`" if first.under else "stands before what torchrun sets"
        return self.finding(
            module, first.node,
            f"{names}{asked} {stands}: in a Slurm job all processes of one torchrun {what}",
            level=Applicability.UNSAFE,
            edits=[e for o in found for e in o.edits],
            evidence=[Evidence("static", "torchrun starts this program, or one beside it", *start)],
            reason="assumes that RANK and LOCAL_RANK come from the launcher where they are set",
        )  # fmt: skip
