"""DDP704: gradients that are averaged over the ranks in each micro-batch of an accumulation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.tuning.accumulated_steps import Accumulation, accumulations
from codemods.analysis.wrapped.losses import backward_passes
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter, InsertBefore
from codemods.files.source import SourceModule
from codemods.store.project import Project

_FLAG = "require_backward_grad_sync"
_ROOM = 90  # for a comment behind the line
_OTHERS = (b"no_sync", b"require_backward_grad_sync", b"ccelerat", b"deepspeed", b"ightning", b".join(")


class AccumulationWithoutNoSync(DdpCodemod):
    """A loop that accumulates gradients, and averages them over all ranks in every backward pass.

    ## What it does
    Finds a loop, or a function that is called for each batch, with a call of a DDP wrapper and `backward()`, that steps the
    optimizer under `if (i + 1) % n == 0:`.
    Says to the wrapper before the forward whether this batch is followed by a step: only then the gradients are averaged.

    ## Why it matters
    DDP sends all gradients over the network in each backward pass. With eight micro-batches a step, seven of eight all-reduces
    are for nothing: the sum of the averages is the average of the sums.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, loader, optimizer, every):
        model = DDP(net)
        for i, (x, y) in enumerate(loader):
            loss = ((model(x) - y) ** 2).mean() / every
            loss.backward()
            if (i + 1) % every == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, loader, optimizer, every):
        model = DDP(net)
        for i, (x, y) in enumerate(loader):
            model.require_backward_grad_sync = (i + 1) % every == 0  # what model.no_sync() switches
            loss = ((model(x) - y) ** 2).mean() / every
            loss.backward()
            if (i + 1) % every == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Never made unless asked for: `--select tuning`. Unsafe: between two steps the gradients are those of the own rank, and buffers
    (BatchNorm) are only made the same in the batches that are followed by a step.

    ## Refuses
    - Says nothing where the file has `no_sync`, or leaves its training to Accelerate, Lightning or DeepSpeed.
    - Says nothing of a loop with two wrappers, with several backward passes, or that drops the gradients in each round.
    - Reports where another step takes the rest behind the loop, where each batch clips or reads gradients, with `static_graph`,
      of a compiled wrapper, and where what the test asks for changes between the forward and the step.
    - A repository's own tests.

    ## References
    `DistributedDataParallel.no_sync` (torch 2.13), which sets `require_backward_grad_sync` and has to hold the forward, too;
    two-process runs: the same weights with a third of the all-reduces.
    """

    code = "DDP704"
    severity = "noise"
    subject = "Average gradients only before a step"
    must_show = "The weights are the same on both processes, and the same as before; fewer buckets of gradients are sent."
    printed = ()
    TRIGGERS = ((b".backward(",), (b".step(",))
    READS_TESTS = False
    opt_in = True

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        if b"%" not in data or any(word in data for word in _OTHERS):
            return False
        return bool(project.files_containing(b"DistributedDataParallel"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not self.is_worth_parsing(module.path, project):
            return
        for found in accumulations(project, module):
            yield self._tell(module, project, found)

    def _tell(self, module: SourceModule, project: Project, found: Accumulation) -> Finding:
        test = " ".join(module.text_of(found.step.test).split())
        edits = [] if found.obstacle else _switched(module, project, found, test)
        reason = (
            "assumes that nothing reads the gradients between two steps, where they are those of the own rank"
            if edits
            else f"run all but the last micro-batch of a step under `{found.wrapper}.no_sync()`; {found.obstacle}"
        )
        return self.finding(
            module, found.passes[0].call,
            f"every micro-batch averages the gradients over all ranks, and a step follows only where `{test}`",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the model is wrapped", found.wrap[0].path, found.wrap[1].lineno),
                Evidence("static", "the step is taken under this test", module.path, found.step.lineno),
            ],
            reason=reason,
        )  # fmt: skip


def _switched(module: SourceModule, project: Project, found: Accumulation, test: str) -> list[Edit]:
    """The line in front of the forward, and one behind the loop, or at the end of the round, where something else trains."""
    flag = f"{found.wrapper}.{_FLAG}"
    comment = f"  # what {found.wrapper}.no_sync() switches" if len(flag) + len(test) < _ROOM else ""
    edits: list[Edit] = [InsertBefore(module.path, module.span(found.first), f"{flag} = {test}{comment}")]
    if _trains_elsewhere(module, project, found):
        last = found.round if isinstance(found.round, ast.For) else found.step
        edits.append(InsertAfter(module.path, module.span(last), f"{flag} = True"))
    return edits


def _trains_elsewhere(module: SourceModule, project: Project, found: Accumulation) -> bool:
    own = {id(b.call) for b in found.passes}
    if any(id(b.call) not in own for b in backward_passes(module)):
        return True
    return any(p != module.path and not is_test_file(p) for p in project.files_containing(b".backward("))
