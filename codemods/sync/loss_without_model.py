"""DDP314: a rank replaces its loss by a tensor that no parameter is behind, and leaves out the reduction of the gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.replaced_losses import Replaced, replaced_losses
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.short_texts import short
from codemods.analysis.variance.analysis import variance
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ADVICE = (
    "keep the loss on the model's graph on every rank: a mean over nothing as `output.sum() * 0`, and for a loss that is no "
    "number `0.0 * sum(p.sum() for p in model.parameters())`, or let all ranks replace it by a reduced flag"
)


class LossWithoutModel(DdpCodemod):
    """A loss that one rank replaces by a tensor which no parameter of the model is behind.

    ## What it does
    Finds a loss in whose place a rank puts a new tensor because of its own data: `torch.zeros(1, requires_grad=True)`,
    `torch.zeros_like(loss).requires_grad_()`, `loss.new_tensor(0.0, requires_grad=True)`, where the loss is no number, where the
    batch holds no target, or in an exception handler. Follows it to the backward pass: in the same function, through functions
    and criteria of the project that return it, also in a tuple or a dict, and as what a `training_step` of Lightning or a
    `compute_loss` of the Trainer returns.

    ## Why it matters
    DDP reduces the gradients when the backward pass comes to the parameters. From a new tensor it comes to none: this rank
    reduces nothing in that step, and no error is raised. The others wait, and take what this rank sends in its next step for
    the gradients of this one: from here on all ranks average gradients of different steps. In the end, at the next other
    collective (a barrier, the buffers of BatchNorm, a checkpoint) or after the last step, the run hangs or fails.
    `find_unused_parameters=True` does not help: what it looks for are parameters that the output does not hang on.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer):
        dist.init_process_group("nccl")
        model = DDP(model)
        for batch in loader:
            loss = model(batch).mean()
            if torch.isnan(loss):
                loss = torch.zeros(1, device=loss.device, requires_grad=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer):
        dist.init_process_group("nccl")
        model = DDP(model)
        for batch in loader:
            loss = model(batch).mean()
            if torch.isnan(loss):
                loss = 0.0 * sum(p.sum() for p in model.parameters())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    There is no fix: which zero stays on the graph is not the same everywhere. `loss * 0` keeps a NaN, `torch.nan_to_num(loss)`
    keeps those of the layers below, and gradients of zero let an optimizer with momentum or weight decay move the weights where
    gradients of None do not.

    ## Refuses
    - Says nothing where the new loss stays on the model's graph: `loss * 0`, `torch.nan_to_num(loss)`, `output.sum() * 0`.
    - Says nothing where it is added to one that does, or is a term beside others.
    - Says nothing where every rank replaces it alike: by the step, the configuration, a test that was reduced over the ranks.
    - Says nothing of a tensor that asks for no gradient: its backward pass fails on one process as well.
    - Says nothing where a test stands between that asks the new loss, or the rank's own data, once more.
    - Says nothing of what goes to no backward pass: a number for the log, a validation step.
    - Says nothing of DeepSpeed's engine (`engine.backward(loss)`), which makes its reductions itself.
    - A repository's own tests.

    ## References
    Runs with torch 2.13 over gloo on two processes, with and without `find_unused_parameters`.
    """

    code = "DDP314"
    severity = "hang"
    subject = "Keep each rank's loss on the graph"
    must_show = "With a loss that is no number on one process, both make all steps and end."
    printed = WAITING
    TRIGGERS = ((b"requires_grad",), (b"torch",), (b"if ", b"if(", b"except"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in replaced_losses(project, module):
            shown = _shown(project, module, found)
            yield self.finding(module, found.fresh.node, _message(module, found), evidence=shown, reason=_ADVICE)


def _message(module: SourceModule, found: Replaced) -> str:
    if isinstance(found.by, ast.ExceptHandler):
        who = f"an exception on one rank (line {found.by.lineno}) decides"
    else:
        who = f"each rank's own data decide (`{short(module, found.by)}`, line {found.by.lineno})"
    return (
        f"{who} that this stands for the loss: no parameter of the model is behind it, so this rank's backward pass reduces no "
        "gradients, while the others wait for them, and take those of its next step for them"
    )


def _shown(project: Project, module: SourceModule, found: Replaced) -> Iterator[Evidence]:
    path, line, what = found.backward
    if isinstance(found.by, ast.expr):
        for link in variance(project).tested(module, found.by).chain:
            yield Evidence("way", link.text, link.path, link.line)
    yield Evidence("static", f"it comes to {what}", path, line)
