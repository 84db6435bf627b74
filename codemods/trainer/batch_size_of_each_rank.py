"""DDP608: each rank looks for the batch size that fits, by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.several_started import started_on_several
from codemods.analysis.names import last, qualified
from codemods.analysis.trainer.argument_calls import Given, given
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.files.text_file import TextFile
from codemods.store.project import Project

_NAME = "auto_find_batch_size"
# Arguments that have an effect on several processes alone.
_OF_RANKS = ("ddp_", "fsdp", "deepspeed", "local_rank")
_OFF = frozenset({"''", "-1", "False", "[]"})
_MEETS = frozenset({"prepare", "backward", "gather", "gather_for_metrics", "reduce", "wait_for_everyone", "train", "fit"})


class BatchSizeOfEachRank(DdpCodemod):
    """A batch size that each rank looks for by itself, when its memory is full.

    ## What it does
    Finds `auto_find_batch_size=True` among the training arguments of transformers where the repository starts the script on
    several processes, or other arguments beside it say so, and takes it out (unsafe). Reports a training under Accelerate's
    `find_executable_batch_size` in such a script.

    ## Why it matters
    The memory of one rank is full first: it has the longest sample, or another program on its GPU. That rank catches its error,
    begins the training anew with a smaller batch, and calls the collectives of a beginning. The others know nothing of it, and
    wait for the gradients of the step in which it failed: the job hangs until the time-out, or fails in collectives that do not
    fit.

    ## Example
    ```python
    from transformers import Trainer, TrainingArguments


    def train(model, rows):
        args = TrainingArguments(
            "out",
            per_device_train_batch_size=64,
            auto_find_batch_size=True,
            ddp_find_unused_parameters=False,
        )
        Trainer(model=model, args=args, train_dataset=rows).train()
    ```

    ## Use instead
    ```python
    from transformers import Trainer, TrainingArguments


    def train(model, rows):
        args = TrainingArguments(
            "out",
            per_device_train_batch_size=64,
            ddp_find_unused_parameters=False,
        )
        Trainer(model=model, args=args, train_dataset=rows).train()
    ```

    ## Safety
    Always unsafe: it assumes that the batch that is set fits into each GPU. Where it does not, the run ends with the error, which
    says so, and one process no longer looks for a smaller batch either.

    ## Refuses
    - Says nothing where neither a command of the repository starts the script on several processes, nor an argument beside it
      (`ddp_…`, `fsdp`, `deepspeed`, `local_rank`) is for several processes alone.
    - Says nothing of `torchrun` and `accelerate launch` without a number of processes, or with one.
    - Says nothing of a value that is False, or that an option decides.
    - Says nothing of a repository's own tests, and of a function under `find_executable_batch_size` without a training in it.
    - Reports a dict of arguments that is used for something else as well, and every use of `find_executable_batch_size`.

    ## References
    Accelerate 1.15, `find_executable_batch_size`: the function is called again in the process that caught the error, and asks no
    other; transformers 5.23 runs the training loop by it. A run on two gloo processes of which one is out of memory.
    """

    code = "DDP608"
    severity = "risk"
    subject = "Give all ranks one batch size"
    must_show = "A run whose memory is full on one GPU ends with that error, instead of hanging."
    printed = ("CUDA out of memory", "Watchdog caught collective operation timeout")
    TRIGGERS = ((b"auto_find_batch_size", b"find_executable_batch_size"),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path) or isinstance(module, TextFile):
            return
        started = started_on_several(project, module.path)
        for found in given(project, module, (_NAME,)) if module.holds(_NAME.encode()) else ():
            shown = started or _beside(found)
            if found.name == _NAME and found.literal == "True" and not found.own_trainer and shown is not None:
                yield self._argument(found, shown)
        for function, mark in _marked(module) if started is not None else ():
            met = _met(function)
            if met and started is not None:
                yield self._decorated(module, mark, met, started)

    def _argument(self, found: Given, shown: Evidence) -> Finding:
        edits: list[Edit] = [] if found.fixed else found.dropped()
        reason = f"set a batch size that fits: {found.fixed}" if found.fixed else "set a batch size that fits, and leave this out"
        if edits:
            reason = "assumes that the batch size that is set fits into the memory of each GPU"
        return self.finding(
            found.module,
            found.node.value if isinstance(found.node, ast.keyword) else found.node,
            f"`{_NAME}`: a rank whose memory is full begins the training anew with a smaller batch, by itself, while the others "
            "wait for its gradients until the time-out",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[shown],
            reason=reason,
        )

    def _decorated(self, module: SourceModule, mark: ast.expr, met: str, shown: Evidence) -> Finding:
        return self.finding(
            module,
            mark,
            "a rank whose memory is full calls the function again with a smaller batch, by itself, while the others wait for it "
            f"in {met}() until the time-out",
            evidence=[shown],
            reason="find the batch size on one process first, and give it to the run of several",
        )


def _beside(found: Given) -> Evidence | None:
    """An argument of the same call that is for several processes alone."""
    holder = found.holder
    pairs = [(k.arg or "", k.value) for k in holder.keywords] if isinstance(holder, ast.Call) else []
    if isinstance(holder, ast.Dict):
        pairs = [(str(getattr(k, "value", "")), v) for k, v in zip(holder.keys, holder.values, strict=True)]
    for name, value in pairs:
        text = ast.unparse(value)
        off = text == "None" or (text in _OFF and not name.startswith("ddp_"))
        if name.startswith(_OF_RANKS) and not off:
            return Evidence("static", f"`{name}` is for several processes", found.module.path, value.lineno)
    return None


def _marked(module: SourceModule) -> Iterator[tuple[FunctionNode, ast.expr]]:
    """The functions under Accelerate's decorator."""
    for function in module.functions:
        for mark in function.decorator_list:
            name = qualified(module, mark.func if isinstance(mark, ast.Call) else mark)
            if last(name) == "find_executable_batch_size" and name.startswith("accelerate."):
                yield function, mark


def _met(function: FunctionNode) -> str:
    """The first call in a function by which a training meets the other ranks; "" without one."""
    calls = sorted((n for n in walk(function) if isinstance(n, ast.Call)), key=lambda c: c.lineno)
    return next((c.func.attr for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _MEETS), "")
