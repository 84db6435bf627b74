"""DDP501: a checkpoint that every rank writes to one path."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module, runs_trials
from codemods.analysis.files.loose_guards import LooseGuard, loose_guards
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.files.save_repairs import Repair, repairs
from codemods.analysis.names import dotted, family, qualified
from codemods.analysis.positions import behind
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, InsertAfter
from codemods.data.printed_errors import HALF_WRITTEN, WAITING
from codemods.data.rank_names import EXIT_CALLS
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class UnguardedSave(DdpCodemod):
    """A checkpoint that every rank writes to one path.

    ## What it does
    Finds `torch.save`, `save_pretrained`, `safetensors` and `torch.jit.save` that every rank of a run with several processes
    comes to, through helpers, methods and other files, with a path that is the same on all of them. Puts the writing under a
    test for rank 0: where it is written, or at the call of the helper where only the caller knows the rank. Where every rank
    reads the file behind it, writes into the folder that `save_pretrained` makes, or goes on with its path in a way that nothing
    shows, a barrier comes with the test. A model of peft that Accelerate has unwrapped gets `is_main_process=`, its own word for
    it. It reports a test whose `or` lets every rank past the rank that it asks for: `if first or better and rank == 0`.

    ## Why it matters
    The ranks open the same file at once and write into each other's bytes. The file looks whole, and loading it fails with
    "PytorchStreamReader failed", often after the run that made it is over. A rank that reads while another writes fails at once.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def train(model, optimizer, loader, epochs):
        model = DistributedDataParallel(model)
        for epoch in range(epochs):
            run_epoch(model, optimizer, loader)
            torch.save({"model": model.module.state_dict(), "epoch": epoch}, "last.pt")
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def train(model, optimizer, loader, epochs):
        model = DistributedDataParallel(model)
        for epoch in range(epochs):
            run_epoch(model, optimizer, loader)
            if not dist.is_initialized() or dist.get_rank() == 0:
                torch.save({"model": model.module.state_dict(), "epoch": epoch}, "last.pt")
    ```

    ## Safety
    Safe where what is stored and its path are shown to be the same on every rank, the test for rank 0 is one that the place
    offers for sure, and nobody reads the file behind it. A `save_pretrained` is that of transformers, diffusers or peft. A test
    that asks the process group is sure where one is started on each way to the place. Above its start (that by the training
    arguments of transformers, too), and where no start is seen, the test asks for the `RANK` of torchrun, accelerate or
    deepspeed, where a command of the repository starts the file by one of them. Else unsafe: the finding names what is
    assumed. One process writes as before.

    ## Refuses
    - A save behind a test of a function that the object was given, where one that may be given asks for the rank: silent.
    - Saves behind the end of the process group, reported: there `is_initialized()` is False and the test true on every rank.
    - A file that is opened, and so emptied, with other work in its `with` block, reported: the opening has to go under the test
      too.
    - Paths that name the rank, the process, or what a sampler gave it; temporary folders and buffers in memory: silent.
    - A save in a loop over the rank's own share of items, and in functions that such a loop calls: silent.
    - A file named after an item of the loader that the loop goes through: silent where a sampler for several ranks deals the
      items out, else reported.
    - `torch.onnx.export(model, …)` of what may be the DDP wrapper, reported: its forward waits for the other ranks, and
      `model.module` has to be exported on rank 0.
    - Saves below a folder that the function makes just above without `exist_ok`: silent, the other ranks end there (DDP204).
    - Paths with the GPU's number in them, and calls under a test of it (`if self.device == 0:`): silent.
    - Places that only some ranks come to, by tests, decorators, exits, callers, or a value that only rank 0 has: silent.
    - Hooks of `register_save_state_pre_hook` where the main process alone calls `save_state`: silent.
    - Saves above the start of the process group, or above `fit`, whose test would ask it, where no launcher is seen: reported.
    - `save_pretrained` of a model that a library shares out over the ranks (oslo, ColossalAI, NeMo, …), and of one that nothing
      shows beside such a library: silent. Each rank writes its part, and they wait for one another.
    - Functions of which no caller shows several processes, and what stands beside the start of the processes: silent.
    - `accelerator.save`, `fabric.save`, `trainer.save_checkpoint`, `save_pretrained(…, is_main_process=…)`: one process writes.
    - `_save` of a transformers Trainer, which its own `save_model` guards, and what only that calls, in other files too.
    - The state of a model that may be sharded (FSDP, DeepSpeed), reported: to ask for it is a collective, and only the write may
      be left to rank 0. So is a statement that holds any other collective.
    - The state of a model in a program that joins a group and trains by itself, where no wrapper and no reduced gradients keep
      the models of the ranks equal, reported: each rank stores its own.
    - What only this rank has seen, its predictions or its share, reported: gather it first. So is what is read from a file to
      which each rank has just added its part, with no barrier in between.
    - A way over a method that nobody calls, or over a task that ends above the start of the process group: silent.
    - A place with no sure test for rank 0, and one whose barrier could hang, reported.
    - A test with brackets (`if first or (better and rank == 0)`), which is meant so, and one whose other part speaks of ranks or
      of a run without a process group: silent.

    ## References
    Two gloo processes that wrote to one path at once left corrupt files in 4 of 10 loads (torch 2.13). `is_main_process=` of
    `save_pretrained`: peft writes on that process alone; diffusers 0.42.1 and transformers 4 leave the configuration to it, and
    write the weights on each.
    """

    code = "DDP501"
    severity = "data"
    takes_several = True
    subject = "Leave checkpoints to the first process"
    must_show = (
        "Two processes write each checkpoint once, and it loads; where it is loaded in the same run, the other process finds it."
    )
    printed = (*HALF_WRITTEN, *WAITING)
    TRIGGERS = ((b"torch", b"save_pretrained", b"safetensors"), (b"save", b"export("))
    SITES = (Site(
        rb"(?<!def )\b(?:save\(|save_pretrained\(|save_file\(|save_model\(|onnx\.export\()",
        b"save(", b"save_pretrained(", b"save_file(", b"save_model(", b"export(",
    ),)  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or runs_trials(module):
            return
        for found in repairs(project, module):
            if _ends_above_the_trainer(found) and left(found.module, found.at, "the script ends before its Trainer starts ranks"):
                continue
            if is_never_asked_for(project, found.module, found.at) and left(found.module, found.at, "nothing asks for it"):
                continue
            if not is_run_by_nobody(project, found.module, found.at):
                yield self._told(found)
        for guard in loose_guards(project, module):
            if not is_run_by_nobody(project, module, guard.at):
                yield self._loose(module, guard)

    def _loose(self, module: SourceModule, found: LooseGuard) -> Finding:
        message = (
            f"`and` binds tighter than `or`: where `{found.free}` holds, every rank comes here and writes "
            f"`{module.text_of(found.save.path)}` at once, whatever the rank is asked for behind it"
        )
        evidence = [Evidence("static", "the save under the test", module.path, found.save.call.lineno), found.way.shown]
        return self.finding(module, found.at, message, evidence=evidence, reason=f"write the test as `{found.meant}`")

    def _told(self, found: Repair) -> Finding:
        places = [Evidence("static", s.text, s.path, s.line) for s in found.steps]
        return self.finding(
            found.module, found.at, _message(found), level=found.level, edits=found.edits,
            evidence=[*places, found.shown, *_why_safe(found)],
            reason=found.reason,
        )  # fmt: skip


def _why_safe(found: Repair) -> Iterator[Evidence]:
    """What was shown of a save that is left to rank 0."""
    if found.level is not Applicability.SAFE:
        return
    yield Evidence("safe", f"`{found.path}` and what is stored there are the same on every rank", found.module.path, found.line)
    if any(isinstance(edit, InsertAfter) for edit in found.edits):
        yield Evidence("safe", "the ranks that go on with the file wait for it at a barrier")
    else:
        yield Evidence("safe", "no rank uses the file behind it")


def _message(found: Repair) -> str:
    write = found.steps[0]
    where = "" if write.path == found.module.path and write.line == found.line else f" (in {_place(found)})"
    if found.parts:
        return (
            f"every rank comes here and writes its own part of the results to `{found.path}`{where}: only that of the rank that "
            "writes last is left"
        )
    return (
        f"every rank comes here and writes `{found.path}`{where}: the ranks write into one file at once, and a torn checkpoint "
        "shows only when it is loaded"
    )


def _ends_above_the_trainer(found: Repair) -> bool:
    """True where a script of Lightning ends behind the save, before its Trainer would start the other ranks: a conversion."""
    made = (c for c in found.module.calls_named("Trainer") if found.module.function_of(c) is found.module.function_of(found.at))
    if not any(c.lineno > found.line and family(qualified(found.module, c.func)) == "lightning" for c in made):
        return False
    rest = behind(found.module, found.at)
    ends = (s.value.func for s in rest if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return any(dotted(end) in EXIT_CALLS for end in ends)


def _place(found: Repair) -> str:
    write = found.steps[0]
    return f"line {write.line}" if write.path == found.module.path else f"{write.path}:{write.line}"
