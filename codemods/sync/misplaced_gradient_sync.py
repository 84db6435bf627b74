"""DDP313: DDP's average of the gradients is switched behind the forward, or for the wrong micro batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.positions import above
from codemods.analysis.wrapped.quiet_steps import Quiet, quiet_steps
from codemods.analysis.wrapped.sync_switches import FLAG, Inverted, Late, inverted_switches, late_switches, opposite
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertBefore, RemoveStatement, ReplaceExpression
from codemods.files.source import SourceModule, line_of, walk
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class MisplacedGradientSync(DdpCodemod):
    """A switch of DDP's average that comes behind the forward, or that leaves out the micro batch that steps.

    ## What it does
    Finds `model.require_backward_grad_sync = ...` between the forward and the backward of a micro batch, and moves it in front of
    the forward. Finds a condition that is the opposite of the one under which the optimizer steps
    (`model.require_backward_grad_sync = i % n != 0`, `model.no_sync() if i % n == 0`), and takes that one. Reports a loop over
    all micro batches of a step that stands under `model.no_sync()`.

    ## Why it matters
    DDP looks at the flag in the forward, which arms the average of the backward. Set behind it, the flag decides over the next
    micro batch: the last one of a step, whose gradients the optimizer takes, is not averaged. So it is where the condition is
    inverted. Each rank steps by gradients of its own, and the copies of the model drift apart. Nothing fails, and rank 0's loss
    looks well.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel


    def train(net, batches, optimizer, steps):
        model = DistributedDataParallel(net)
        for micro, batch in enumerate(batches):
            loss = model(batch).mean() / steps
            model.require_backward_grad_sync = micro == steps - 1
            loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel


    def train(net, batches, optimizer, steps):
        model = DistributedDataParallel(net)
        for micro, batch in enumerate(batches):
            model.require_backward_grad_sync = micro == steps - 1
            loss = model(batch).mean() / steps
            loss.backward()
        optimizer.step()
    ```

    ## Safety
    Unsafe: the weights of a run become others, and checkpoints of the old run hold those of rank 0 alone.

    ## Refuses
    - Says nothing of a flag that is set to True or False as such: what is switched there is not seen.
    - Says nothing where a forward of the wrapper stands behind the switch, or a backward in front of it, in the same round.
    - Says nothing of a condition whose names change between the switch and the step.
    - Says nothing of conditions that do not count (`%`), and of those that are written in another way than the step's.
    - Reports a switch that cannot be moved as a line: under a test with other lines or comments, or of what is worked out
      between.
    - Says nothing of a loop under `no_sync()` where a test or an exit stands over the step, another backward pass comes before
      it, the file steps two optimizers, or gradients or weights are averaged by hand.
    - Reports such a loop without a fix: its last micro batch has to run outside of the block.
    - A repository's own tests.

    ## References
    `DistributedDataParallel.no_sync` (torch 2.13): "The forward pass should be included inside the context manager". Runs on two
    gloo processes: the gradients of the ranks differ behind the last micro batch.
    """

    code = "DDP313"
    severity = "data"
    subject = "Average the gradients of the micro batch that steps"
    must_show = "After some steps on two processes the weights are the same on both."
    printed = ()
    TRIGGERS = ((b"require_backward_grad_sync", b"no_sync"), (b"backward(", b".step("))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for late in late_switches(module):
            yield self._late(module, late)
        for inverted in inverted_switches(module):
            yield self._inverted(module, inverted)
        for quiet in quiet_steps(project, module):
            yield self._quiet(module, quiet)

    def _late(self, module: SourceModule, found: Late) -> Finding:
        edits = _moved(module, found)
        return self.finding(
            module,
            found.switch,
            f"`{FLAG}` is set behind the forward of line {found.forward.lineno}, and DDP looks at it in the forward: it decides "
            "over the next micro batch, and the last one of a step is not averaged over the ranks: their weights drift apart",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the forward, which arms the average", module.path, found.forward.lineno),
                Evidence("static", "the backward that it is meant for", module.path, found.backward.lineno),
            ],
            reason="assumes that nothing goes by the weights of the old run" if edits else "set it in front of the forward",
        )

    def _inverted(self, module: SourceModule, found: Inverted) -> Finding:
        text = " ".join(module.text_of(found.test).split())
        right = text if found.averages else ast.unparse(opposite(found.test) or ast.UnaryOp(ast.Not(), found.test))
        edits = [ReplaceExpression(module.path, module.span(found.node), right)] if "\n" not in module.text_of(found.node) else []
        return self.finding(
            module,
            found.node,
            f"the gradients are averaged in every micro batch but the one that is followed by a step (`{text}`): each rank steps "
            "by gradients of its own, and their weights drift apart",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the step is made under this test", module.path, line_of(found.test)),
                Evidence("static", "the step", module.path, found.step.lineno),
            ],
            reason="assumes that the test over the step is the one that is meant" if edits else f"average where `{text}`",
        )

    def _quiet(self, module: SourceModule, found: Quiet) -> Finding:
        return self.finding(
            module,
            found.quiet,
            f"all micro batches run under `{found.wrapper}.no_sync()`, the last one too: the step in line {found.step.lineno} "
            "takes gradients that no rank has averaged, and the weights of the ranks drift apart without an error",
            evidence=[
                Evidence("static", "the backward pass of each micro batch", module.path, found.backward.lineno),
                Evidence("static", "the step, with no other backward pass in front of it", module.path, found.step.lineno),
            ],
            reason="run the last micro batch of a step outside of `no_sync()`, its forward and its backward",
        )


def _moved(module: SourceModule, found: Late) -> list[Edit]:
    """The switch in front of the statement with the forward; nothing where it does not stand by itself."""
    statement: ast.stmt = found.switch
    code = module.text_of(statement)
    up = module.parent(statement)
    if isinstance(up, ast.If) and up.body == [statement] and not up.orelse and "#" not in module.text_of(up):
        statement, code = up, f"if {module.text_of(up.test)}:\n    {code}"
    earlier = above(module, statement)
    first = next((i for i, s in enumerate(earlier) if any(n is found.forward for n in walk(s))), None)
    if first is None or not all(module.is_whole(s) for s in (statement, earlier[first])) or "\n" in module.text_of(found.switch):
        return []
    read = {dotted(n) for n in walk(statement) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)}
    given = {
        dotted(n)
        for s in earlier[first:]
        for n in walk(s)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)
    }
    if read & given:
        return []
    return [
        RemoveStatement(module.path, module.span(statement)),
        InsertBefore(module.path, module.span(earlier[first]), code),
    ]
