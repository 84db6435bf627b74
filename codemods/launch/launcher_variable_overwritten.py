"""DDP715: a program puts a constant over what the launcher has given each of its processes."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.hidden_gpus import HiddenGpus, hidden_gpus
from codemods.analysis.ranks.launcher_variables import VariableSet
from codemods.analysis.ranks.overwritten_variables import Overwritten, overwritten
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.worlds_of_devices import WorldOfDevices, worlds_of_devices
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter, RemoveStatement, Severity
from codemods.data.printed_errors import WAITING
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project


class LauncherVariableOverwritten(DdpCodemod):
    """A program that torchrun starts sets the rank, the number of processes or the port itself, whatever the launcher says.

    ## What it does
    Finds `os.environ["MASTER_PORT"] = "12355"`, and constants for `RANK`, `WORLD_SIZE` and `LOCAL_RANK`, in a script that a
    command of the repository starts by `torchrun` or `torch.distributed.launch`, or in a function that it calls, where every run
    comes there before `init_process_group`; so with `os.environ.update(…)`, and with the default of an option that the command
    leaves out. Writes `os.environ.setdefault(…)`: what the launcher says counts, and without a launcher all is as before.
    Reports a constant for `CUDA_VISIBLE_DEVICES` at the top of a script that names fewer GPUs than a command of the repository
    starts processes on a machine. Reports a process group that gets a rank for each GPU of the machine
    (`world_size=torch.cuda.device_count()`), where a command of the repository says itself how many processes it starts.

    ## Why it matters
    Lines that were written for one process stay in the script when it gets a launcher. The launcher has a store open for the
    ranks, and gives them its port: with another one each rank waits for a store that nobody opens, until the time-out. With
    `RANK` 0 and `WORLD_SIZE` 1 each process trains alone as a group of its own; nothing is printed, and four GPUs do the work of
    one. With `RANK` 0 alone all wait for a rank 1. With `LOCAL_RANK` 0 all share the first GPU. A group of eight ranks, for eight
    GPUs, waits for six that nobody has started where the launcher starts two.

    ## Example
    ```python
    # run.sh: torchrun --nproc_per_node=4 module.py
    import os

    import torch.distributed as dist


    def main():
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = "12355"
        dist.init_process_group("nccl")


    if __name__ == "__main__":
        main()
    ```

    ## Use instead
    ```python
    # run.sh: torchrun --nproc_per_node=4 module.py
    import os

    import torch.distributed as dist


    def main():
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ.setdefault("MASTER_PORT", "12355")
        dist.init_process_group("nccl")


    if __name__ == "__main__":
        main()
    ```

    ## Safety
    Safe: the port. The command that is shown ends in the time-out at each start, and where nobody has set the port the constant
    still counts. Unsafe: the rank, the number of processes and the local rank, which assumes that the processes are to train
    together, and the default of an option.

    ## Refuses
    - Says nothing of `setdefault`, of a place under any test, behind an early return, or in a method of a class.
    - Says nothing where no command of the repository is seen to start the program by torchrun or `torch.distributed.launch`: a
      program that spawns its ranks sets the address itself, and one of a single process its rank.
    - Says nothing of a program that spawns processes, or starts another program in the same function.
    - Says nothing of a value that is worked out (`os.environ["SLURM_PROCID"]`, a free port), and of `MASTER_ADDR`.
    - Says nothing of a port that the command names as well, of 29500, and where a variable of the shell gives the port.
    - Says nothing of the rank where the command starts one process, and where `init_process_group` is given the rank.
    - Says nothing where the ranks meet by another address (`tcp://`, a store), and where a torch is named whose launcher opens
      no store: below 1.9, and below 2.5 with `--standalone` or `--rdzv-backend`.
    - Says nothing of `LOCAL_RANK` where the program sets `CUDA_VISIBLE_DEVICES`, and of `os.putenv`, which Python does not read.
    - Reports `os.environ.update(…)`: its dict is left as it is.
    - Says nothing of `CUDA_VISIBLE_DEVICES` where something above it may ask for the devices (CUDA then goes by what it has
      seen), where it is set anew, where the number of processes is not written out, and where the ranks may meet over gloo.
    - Says nothing of a group of as many ranks as GPUs where the program spawns processes or hides GPUs, where the function asks
      for WORLD_SIZE, where the number of processes is eight or more or is worked out (`gpu`, `$(nvidia-smi -L | wc -l)`), and
      where the command's file speaks of GPUs that are hidden or given out (`CUDA_VISIBLE_DEVICES`, Slurm). Reports the others:
      what else goes by the number has to change with it.
    - A repository's own tests, and notebooks.

    ## References
    torchrun's documentation: "Environment Variables"; `torch/distributed/rendezvous.py`: `TORCHELASTIC_USE_AGENT_STORE`; runs of
    each on two processes with torch 2.13 over gloo.
    """

    code = "DDP715"
    severity = "hang"
    subject = "Keep what the launcher says of rank and port"
    must_show = "Under torchrun the ranks meet, as many as it starts; without a launcher the constants count as before."
    printed = WAITING
    TRIGGERS = (
        (b"environ", b"init_process_group("),
        (b"MASTER_PORT", b"WORLD_SIZE", b"RANK", b"CUDA_VISIBLE_DEVICES", b"device_count", b"world_size"),
    )
    SITES = (Site(rb"\binit_process_group\(", b"init_process_group("), Site(
        rb"environ[ \t]*(?:\[[ \t]*[\"'](?:MASTER_PORT|(?:LOCAL_)?RANK|WORLD_SIZE|CUDA_VISIBLE_DEVICES)[\"'][ \t]*\]"
        rb"[ \t]*=(?!=)|\.update\(|\|=)",
        b"environ"
    ),)  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.path.endswith(NOTEBOOK):
            return
        for found in overwritten(project, module):
            yield self._told(module, found)
        for group in worlds_of_devices(project, module):
            if not is_run_by_nobody(project, module, group.call):
                yield self._of_devices(module, group)
        hidden = hidden_gpus(project, module) if module.holds(b"CUDA_VISIBLE_DEVICES") else None
        if hidden is not None:
            yield self._hidden(module, hidden)

    def _hidden(self, module: SourceModule, found: HiddenGpus) -> Finding:
        """A constant that leaves each process fewer GPUs than there are processes."""
        left = "one GPU" if found.gpus == 1 else f"{found.gpus} GPUs"
        return self.finding(
            module,
            found.statement,
            f"this leaves every process the same {left}, whatever the command says, and {found.path}:{found.line} starts "
            f"{found.processes} on the machine: two of them share a GPU, and NCCL ends with “Duplicate GPU detected”, or one "
            "asks for a GPU that it does not see (“invalid device ordinal”)",
            evidence=[Evidence("static", f"{found.launcher} starts {found.script}", found.path, found.line)],
            reason="leave the line out, and name the GPUs where the program is started "
            "(`CUDA_VISIBLE_DEVICES=0,1 torchrun …`, `accelerate launch --gpu_ids 0,1 …`)",
            severity="crash",
        )

    def _of_devices(self, module: SourceModule, found: WorldOfDevices) -> Finding:
        """A group of as many ranks as the machine has GPUs."""
        command = found.command
        number = f"{command.number} process{'' if command.number == '1' else 'es'}"
        return self.finding(
            module,
            found.size,
            f"the group has a rank for each GPU that is visible, and {command.path}:{command.line} starts {number}: on a machine "
            "with more GPUs they wait in init_process_group for ranks that nobody starts, until the time-out",
            evidence=[
                Evidence("static", "the GPUs of the machine are counted", found.counted_in.path, found.counted.lineno),
                Evidence("static", f"{command.launcher} starts {command.script}", command.path, command.line),
            ],
            reason='take the number from the launcher (`int(os.environ["WORLD_SIZE"])`, or `dist.get_world_size()` behind this), '
            "also where the batch size is divided by it",
        )

    def _told(self, module: SourceModule, found: Overwritten) -> Finding:
        sets = [s for s in found.sets if s.variable in found.values]
        edits = _edits(module, sets)
        harmless = set(found.values) == {"MASTER_PORT"} and not found.chosen
        reader, node = found.reader
        command = found.command
        message, severity = _message(found)
        return self.finding(
            module,
            sets[0].statement,
            message,
            level=(Applicability.SAFE if harmless else Applicability.UNSAFE) if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", f"{command.launcher} starts {command.script}", command.path, command.line),
                Evidence("static", "this reads it", reader.path, node.lineno),
            ],
            reason=_reason(found, harmless=harmless, repaired=bool(edits)),
            severity=severity,
        )


def _message(found: Overwritten) -> tuple[str, Severity]:
    """What every process of the command comes to."""
    launcher, values = found.command.launcher, found.values
    names = " and ".join(f"`{name}`" for name in values)
    by = f"{names} {'is' if len(values) == 1 else 'are'} set over what {launcher} has given each process"
    if "MASTER_PORT" in values:
        return (
            f"{by}: its store is at another port, and every rank waits in init_process_group for one that nobody opens, until "
            "the time-out",
            "hang",
        )
    if "RANK" in values and "WORLD_SIZE" in values:
        return f"{by}: each is rank 0 of a group of its own, and works alone, without a word", "data"
    if "RANK" in values:
        return f"{by}: all are rank 0, and wait in init_process_group for the others until the time-out", "hang"
    if "WORLD_SIZE" in values:
        return f"{by}: rank 0 works alone, and the others end with an error, for their rank is not below 1", "crash"
    return f"{by}: all processes of a node take the first GPU", "crash"


def _reason(found: Overwritten, *, harmless: bool, repaired: bool) -> str:
    if not repaired:
        return "set it by `os.environ.setdefault`, or where no launcher has set it"
    if found.chosen:
        return f"assumes that the default of {' and '.join(found.chosen)} is for a start without a launcher"
    return "" if harmless else "assumes that the processes of the launcher are to train together"


def _edits(module: SourceModule, sets: list[VariableSet]) -> list[Edit]:
    """Each as `setdefault`; none where one of them is written in another way."""
    edits: list[Edit] = []
    for found in sets:
        made = _as_default(module, found)
        if not made:
            return []
        edits += made
    return edits


def _as_default(module: SourceModule, found: VariableSet) -> list[Edit]:
    statement, target = found.statement, found.target
    text = module.text_of(statement)
    before, _, behind = module.lines[statement.lineno - 1].partition(text)
    behind = behind.strip()
    if target is None or "\n" in text or before.strip() or (behind and not behind.startswith("#")):
        return []
    span = module.span(statement)
    given = f"{module.text_of(target.slice)}, {module.text_of(found.value)}"
    code = f"{module.text_of(target.value)}.setdefault({given})" + (f"  {behind}" if behind else "")
    return [InsertAfter(module.path, span, "\n".join([*_comment_above(module, statement.lineno), code])),
            RemoveStatement(module.path, span)]  # fmt: skip


def _comment_above(module: SourceModule, line: int) -> list[str]:
    """The comment lines that stand directly on a statement, and go with it."""
    found: list[str] = []
    for text in reversed(module.lines[: line - 1]):
        if not text.lstrip().startswith("#"):
            break
        found.insert(0, text.strip())
    return found
