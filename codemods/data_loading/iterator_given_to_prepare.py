"""DDP412: an iterator over a loader that is prepared in the place of the loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_in
from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.prepared_iterators import PreparedIterator, prepared_iterators
from codemods.analysis.loading.shares import is_told_its_share
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class IteratorGivenToPrepare(DdpCodemod):
    """`accelerator.prepare` is handed an iterator over a loader, which it does not share out.

    ## What it does
    Finds `accelerator.prepare(cycle(loader))`, `prepare(iter(loader))` and the same through a name or an attribute, where a
    training takes its batches of it, and prepares the loader inside of the iterator.

    ## Why it matters
    `prepare` knows a loader by its class. A generator is no `DataLoader`: it comes back as it is, without a word. Every rank goes
    through the whole data set, so more GPUs do not shorten an epoch, and its batches stay on the CPU.

    ## Example
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader


    def cycle(loader):
        while True:
            yield from loader


    def train(model, optimizer, data, steps):
        accelerator = Accelerator()
        loader = DataLoader(data, batch_size=8, shuffle=True)
        batches = cycle(loader)
        model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
        for _ in range(steps):
            loss = model(next(batches)).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader


    def cycle(loader):
        while True:
            yield from loader


    def train(model, optimizer, data, steps):
        accelerator = Accelerator()
        loader = DataLoader(data, batch_size=8, shuffle=True)
        batches = cycle(accelerator.prepare(loader))
        model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
        for _ in range(steps):
            loss = model(next(batches)).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Safety
    Unsafe: `batch_size` is then that of one rank out of batches that no other rank has, an epoch has fewer steps on each rank,
    and the batches come on the rank's device.

    ## Refuses
    - Says nothing of a loader that is prepared itself, and of one whose sampler or batch sampler may share it out.
    - Says nothing where the data set, its class or what it is made of speaks of ranks or shards.
    - Says nothing where no function with a backward pass takes the batches: each rank evaluates the whole set, which costs time
      alone.
    - Says nothing where some ranks alone take batches: a prepared loader brings the random states of the ranks together first,
      and one rank would wait there.
    - Says nothing where it is not seen what makes the iterator or the loader, and under a test of the rank.
    - Says nothing of Fabric's `setup_dataloaders`, which raises for what is no loader.
    - Reports an iterator that is made where the Accelerator is not there yet.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `Accelerator._prepare_one`: "Return the unprocessed object if previous criteria was not met". Run on two
    processes: both ranks get the batches 0 1 2 3 from `prepare(cycle(loader))`, and 0 2 and 1 3 from `cycle(prepare(loader))`.
    """

    code = "DDP412"
    severity = "data"
    subject = "Prepare loaders, not iterators over them"
    must_show = "Each process trains on its own share of the data: the shares together are the whole set."
    printed = ()
    TRIGGERS = ((b".prepare(",), (b"iter(", b"cycle(", b"yield", b"import"), (b"backward(",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"DataLoader"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not module.calls_named("backward"):
            return
        done: set[int] = set()
        for one in prepared_iterators(project, module):
            if id(one.made) not in done and not is_told_its_share(project, one.found):
                done.add(id(one.made))
                yield self._tell(module, one)

    def _tell(self, module: SourceModule, one: PreparedIterator) -> Finding:
        assert isinstance(one.prepare.func, ast.Attribute)
        holder = module.text_of(one.prepare.func.value)
        loader = module.text_of(one.loader)
        written = f"{holder}.prepare({loader})"
        edits: list[Edit] = []
        reason = f"prepare the loader, not the iterator: `{written}`"
        if _is_there(module, one):
            edits = [ReplaceExpression(module.path, module.span(one.loader), written)]
            reason = "assumes that batch_size is meant for each rank, and that nothing counts on the number of steps in an epoch"
        text = " ".join(module.text_of(one.made).split())
        return self.finding(
            module,
            one.made,
            f"`{text}` is no loader: `{holder}.prepare` hands it back as it is, and every rank goes through all of the data",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the iterator is prepared", module.path, one.prepare.lineno),
                Evidence("static", "the loader has no sampler of its own", one.found.module.path, one.found.call.lineno),
            ],
            reason=reason,
        )


def _is_there(module: SourceModule, one: PreparedIterator) -> bool:
    """True where the Accelerator of the `prepare` is bound above the iterator, in the same function or round it."""
    assert isinstance(one.prepare.func, ast.Attribute)
    holder = one.prepare.func.value
    function = module.function_of(one.made)
    if function is not module.function_of(one.prepare):
        return False
    if isinstance(holder, ast.Name):
        bound = bindings_in(module, function, holder.id)
        if not bound:
            return function is not None  # of the module, or of a function round it
    elif isinstance(holder, ast.Attribute):
        bound = [b for b in attribute_bindings(module, holder) if module.function_of(b.node) is function]
        if not bound:
            return bool(attribute_bindings(module, holder)) and function is not None and function.name != "__init__"
    else:
        return False
    return all(b.parameter or getattr(b.node, "lineno", 0) < one.made.lineno for b in bound)
