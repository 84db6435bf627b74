"""DDP315: gradients that FSDP shares out, clipped by the norm of each rank's own part."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.wrapped.clipped_shards import ClippedShards, clipped_shards
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project

_TAKEN = frozenset({"parameters", "max_norm", "norm_type"})  # what the method of the wrapper takes, too
_MESSAGE = (
    "FSDP leaves each rank a part of the gradients, and this function takes the norm of this part alone: each rank scales its "
    "part by a factor of its own, and the norm that it gives is too small"
)


class ClipOfOwnShard(DdpCodemod):
    """Gradients of a model behind FSDP that each rank clips by the norm of its own part.

    ## What it does
    Finds `torch.nn.utils.clip_grad_norm_(model.parameters(), …)` where the model is wrapped by `FullyShardedDataParallel`, also
    where a caller hands it over, and calls the method of the wrapper.

    ## Why it matters
    Under FSDP a rank holds a part of each gradient. The function knows nothing of the other parts: of a norm of 51.8 on two
    processes, one rank got 16.4 and the other 49.1. The parts of one gradient are scaled by different factors, so that the step
    goes in another direction than on one GPU, and gradients are left too long. The method of the wrapper sums the norms over all
    ranks.

    ## Example
    ```python
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


    def train(net, loader, loss_of):
        model = FSDP(net)
        optimizer = torch.optim.AdamW(model.parameters())
        for batch in loader:
            loss_of(model(batch)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


    def train(net, loader, loss_of):
        model = FSDP(net)
        optimizer = torch.optim.AdamW(model.parameters())
        for batch in loader:
            loss_of(model(batch)).backward()
            model.clip_grad_norm_(1.0)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Safety
    Unsafe: the method waits for all ranks, so it assumes that all of them come to the line.

    ## Refuses
    - Reports a model that is wrapped on one way only, or by another wrapper: no other model has the method. So it does where a
      setting picks the strategy from several that are named.
    - Reports a call with arguments that the method does not take (`error_if_nonfinite`, `foreach`).
    - Says nothing of `fully_shard` (FSDP2), whose gradients know of the other ranks: the function is right there.
    - Says nothing under `NO_SHARD`, of a strategy that is not seen, and of a call below a test that asks for the wrapper.
    - Says nothing of what Accelerate, Lightning or the Trainer wraps. A repository's own tests.

    ## References
    torch 2.13: `FullyShardedDataParallel.clip_grad_norm_` ("you should use this method instead of
    `torch.nn.utils.clip_grad_norm_`"); runs on two gloo processes.
    """

    code = "DDP315"
    severity = "data"
    subject = "Clip by the norm of all ranks' gradients"
    must_show = "Two processes clip by the same norm, which is that of one process."
    printed = ("'DistributedDataParallel' object has no attribute 'clip_grad_norm_'",)
    TRIGGERS = ((b"clip_grad_norm_",), (b".parameters(",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"FullyShardedDataParallel"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in clipped_shards(project, module):
            yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: ClippedShards) -> Finding:
        code = _by_method(module, found)
        edits: list[Edit] = []
        level = Applicability.DISPLAY
        if code and found.sure:
            edits, level = [ReplaceExpression(module.path, module.span(found.call), code)], Applicability.UNSAFE
            reason = "assumes that all ranks come to this line, as they do to the backward pass"
        elif code:
            reason = f"call `{code}` where FSDP wraps the model and shares it out: no other model has that method"
        else:
            reason = "call the method `clip_grad_norm_` of the wrapper, which takes `max_norm` and `norm_type` alone"
        evidence = [Evidence("static", "FSDP wraps the model", found.module.path, found.wrap.lineno)]
        return self.finding(module, found.call, _MESSAGE, level=level, edits=edits, evidence=evidence, reason=reason)


def _by_method(module: SourceModule, found: ClippedShards) -> str:
    """The call of the wrapper's method; "" where it does not take what is given here."""
    call = found.call
    if any(k.arg not in _TAKEN for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return ""
    rest = call.args[1:]
    given = [module.text_of(a) for a in rest]
    given += [f"{k.arg}={module.text_of(k.value)}" for k in call.keywords if k.arg != "parameters"]
    if len(rest) > 2 or not given:
        return ""
    return f"{module.text_of(found.model)}.clip_grad_norm_({', '.join(given)})"
