"""DDP119: a torchmetrics object that keeps its numbers in plain attributes, which no rank shares with the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.stacked_states import Stacked, stacked_states
from codemods.analysis.unshared_states import Unshared, unshared_states
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_SUM = '`update` adds to it: give it `dist_reduce_fx="sum"`'
_LIST = (
    '"cat" joins lists only: `self.add_state("{0}", default=[], dist_reduce_fx="cat")`, `self.{0}.append(...)` in `update`, and '
    "`dim_zero_cat(self.{0})` in `compute`"
)


class MetricWithoutState(DdpCodemod):
    """A torchmetrics object that keeps its numbers in plain attributes, which no rank shares with the others.

    ## What it does
    Finds a class that derives from `torchmetrics.Metric`, whose `update` adds to a list or a number of the object, and whose
    `compute` reads it, though no `add_state` announces it. And a tensor that is announced without
    `dist_reduce_fx`, or with "cat", and that `compute` takes for that of one process: it goes through it, or gives back what
    it works out of a number.

    ## Why it matters
    Before `compute` runs, torchmetrics puts together over the ranks what `add_state` has announced, and nothing else. Of the rest
    each rank has that of its own batches: the score is that of an eighth of the set on eight GPUs, and each rank has another one.
    A quotient of a state and such a number is wrong by the number of processes. `reset()` does not empty it either, and a rank
    without a batch may divide by zero. One process is right.

    Without `dist_reduce_fx` the tensors of the ranks are stacked, and "cat" leaves them so: a number becomes one for each rank,
    and a loop over the samples goes over the ranks. Where the ranks have different numbers of samples, `torch.stack` fails.

    ## Example
    ```python
    import torch
    from torchmetrics import Metric


    class Coverage(Metric):
        def __init__(self):
            super().__init__()
            self.covered = 0
            self.total = 0

        def update(self, inside: torch.Tensor) -> None:
            self.covered += inside.sum()
            self.total += inside.numel()

        def compute(self):
            return self.covered / self.total
    ```

    ## Use instead
    ```python
    import torch
    from torchmetrics import Metric


    class Coverage(Metric):
        def __init__(self):
            super().__init__()
            self.add_state("covered", default=torch.tensor(0), dist_reduce_fx="sum")
            self.add_state("total", default=torch.tensor(0), dist_reduce_fx="sum")

        def update(self, inside: torch.Tensor) -> None:
            self.covered += inside.sum()
            self.total += inside.numel()

        def compute(self):
            return self.covered / self.total
    ```

    ## Safety
    There is no fix: the type of a number and what joins two of them is a choice, and a list of texts can be no state at all.

    ## Refuses
    - Says nothing of a class that derives from a metric that does something already, or whose bases are not all seen.
    - Says nothing where the class gathers or reduces itself, or is kept to the own rank (`sync_on_compute=False`).
    - Says nothing where the name of a state is worked out, and of an attribute that may hold another metric or a helper.
    - Says nothing of a state that is a list, of `dist_reduce_fx=None`, which says that the ranks' tensors are wanted, and where
      `compute` asks for the shape, sums up, or hands the state to another function: several ranks may be meant.
    - Says nothing in a repository's own tests, and of code that no program runs on several ranks.

    ## References
    torchmetrics 1.8, `Metric.sync` (only what is in `_reductions` is gathered) and "Implementing a Metric". Runs on two gloo
    processes: each rank has the score of its own half.
    """

    code = "DDP119"
    severity = "data"
    TRIGGERS = ((b"def update(",), (b"Metric", b"metric"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return any(project.files_containing(word) for word in (b"torchmetrics", b"lightning.metrics"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for node in module.nodes(ast.ClassDef):
            found = unshared_states(project, module, node) if node.bases else []
            if found and not is_run_by_nobody(project, module, module.methods_of(node)["update"]):
                yield self._tell(module, node, found)
            stacked = stacked_states(project, module, node) if node.bases else []
            if stacked and not is_run_by_nobody(project, module, module.methods_of(node)["update"]):
                yield self._tell_stacked(module, node, stacked)

    def _tell_stacked(self, module: SourceModule, node: ast.ClassDef, found: list[Stacked]) -> Finding:
        names, first = _listed([f.name for f in found]), found[0]
        what = "is a tensor" if len(found) == 1 else "are tensors"
        becomes = (
            f"line {first.read} gives back one number for each rank"
            if first.number
            else f"line {first.read} goes through the ranks in place of the samples; with different numbers of samples it fails"
        )
        return self.finding(
            module,
            first.call,
            f"{names} of the metric `{node.name}` {what} that no `dist_reduce_fx` joins: "
            f"torchmetrics stacks those of the ranks to [ranks, …] before `compute`, where {becomes}",
            evidence=[Evidence("static", f"`update` adds to `{f.name}` here", module.path, f.grows) for f in found],
            reason=_SUM if first.number else _LIST.format(first.name),
        )

    def _tell(self, module: SourceModule, node: ast.ClassDef, found: list[Unshared]) -> Finding:
        names = _listed([f.name for f in found])
        are, they, them = ("is no state", "it holds", "it") if len(found) == 1 else ("are no states", "they hold", "them")
        return self.finding(
            module,
            min((f.made for f in found), key=lambda s: s.lineno),
            f"{names} {are} of the metric `{node.name}`: torchmetrics puts together what `add_state` announces, and {they} what "
            "this rank's own batches gave when `compute` reads " + them,
            evidence=[Evidence("static", f"`update` adds to `{f.name}` here", module.path, f.grows) for f in found],
            reason=_advice(found),
        )


def _listed(names: list[str]) -> str:
    named = [f"`{name}`" for name in names]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _advice(found: list[Unshared]) -> str:
    first = found[0]
    if all(f.number for f in found):
        return f'announce it: `self.add_state("{first.name}", default=torch.tensor(0), dist_reduce_fx="sum")`, each in this way'
    return (
        f'keep tensors, and announce them: `self.add_state("{first.name}", default=[], dist_reduce_fx="cat")`; texts have to be '
        "gathered (`all_gather_object`) in `compute`"
    )
