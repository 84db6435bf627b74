"""DDP508: a backward pass of manual optimization that Lightning does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted, qualified
from codemods.analysis.short_texts import short
from codemods.analysis.wrapped.lightning_runs import kept_to_one, runs_on_several
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import UNUSED
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

# Hooks that `self.manual_backward` comes to, and steps without a training.
_OTHERS = ("backward", "manual_backward", "__init__", "setup", "configure_model", "configure_optimizers")
_AVERAGES = (b"all_reduce", b"allreduce", b"reduce_gradients", b"average_gradients")


class BackwardPastLightning(DdpCodemod):
    """A backward pass of manual optimization that does not go by `self.manual_backward`.

    ## What it does
    In a LightningModule with `self.automatic_optimization = False`, `loss.backward()` becomes `self.manual_backward(loss)`;
    `torch.autograd.backward(...)` is reported.

    ## Why it matters
    With manual optimization Lightning switches the reducer of DDP off behind the forward, and on again in `manual_backward`. A
    backward pass of torch averages no gradients: each rank trains on its own data, the weights drift apart without an error,
    and rank 0 saves what it learned from its own share. Mixed precision does not scale such a loss, either.

    ## Example
    ```python
    import lightning.pytorch as pl


    class Painter(pl.LightningModule):
        def __init__(self, net):
            super().__init__()
            self.automatic_optimization = False
            self.net = net

        def training_step(self, batch, batch_idx):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = self.net(batch).mean()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl


    class Painter(pl.LightningModule):
        def __init__(self, net):
            super().__init__()
            self.automatic_optimization = False
            self.net = net

        def training_step(self, batch, batch_idx):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = self.net(batch).mean()
            self.manual_backward(loss)
            optimizer.step()
    ```

    ## Safety
    Unsafe: the gradients are averaged from there on, each rank has to come there equally often, and parameters that a pass leaves
    out stop DDP in its second step.

    ## Refuses
    - Says nothing where the Trainers of the project are kept to one device, and where the class averages gradients itself.
    - Says nothing in the hook `backward`, which `manual_backward` calls, and in steps that validate, test or predict.
    - Says nothing of a pass for the gradient of an input, whose `.grad` is read in the same function.
    - Reports `torch.autograd.backward`, which takes several values at once.
    - A repository's own tests.

    ## References
    `_DDPForwardRedirection` and `DDPStrategy.pre_backward` in Lightning 2.6; a run on two processes.
    """

    code = "DDP508"
    severity = "crash"
    subject = "Let Lightning see each backward pass"
    must_show = "After some steps on two processes the weights of both agree."
    printed = UNUSED
    TRIGGERS = ((b"automatic_optimization",), (b".backward(",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or kept_to_one(project) or any(module.holds(word) for word in _AVERAGES):
            return
        for call in module.calls_named("backward"):
            place = module.method_of(call)
            if place is None or not isinstance(call.func, ast.Attribute) or place[1].name in _OTHERS:
                continue
            facts = class_facts(project, module, place[0])
            if facts.is_a(Role.LIGHTNING_MODULE) and (said := _by_hand(project, facts)) is not None:
                if _trains(place[1].name) and dotted(call.func.value) not in ("self", "super"):
                    yield from self._tell(module, project, call, place[1], said)

    def _tell(
        self, module: SourceModule, project: Project, call: ast.Call, function: FunctionNode, said: Evidence
    ) -> Iterator[Finding]:
        assert isinstance(call.func, ast.Attribute)
        whole = qualified(module, call.func) == "torch.autograd.backward"
        if not whole and _is_for_an_input(module, function):
            return
        message = (
            f"`{short(module, call.func)}(...)` goes past Lightning, which leaves the averaging of the gradients to "
            "`self.manual_backward`: on several devices the weights of the ranks drift apart without an error"
        )
        several = runs_on_several(project)
        evidence = [said]
        if several is not None:
            evidence.append(Evidence("static", "the Trainer runs several", several[0].path, several[1].lineno))
        if whole:
            reason = "make one loss of it, as sum((value * grad.detach()).sum()), and hand that to `self.manual_backward`"
            yield self.finding(module, call, message, evidence=evidence, reason=reason)
            return
        given = [module.text_of(call.func.value), *(module.text_of(a) for a in call.args)]
        given += [f"{k.arg}={module.text_of(k.value)}" if k.arg else f"**{module.text_of(k.value)}" for k in call.keywords]
        edit = ReplaceExpression(module.path, module.span(call), f"self.manual_backward({', '.join(given)})")
        reason = "assumes that every rank comes here equally often, and that each pass reaches every parameter"
        yield self.finding(
            module, call, message, level=Applicability.UNSAFE, edits=[edit], evidence=evidence, reason=reason
        )  # fmt: skip


def _by_hand(project: Project, facts: ClassFacts) -> Evidence | None:
    """Where the class says that it optimizes by hand; None where it does not, or in some runs only."""
    given = class_values(project, facts).given.get("automatic_optimization", [])
    if not given or not all(isinstance(g.value, ast.Constant) and g.value.value is False for g in given):
        return None
    return Evidence("static", "the class optimizes by hand", given[0].site.module.path, given[0].value.lineno)


def _trains(name: str) -> bool:
    return not any(word in name for word in ("validation", "test_", "predict", "eval", "attack"))


def _is_for_an_input(module: SourceModule, function: FunctionNode) -> bool:
    """True where the function reads `x.grad` of something that is no parameter."""
    for read in module.reads_of("grad"):
        if isinstance(read, ast.Attribute) and module.function_of(read) is function:
            holder = module.text_of(read.value)
            if not any(word in holder for word in ("param", "weight", "bias")) and holder != "p":
                return True
    return False
