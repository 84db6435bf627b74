"""DDP107: a loss that is divided by the processes, or by a number of all ranks, before gradients that are averaged anyway."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.reaching import reaching
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.wrapped.losses import Backward, backward_passes
from codemods.analysis.wrapped.scaled_losses import (
    Aliased,
    Divided,
    Summed,
    aliased_divisors,
    divided_by_processes,
    summed_divisors,
)
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, RemoveStatement, ReplaceExpression
from codemods.files.source import SourceModule, stands_above
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY
_WRAPS = (b"DistributedDataParallel", b"Accelerator", b"Fabric", b"accelerator", b"fabric")
# Where gradients are summed by hand the factor may be wanted.
_SUMMED_BY_HAND = lazy(
    rb"reduce\w*\([^)\n]*\.grad|gradient_average\s*=\s*False|register_comm_hook|"
    rb"set_gradient_divide_factor|gradient_predivide"
)
_GATHERS = (b"all_gather", b"GatherLayer", b"gather_with_grad", b"neighbour_exchange", b"distributed.nn")
_ASSUMED = "assumes that the learning rate was not chosen for the smaller gradient"


class ScaledLoss(DdpCodemod):
    """A loss that is divided by the processes, or by a number of all ranks, before gradients that are averaged anyway.

    ## What it does
    Finds `loss / world_size` on the way to a backward pass, and takes it out, and reports `loss / (len(batch) * world_size)`.
    Finds a loss that goes backward behind a function which sums a copy of it over the ranks and divides that (`reduce_mean(loss,
    nprocs)`), and lets the rank's own loss go backward. Finds a count that is summed over the ranks in place, and divides the
    loss: by a name that holds the same tensor, which it copies, or without a division by the processes.

    ## Why it matters
    DDP averages the gradients of the ranks: it adds them up and divides by their number. A loss that is divided too gives
    gradients that are as many times too small as there are processes. Adam hides it from its steps, but clipping, weight decay
    and SGD are off by that factor, and more so with each GPU that is added.

    ## Example
    ```python
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def train(net, loader, optimizer, loss_of):
        model = DistributedDataParallel(net)
        for x, y in loader:
            loss = loss_of(model(x), y)
            loss = loss / dist.get_world_size()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def train(net, loader, optimizer, loss_of):
        model = DistributedDataParallel(net)
        for x, y in loader:
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    Unsafe: the gradients grow by the number of processes, and a learning rate may have been chosen for the small ones.

    ## Refuses
    - Says nothing where the project sums gradients by hand, or hooks their communication.
    - Says nothing of a loss that is divided for the log only, and of a product with the number of processes.
    - Says nothing of a count that is divided by the processes, or clamped behind such a division, anywhere in the function.
    - Says nothing of `loss / (len(batch) * world_size)` in a project that gathers rows from all ranks.
    - Says nothing in evaluations, under `no_grad`, and where no DDP, Accelerator or Fabric is named in the file.
    - Reports a loss that is reduced in place first: the log wants the mean, and the backward the rank's own.
    - Reports a summed count: whether the count or the loss gets the factor is a choice.
    - A repository's own tests.

    ## References
    Runs on two processes with torch 2.13: `reduce` and `all_reduce` of a loss in place do not change its gradient, the division
    halves it; `.to(device)` on the same device gives the same tensor. DETR divides its count of boxes by the world size.
    """

    code = "DDP107"
    severity = "data"
    subject = "Leave the averaging over the ranks to DDP"
    must_show = "The gradients on two processes are the mean of those of the shares; clipping acts at another norm than before."
    printed = ()
    TRIGGERS = ((b"backward(", b"all_reduce("), (b"world_size", b"num_processes", b"reduce"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or _sums_by_hand(project):
            return
        passes = list(backward_passes(module))
        if any(module.holds(word) for word in _WRAPS) and not module.holds(b"horovod"):
            seen: set[int] = set()
            for one in passes:
                for found in divided_by_processes(project, one):
                    by = found.averaged_by
                    place = id(by if by is not None else found.node)
                    if place in seen or (by is None and found.module is not module):
                        continue
                    seen.add(place)
                    if found.counted is not None:
                        yield from self._counted(module, project, found, one.call)
                        continue
                    yield self._divided(module, found, one.call) if by is None else self._averaged(module, found, by, one)
        if module.holds(b"all_reduce("):
            yield from (self._aliased(module, found) for found in aliased_divisors(module, passes))
            yield from (self._summed(module, found) for found in summed_divisors(module))

    def _divided(self, module: SourceModule, found: Divided, call: ast.Call) -> Finding:
        edits = _without(module, found)
        return self.finding(
            module,
            found.node,
            "the loss that goes backward is divided by the number of processes, and the gradients are averaged over them again: "
            "they are that many times too small",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[Evidence("static", "its gradients are averaged over the ranks", module.path, call.lineno)],
            reason=_ASSUMED if edits else "give the backward the rank's own loss, and reduce `loss.detach().clone()` for the log",
        )

    def _counted(self, module: SourceModule, project: Project, found: Divided, call: ast.Call) -> Iterator[Finding]:
        """Nothing where rows are gathered: the gradient of a loss over the rows of all ranks may be the sum of theirs."""
        if found.counted is None or found.averaged_by is not None or any(project.files_containing(w) for w in _GATHERS):
            return
        text = found.module.text_of(found.counted)
        yield self.finding(
            module,
            found.node,
            f"the loss that goes backward is divided by the rows of all ranks (`{text}`), and the gradients are averaged over "
            "the ranks again: they are as many times too small as there are processes",
            evidence=[Evidence("static", "its gradients are averaged over the ranks", module.path, call.lineno)],
            reason="divide what goes backward by the rank's own rows, and show the loss of all ranks by a number of its own",
        )

    def _averaged(self, module: SourceModule, found: Divided, by: ast.Call, one: Backward) -> Finding:
        own = _own_loss(module, by, one.loss)
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(one.loss), own)] if own else []
        return self.finding(
            module,
            by,
            f"`{dotted(by.func)}` sums the loss over the ranks in place, which its gradient does not see, and divides it by "
            "their number: what goes backward has gradients that are that many times too small, and DDP averages them again",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the division", found.module.path, found.node.lineno),
                Evidence("static", "its gradients are averaged over the ranks", module.path, one.call.lineno),
            ],
            reason=_ASSUMED if edits else "give the backward the rank's own loss, and keep the mean of the ranks for the log",
        )

    def _aliased(self, module: SourceModule, found: Aliased) -> Finding:
        text = module.text_of(found.divisor)
        return self.finding(
            module,
            found.made,
            f"`{found.name}` may be the very tensor of `{text}` (`.to` on the same device copies nothing): the all_reduce in "
            f"line {found.reduced.lineno} sums it in place, and the loss is divided by that of all ranks before DDP averages",
            level=_UNSAFE,
            edits=[ReplaceExpression(module.path, module.span(found.made), f"{module.text_of(found.made)}.clone()")],
            evidence=[Evidence("static", "the loss is divided by it here", module.path, found.divisor.lineno)],
            reason="assumes that the loss is meant to be divided by the rank's own number",
        )

    def _summed(self, module: SourceModule, found: Summed) -> Finding:
        return self.finding(
            module,
            found.reduced,
            f"`{found.name}` becomes the number of all ranks, the loss of one rank is divided by it, and DDP averages the "
            "gradients again: they are as many times too small as there are processes",
            evidence=[Evidence("static", "the loss is divided by it here", module.path, found.use.lineno)],
            reason=f"divide it by the processes behind the all_reduce: `{found.name} = {found.name} / dist.get_world_size()`",
        )


def _own_loss(module: SourceModule, by: ast.Call, loss: ast.expr) -> str:
    """The name of the rank's own loss, where each value of the loss that goes backward is that name or the mean made of it."""
    if not isinstance(loss, ast.Name) or not by.args or not isinstance(own := by.args[0], ast.Name) or own.id == loss.id:
        return ""
    values = [b.value for b in reaching(module, loss, bindings_of(module, loss)) if not b.part]
    plain = all(v is by or (isinstance(v, ast.Name) and v.id == own.id) for v in values)
    again = [b.node for b in bindings_of(module, own) if stands_above(by, b.node) and stands_above(b.node, loss)]
    return own.id if plain and values and not again else ""


def _sums_by_hand(project: Project) -> bool:
    def build() -> bool:
        words = (b".grad", b"gradient_average", b"comm_hook", b"divide")
        paths = {path for word in words for path in project.files_containing(word)}
        return any(_SUMMED_BY_HAND.search(project.read(path) or b"") for path in paths if not is_test_file(path))

    return project.keep("gradients summed by hand", build)


def _without(module: SourceModule, found: Divided) -> list[Edit]:
    """The division taken out; nothing where the loss was reduced for the log above."""
    node = found.node
    statement = module.statement_of(node)
    if found.reduced or not module.is_whole(statement):
        return []
    if isinstance(node, ast.AugAssign):
        return [RemoveStatement(module.path, module.span(node))]
    if isinstance(statement, ast.Assign) and statement.value is node and dotted(statement.targets[0]) == dotted(node.left) != "":
        return [RemoveStatement(module.path, module.span(statement))]
    text = module.text_of(node.left)
    plain = not isinstance(node.left, ast.BinOp) or isinstance(module.parent(node), (ast.Call, ast.Assign))
    return [ReplaceExpression(module.path, module.span(node), text)] if plain and "\n" not in text else []
