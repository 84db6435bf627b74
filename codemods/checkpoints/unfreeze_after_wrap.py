"""DDP506: parameters that are released behind the DDP wrap."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted, is_from, last, qualified
from codemods.analysis.wrapped.lightning_runs import BEHIND, IN_FRONT, runs_on_several
from codemods.analysis.wrapped.switches import frozen_by, frozen_in_front, of_call, switched_behind
from codemods.analysis.wrapped.wraps import wraps_in
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_REASON = (
    "let them require a gradient at the wrap, and keep them still by a learning rate of 0 (or no group in the optimizer) until "
    "then; or wrap the model anew where they are released"
)
_MESSAGE = (
    "{0} behind the DDP wrap, which did not take them in: their gradients are never averaged, and each rank trains its own copy, "
    "without an error"
)


class UnfreezeAfterWrap(DdpCodemod):
    """Parameters that were frozen when DDP was made, and are released later.

    ## What it does
    Reports `requires_grad = True`, `requires_grad_(True)` and helpers that do it, where they meet the wrapped module behind the
    wrap and the same parameters were frozen in front of it, be it that a function wraps (`net = wrap(net)`). In
    Lightning, of hooks that run behind the wrap, of
    `BackboneFinetuning`, and of a `BaseFinetuning` that unfreezes, where a Trainer is given several devices.

    ## Why it matters
    DDP lists the parameters that require a gradient when it is made. One that is released later gets a gradient, and the
    optimizer uses it, but it is that of the rank's own data: the copies drift apart, and rank 0 saves one of them.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, optimizer, epochs):
        net.backbone.requires_grad_(False)
        model = DDP(net)
        for epoch in range(epochs):
            if epoch == 1:
                model.module.backbone.requires_grad_(True)
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, optimizer, epochs):
        model = DDP(net)
        for epoch in range(epochs):
            backbone, head = optimizer.param_groups
            backbone["lr"] = 0.0 if epoch < 1 else head["lr"]
    ```

    ## Safety
    There is no fix: a learning rate of 0 until then costs the backward pass that freezing saved, and a second wrap needs a new
    optimizer; which of them fits is the author's to say.

    ## Refuses
    - Says nothing where the parameters are not seen to be frozen in front of the wrap: a GAN that switches its critic off and on
      switches what DDP took in.
    - Says nothing of a switch in front of the wrap (there, or in a method that is called there alone), or of a second one, and of
      one whose value is not known.
    - Says nothing of `net.backbone` in the arm of a test whose other arm asks `net.module`: it is for the bare model.
    - Says nothing of Lightning where no Trainer of the project is given several devices or a DDP strategy.
    - A repository's own tests.

    ## References
    Two-process runs on torch 2.13 and Lightning 2.6.6, BackboneFinetuning included; Lightning-AI/pytorch-lightning#20340.
    """

    code = "DDP506"
    severity = "data"
    TRIGGERS = (
        (b"requires_grad", b"freeze", b"Finetuning"),
        (b"DistributedDataParallel", b"ightning", b".module"),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        seen: set[int] = set()
        for found in switched_behind(project, module):
            frozen = frozen_in_front(project, found) if found.on and id(found.node) not in seen else None
            if frozen is None or _is_wrapped_again(module, found.node):
                continue
            seen.add(id(found.node))
            what = f"the parameters of {found.path}" if found.path and "*" not in found.path else "parameters of the model"
            yield self.finding(
                module,
                found.node,
                _MESSAGE.format(f"{what} are released"),
                reason=_REASON,
                evidence=[
                    Evidence("static", "they are frozen", frozen[0].path, frozen[1]),
                    Evidence("static", "the model is wrapped", found.inside.module.path, found.inside.wrap.lineno),
                ],
            )
        if module.holds(b"ightning"):
            yield from self._lightning(module, project)

    def _lightning(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        several = runs_on_several(project)
        if several is None:
            return
        shown = Evidence("static", "the Trainer runs several processes", several[0].path, several[1].lineno)
        for call in module.calls_named("BackboneFinetuning"):
            if is_from(qualified(module, call.func), "lightning"):
                text = "BackboneFinetuning releases the parameters of the backbone"
                yield self.finding(module, call, _MESSAGE.format(text), reason=_REASON, evidence=[shown])
        for call in module.calls_named("unfreeze_and_add_param_group", "make_trainable"):
            place = module.method_of(call)
            facts = class_facts(project, module, place[0]) if place is not None else None
            if facts is not None and any(last(n) in ("BaseFinetuning", "BackboneFinetuning") for n in facts.external):
                text = f"`{last(dotted(call.func))}` releases parameters"
                yield self.finding(module, call, _MESSAGE.format(text), reason=_REASON, evidence=[shown])
        yield from self._hooks(module, project, shown)

    def _hooks(self, module: SourceModule, project: Project, shown: Evidence) -> Iterator[Finding]:
        """What a hook of a LightningModule releases on itself."""
        for node in module.nodes(ast.ClassDef):
            facts = class_facts(project, module, node)
            if not facts.is_a(Role.LIGHTNING_MODULE):
                continue
            for name in BEHIND & set(module.methods_of(node)):
                hook = module.methods_of(node)[name]
                for found in of_call(project, FunctionSite(module, hook), None):
                    path = found.target[5:]
                    frozen = frozen_by(project, facts.lineage[0], path, IN_FRONT) if found.on and found.target != "self" else None
                    if frozen is not None and module.function_of(found.node) is not None:
                        place = found.node if _is_in(module, found.node, node) else hook
                        yield self.finding(
                            module,
                            place,
                            _MESSAGE.format(f"the parameters of {path} are released in {name},"),
                            reason=_REASON,
                            evidence=[Evidence("static", "they are frozen", frozen[0].path, frozen[1]), shown],
                        )


def _is_wrapped_again(module: SourceModule, node: ast.AST) -> bool:
    """True where a wrapper is made further down in the function: it takes in what was released."""
    function = module.function_of(node)
    line = getattr(node, "lineno", 0)
    return any(c.lineno > line and module.function_of(c) is function for c in wraps_in(module))


def _is_in(module: SourceModule, node: ast.AST, owner: ast.ClassDef) -> bool:
    return module.class_of(node) is owner
