"""DDP712: what starts the process group reads a number that only one launcher's branch sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.run_by_programs import has_programs, is_run_by_nobody
from codemods.analysis.ranks.unset_fields import Unset, unset_fields
from codemods.analysis.ranks.uses import uses_of
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter
from codemods.files.source import SourceModule
from codemods.rewriting.imports import plan_plain
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SLURM = lazy(r"SLURM_PROCID")
_LAUNCHER = lazy(r"\bRANK\b|LOCAL_RANK|\blocal_rank\b")


class NumberOfOneLauncher(DdpCodemod):
    """A branch for one launcher leaves out a number that the start of the process group reads for all launchers.

    ## What it does
    Finds branches that ask which launcher has started the program (`if "RANK" in os.environ: … elif "SLURM_PROCID" in
    os.environ: …`), of which one sets `args.world_size` or the like and another does not, where `init_process_group` or
    `set_device` reads it behind them. Adds the number of Slurm's tasks, or what torchrun sets, to the branch.

    ## Why it matters
    Started by the other launcher, every process ends before the training begins: "'Namespace' object has no attribute
    'world_size'".

    ## Example
    ```python
    import os

    import torch.distributed as dist


    def init_distributed_mode(args):
        if "RANK" in os.environ:
            args.rank = int(os.environ["RANK"])
            args.world_size = int(os.environ["WORLD_SIZE"])
        elif "SLURM_PROCID" in os.environ:
            args.rank = int(os.environ["SLURM_PROCID"])
        dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
    ```

    ## Use instead
    ```python
    import os

    import torch.distributed as dist


    def init_distributed_mode(args):
        if "RANK" in os.environ:
            args.rank = int(os.environ["RANK"])
            args.world_size = int(os.environ["WORLD_SIZE"])
        elif "SLURM_PROCID" in os.environ:
            args.rank = int(os.environ["SLURM_PROCID"])
            args.world_size = int(os.environ["SLURM_NTASKS"])
        dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
    ```

    ## Safety
    Unsafe: assumes that Slurm starts one task for each process, as the rank of the branch does, and that nobody outside the
    repository puts the number into the options. The other branches are left as they are.

    ## Refuses
    - Says nothing of a function that no program of the project calls.
    - Says nothing where an option (`--world-size`), a setting, `setattr`, the caller or any place outside of the branches may
      give the number.
    - Says nothing of a branch that raises, returns or ends, or hands the options to a function.
    - Says nothing of a number that is read under a further test.
    - Reports a branch where it is not shown what the launcher sets, and a number that is no rank and no count of processes.
    - A repository's own tests.

    ## References
    Slurm's `srun`: `SLURM_PROCID`, `SLURM_NTASKS`; torchrun's documentation: `RANK`, `WORLD_SIZE`; runs of both branches with
    torch 2.13 over gloo.
    """

    code = "DDP712"
    severity = "crash"
    subject = "Set the number of processes for each launcher"
    must_show = "The tasks of srun, or the processes of torchrun, start their group; the other launcher's branch is as before."
    printed = ("object has no attribute 'world_size'", "object has no attribute 'rank'")
    TRIGGERS = ((b"init_process_group(",), (b"environ", b"getenv", b"local_rank"), (b"rank", b"world_size", b"gpu"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in unset_fields(project, module):
            if is_run_by_nobody(project, module, found.read) or _is_called_by_nobody(project, module, found.read):
                continue
            edits, reason = _repair(module, found)
            yield self.finding(
                module,
                found.read,
                f"the branch of line {found.test.lineno} does not set `{found.field}`, which is read here for every launcher: "
                f"each process that comes by it ends with AttributeError",
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[
                    Evidence("static", "another branch sets it", module.path, found.set_in.lineno),
                    Evidence("static", "this one does not", module.path, found.test.lineno),
                ],
                reason=reason,
            )


def _is_called_by_nobody(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a helper that was brought along with others, and that no program calls."""
    function = module.function_of(node)
    if function is None or not has_programs(project):
        return False
    used = uses_of(project, module, function).outside_tests()
    return not used.calls and not used.handed_on and not used.more


def _repair(module: SourceModule, found: Unset) -> tuple[list[Edit], str]:
    given = _variable(module, found)
    end = found.arm[-1]
    planned = plan_plain(module, "os") if given and module.is_whole(end) else None
    if planned is None:
        return [], f"set `{found.field}` in every branch, or leave it to the environment (`env://` reads RANK and WORLD_SIZE)"
    set_here = InsertAfter(module.path, module.span(end), f'{found.field} = int({planned.name}.environ["{given}"])')
    return [*planned.edits, set_here], f"assumes that the launcher of this branch sets {given} for each process"


def _variable(module: SourceModule, found: Unset) -> str:
    """What the launcher of the branch sets in the environment for the number; "" where that is not shown."""
    name = found.field.rpartition(".")[2]
    text = "\n".join(module.text_of(n) for n in (found.test, *found.arm))
    if _SLURM.search(text) and not re.search(r"NODEID|device_count|ngpus", _of_the_rank(found.arm, module)):
        return "SLURM_NTASKS" if name == "world_size" else ""
    if _LAUNCHER.search(text) and "SLURM" not in text:
        return {"world_size": "WORLD_SIZE", "rank": "RANK"}.get(name, "")
    return ""


def _of_the_rank(arm: list[ast.stmt], module: SourceModule) -> str:
    """What the branch makes its rank of: several processes of one task count on from the number of the node."""
    rank = (s for s in arm if isinstance(s, ast.Assign) and module.text_of(s.targets[0]).endswith("rank"))
    return "\n".join(module.text_of(s.value) for s in rank)
