"""DDP414: rank 0 seeds the process's random numbers anew in the midst of the training, and the other ranks do not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.draws import draws_near, in_training_loop, may_train
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.seeds import depends_on_rank
from codemods.analysis.names import qualified
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_COUNTS = re.compile(r"step|epoch|iter", re.I)
_RESTORES = ("get_rng_state", "fork_rng", "set_rng_state")


class NumbersResetByOneRank(DdpCodemod):
    """Random numbers that rank 0 alone sets back in the midst of the training.

    ## What it does
    Finds `torch.manual_seed(42)` under a test of the rank, in what a training loop comes to again and again, where the training
    draws noise, time steps or masks from the same numbers. Where the result is taken for a generator, it makes one of its own.

    ## Why it matters
    `torch.manual_seed` sets the numbers of the whole process, those of the GPU too, and gives back the generator that everything
    draws from. Behind each validation rank 0 trains with the same noise and the same time steps as behind the last one, and the
    other ranks go on with new ones. Nothing fails.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def show(model):
        generator = torch.manual_seed(42)
        return model(torch.randn(1, 4, generator=generator))


    def train(model, loader):
        for x in loader:
            noise = torch.randn_like(x)
            (model(x + noise) - noise).square().mean().backward()
            if dist.get_rank() == 0:
                show(model.module)
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def show(model):
        generator = torch.Generator().manual_seed(42)
        return model(torch.randn(1, 4, generator=generator))


    def train(model, loader):
        for x in loader:
            noise = torch.randn_like(x)
            (model(x + noise) - noise).square().mean().backward()
            if dist.get_rank() == 0:
                show(model.module)
    ```

    ## Safety
    Unsafe: what draws there without the generator has other numbers each time from then on.

    ## Refuses
    - Says nothing of a seed that all ranks set, that stands outside of a training loop, or that no test of the rank is seen for.
    - Says nothing where the seed counts steps or epochs, or has the rank in it.
    - Says nothing where the training draws nothing for its samples from the process's numbers.
    - Says nothing where the function keeps the state of the numbers (`fork_rng`, `get_rng_state`).
    - Reports a seed whose result is not used: what draws behind it has to be given a generator.
    - A repository's own tests.

    ## References
    torch 2.13, `torch.manual_seed` ("returns a torch.Generator object": the default one). Runs on two processes.
    """

    code = "DDP414"
    severity = "data"
    subject = "Give pictures in training a generator of their own"
    must_show = "Behind each validation rank 0 trains with new noise, as the other ranks do."
    printed = ()
    TRIGGERS = ((b"manual_seed(",),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(may_train(project))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("manual_seed"):
            plain = qualified(module, call.func) == "torch.manual_seed" and len(call.args) == 1
            if not plain or not _is_fixed(project, module, call):
                continue
            if ranks_reaching(project, module, call) not in _ZERO or not in_training_loop(project, module, call):
                continue
            draws = [d for d in draws_near(project, module.path) if d.generator is None]
            if draws:
                first = draws[0]
                shown = f"`{short(first.module, first.call)}` in training"
                yield self._tell(module, call, Evidence("static", shown, first.module.path, first.call.lineno))

    def _tell(self, module: SourceModule, call: ast.Call, drawn: Evidence) -> Finding:
        taken = not isinstance(module.parent(call), ast.Expr)
        torch = any(i.dotted == "torch" for i in module.imports.get("torch", ()))
        own = "torch.Generator().manual_seed"
        edits = [ReplaceExpression(module.path, module.span(call.func), own)] if taken and torch else []
        reason = (
            "assumes that nothing else there has to draw the same numbers each time"
            if edits
            else f"draw from a generator of its own (`{own}(...)`), or put `torch.random.fork_rng()` round it"
        )
        return self.finding(
            module,
            call,
            f"rank 0 alone comes to `{short(module, call)}` in the midst of the training, and it sets back the numbers of the "
            "whole process: rank 0 then trains with the same noise again and again, the other ranks go on",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[drawn],
            reason=reason,
        )


def _is_fixed(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a seed that is the same each time."""
    value = call.args[0]
    if _COUNTS.search(module.text_of(value)) or depends_on_rank(project, module, value):
        return False
    function = module.function_of(call)
    return function is not None and not any(word in module.text_of(function) for word in _RESTORES)
