"""DDP302: nobody waits for what rank 0 writes."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.barrier_spelling import Barrier, barrier_for
from codemods.analysis.guards.file_handover import Handover, handovers
from codemods.analysis.guards.guard_place import guarded_call
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.same_way import parting_ways
from codemods.codemod import DdpCodemod
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_TEST
from codemods.findings import Applicability, Evidence, Finding, InsertAfter
from codemods.project import Project
from codemods.source import SourceModule


class MissingBarrier(DdpCodemod):
    """Rank 0 writes a file that every rank reads, and nobody waits for it.

    ## What it does
    Finds a rank guard that writes or creates a path, and a call further down in the same function with which every rank reads,
    lists or loads that path (or writes into the folder that was made), with no collective in between. Puts a barrier behind the
    guard, in the spelling of the framework: `trainer.strategy.barrier()`, `accelerator.wait_for_everyone()`,
    `fabric.barrier()`, or `dist.barrier()`.

    ## Why it matters
    The other ranks are at the read long before rank 0 has written: FileNotFoundError, a torn file, or last run's file without
    any error. Rank 0 then waits for them at its next collective until the time-out.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator


    def average(accelerator: Accelerator, model, path):
        if accelerator.is_main_process:
            torch.save(model.state_dict(), path)
        return torch.load(path, map_location="cpu")
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator


    def average(accelerator: Accelerator, model, path):
        if accelerator.is_main_process:
            torch.save(model.state_dict(), path)
        accelerator.wait_for_everyone()
        return torch.load(path, map_location="cpu")
    ```

    ## Safety
    Safe in the spellings of Lightning (in hooks, or behind `fit`), Fabric and Accelerate, which do nothing with one process,
    where every rank comes to the guard by the same way. `dist.barrier()` is unsafe: it assumes that the process group exists
    there, or it is put behind `dist.is_initialized()`. So is `trainer.strategy` where neither the pinned version nor the
    file shows Lightning 1.6 or newer.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing in `prepare_data`: only one process of a node is there, and a barrier would hang.
    - Says nothing where a collective, or a project function that reaches one, stands between the write and the read.
    - Says nothing where the path holds the rank, has got another value in between, or is read under a rank test too.
    - Says nothing inside `main_process_first()` and the like, whose end is a barrier.
    - Says nothing where the guard's function is itself called under a rank test.
    - Tells a guard in a branch that may differ between ranks: a barrier there could hang.
    - Tells a place before `trainer.fit()` in a script: there is no process group yet, and the barrier would be silently nothing.
    - Tells a place where no spelling of a barrier is known.

    ## References
    Lightning 2.6.6 and Accelerate 1.15 on two processes: write and read with and without a barrier.
    """

    code = "DDP302"
    TRIGGERS = (
        GUARDS,
        (b"open(", b"save", b"mkdir", b"makedirs", b"copy", b".move", b"to_csv", b"to_json", b"write_", b"urlretrieve", b"dump",
         b"rename", b"replace(", b"download", b"extractall", b"to_p"),
        (b"open(", b"load", b"listdir", b"scandir", b"walk(", b"glob", b"read_", b"getsize", b"ImageFolder", b"iterdir",
         b"from_pretrained", b"mkdir", b"makedirs"),
        PROCESSES,
    )  # fmt: skip
    SITE = RANK_TEST
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for found in handovers(project, module):
            if found.function is not None:
                if found.function.name == "prepare_data" or guarded_call(project, module, found.function):
                    continue
            barrier = barrier_for(project, module, found.guard, found.function)
            yield self._told(module, found, barrier)

    def _told(self, module: SourceModule, found: Handover, barrier: Barrier) -> Finding:
        level, reason = barrier.level, barrier.reason
        for line, assumed in parting_ways(module, found.guard, found.function):
            level, reason = Applicability.DISPLAY, f"a barrier here could hang: it is not shown that {assumed} (line {line})"
        if level is not Applicability.DISPLAY and not module.is_whole(found.guard):
            level, reason = Applicability.DISPLAY, "the guard is an elif, or shares its line"
        who = "rank 0" if found.ranks is Ranks.ZERO else "local rank 0"
        uses = module.text_of(found.use.func)
        return self.finding(
            module,
            found.guard,
            f"{who} alone makes `{_short(found.path)}` here, and in line {found.use.lineno} every rank uses it ({uses}) without "
            "waiting for it: FileNotFoundError, or a torn or old file, on the ranks that are first",
            level=level,
            edits=[InsertAfter(module.path, module.span(found.guard), barrier.code)] if barrier.code else [],
            evidence=[
                Evidence("static", f"{module.text_of(found.write.func)} under the guard", module.path, found.write.lineno),
                Evidence("static", f"{uses} on every rank", module.path, found.use.lineno),
            ],
            reason=reason,
        )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
