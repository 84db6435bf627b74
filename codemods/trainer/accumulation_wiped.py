"""DDP607: gradients of earlier micro batches that are wiped before the optimizer's step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import accumulating
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.guard_place import comments_above
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import above, behind
from codemods.analysis.wrapped.passing_on import runs_under_deepspeed
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import AddComment, Applicability, Edit, Evidence, Finding, InsertAfter, InsertBefore, RemoveStatement
from codemods.files.source import SourceModule, stands_above, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_WIPING = lazy(r"(?i)zero|grad|reset|clear|wipe")
_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY
_ASSUMED = "assumes that all micro batches of a step are meant to count; the gradients are as much larger"
_TELL = "wipe the gradients behind the optimizer's step, and nowhere else"
_PREPARED = (
    "wipes the gradients at the head of the micro batch that steps: Accelerate skips it in all the others, so that only the "
    "last micro batch counts, divided by the number of them"
)
_PLAIN = "wipes the gradients in every micro batch: what was accumulated under no_sync is lost, and only the last one counts"


class AccumulationWiped(DdpCodemod):
    """Gradients of earlier micro batches that are wiped before the optimizer's step.

    ## What it does
    Finds `optimizer.zero_grad()` in front of the backward inside `with accelerator.accumulate(model)`, and moves it behind the
    optimizer's step. Finds it, too, at the head of a loop that accumulates under `no_sync`, where every micro batch wipes, and in
    a loop over the micro batches of one step (`for _ in range(steps):`), behind which the optimizer steps.

    ## Why it matters
    A prepared optimizer makes `zero_grad` and `step` in the last micro batch only. In front of the backward the one wipes what
    the others accumulated. Seven of eight batches are computed for nothing, and the step is made of the eighth, divided by eight.

    ## Example
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=8)


    def train(model, optimizer, loader):
        for x, y in loader:
            with accelerator.accumulate(model):
                optimizer.zero_grad()
                accelerator.backward((model(x) - y).square().mean())
                optimizer.step()
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=8)


    def train(model, optimizer, loader):
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward((model(x) - y).square().mean())
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Unsafe: the steps are made of all micro batches from there on, and a learning rate may have been chosen for the old ones.

    ## Refuses
    - Says nothing of `zero_grad` in front of the `with`: there Accelerate still speaks of the batch before, and does it rightly.
    - Says nothing where the Accelerator is given one step, or none, and where it runs under DeepSpeed alone: by every command, or
      because the program asks its `deepspeed_plugin` with no test. The optimizer's `zero_grad` does nothing there.
    - Says nothing of `zero_grad` behind the step, under a test, or of an optimizer that does not step there.
    - Reports a `zero_grad` or a step that shares its line, and a loop with `no_sync` in which a step has no `zero_grad` behind
      it.
    - Says nothing of a loop over `range(n)` in which no loss is divided by `n`: its rounds may be steps of their own.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `AcceleratedOptimizer.zero_grad` (`if self.gradient_state.sync_gradients`); runs on two processes: with four
    micro batches the gradient is a quarter of the last one's.
    """

    code = "DDP607"
    severity = "data"
    subject = "Wipe the gradients behind the step"
    must_show = "The gradient of a step is made of all its micro batches: leaving one of the first out changes it."
    printed = ()
    TRIGGERS = ((b".zero_grad(",), (b"accumulate(", b"no_sync", b"range("), (b"backward(",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for block in module.nodes(ast.With):
            opened = accumulating(project, module, block)
            if opened is not None and not runs_under_deepspeed(project, module.path):
                yield from self._in_block(module, block, opened)
        for loop in module.nodes(ast.For):
            if module.holds(b"no_sync"):
                yield from self._in_loop(module, loop)
            if module.holds(b"range("):
                yield from self._in_rounds(module, loop)

    def _in_block(self, module: SourceModule, block: ast.With, opened: ast.Call) -> Iterator[Finding]:
        for wipe, holder in _wipes(block.body):
            steps = _steps(module, block, holder)
            if not _is_before(module, block, wipe, steps):
                continue
            edits: list[Edit] = []
            if len(steps) == 1 and module.is_whole(wipe) and module.is_whole(step := module.statement_of(steps[0])):
                edits += _taken_out(module, wipe)
                if not _is_wiped_behind(module, step, holder):
                    edits.append(InsertAfter(module.path, module.span(step), module.text_of(wipe)))
            yield self.finding(
                module,
                wipe,
                f"`{holder}.zero_grad()` {_PREPARED}",
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                evidence=[Evidence("static", "micro batches are accumulated here", module.path, opened.lineno)],
                reason=_ASSUMED if edits else _TELL,
            )

    def _in_loop(self, module: SourceModule, loop: ast.For) -> Iterator[Finding]:
        quiet = [n for n in _below(loop) if isinstance(n, ast.Attribute) and n.attr == "no_sync"]
        for wipe, holder in _wipes(loop.body) if quiet else ():
            steps = _steps(module, loop, holder)
            counted = [s for s in steps if _is_counted(module, s, loop)]
            if not counted or not _is_before(module, loop, wipe, steps):
                continue
            clean = all(_is_wiped_behind(module, module.statement_of(s), holder) for s in steps)
            edits = _taken_out(module, wipe) if clean and module.is_whole(wipe) else []
            yield self.finding(
                module,
                wipe,
                f"`{holder}.zero_grad()` {_PLAIN}",
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                evidence=[Evidence("static", "gradients are accumulated under no_sync", module.path, quiet[0].lineno)],
                reason=_ASSUMED if edits else _TELL,
            )

    def _in_rounds(self, module: SourceModule, loop: ast.For) -> Iterator[Finding]:
        """A loop over the micro batches of one step, which is made behind it."""
        for wipe, holder in _wipes(loop.body) if _is_of_micro_batches(loop) else ():
            passes = [n for n in _below(loop) if isinstance(n, ast.Attribute) and n.attr == "backward"]
            if _steps(module, loop, holder) or not any(stands_above(wipe, p) for p in passes):
                continue
            later = (n for s in behind(module, loop) for n in (s, *walk_scope(s)) if isinstance(n, ast.Call))
            steps = [c for c in later if _is_step_of(c, holder)]
            if not steps or any(stands_above(p, wipe) for p in passes):
                continue
            edits = _taken_out(module, wipe) if module.is_whole(wipe) else []
            if edits and not any(name == holder for _, name in (*_wipes(above(module, loop)), *_wipes(behind(module, loop)))):
                edits.append(InsertBefore(module.path, module.span(loop), module.text_of(wipe)))
            yield self.finding(
                module,
                wipe,
                f"`{holder}.zero_grad()` wipes the gradients in every micro batch of the step in line {steps[0].lineno}: only "
                "the last one counts, divided by the number of them",
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                evidence=[
                    Evidence("static", "the micro batches of a step", module.path, loop.lineno),
                    Evidence("static", "the step behind them", module.path, steps[0].lineno),
                ],
                reason=_ASSUMED if edits else _TELL,
            )


def _is_of_micro_batches(loop: ast.For) -> bool:
    """True for `for _ in range(steps):` in which the loss is divided by the steps."""
    counted = loop.iter
    if not isinstance(counted, ast.Call) or dotted(counted.func) not in ("range", "trange") or len(counted.args) != 1:
        return False
    many = dotted(counted.args[0])
    return bool(many) and _divides_the_loss(loop, many)


def _divides_the_loss(loop: ast.For, many: str) -> bool:
    """True where what goes backward in the loop is divided by the number, by itself or by the name that it is given."""
    named: set[str] = set()
    for node in _below(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and dotted(node.value) == many:
            named.add(dotted(node.target))
        elif isinstance(node, ast.Assign) and _has_divisor(node.value, many):
            named |= {dotted(t) for t in node.targets}
    for call in (n for n in _below(loop) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            of = [n for part in (call.func.value, *call.args) for n in ast.walk(part)]
            if any(dotted(n) in named - {""} for n in of) or any(_has_divisor(n, many) for n in of):
                return True
    return False


def _has_divisor(node: ast.AST, many: str) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and dotted(node.right) == many


def _taken_out(module: SourceModule, wipe: ast.stmt) -> list[Edit]:
    """The wipe without the comment above it that speaks of it; any other comment stays, above what comes next."""
    edits: list[Edit] = [RemoveStatement(module.path, module.span(wipe))]
    others = tuple(text for text in comments_above(module, wipe) if not _OF_WIPING.search(text))
    block = module.block_of(wipe)
    behind = block[block.index(wipe) + 1 :]
    return [*edits, AddComment(module.path, module.span(behind[0]), others)] if others and behind else edits


def _wipes(body: list[ast.stmt]) -> Iterator[tuple[ast.Expr, str]]:
    """The plain `x.zero_grad()` among the statements, with what `x` is; in blocks such as `with autocast():`, too."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _wipes(statement.body)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        called = statement.value.func
        if isinstance(called, ast.Attribute) and called.attr == "zero_grad" and (holder := dotted(called.value)):
            yield statement, holder


def _below(owner: ast.For | ast.With) -> list[ast.AST]:
    return list(walk_scope(owner))


def _steps(module: SourceModule, owner: ast.For | ast.With, holder: str) -> list[ast.Call]:
    """The calls in the block that step the optimizer: `optimizer.step()`, `scaler.step(optimizer)`."""
    inside = [n for n in _below(owner) if isinstance(n, ast.Call) and last(dotted(n.func)) == "step"]
    return [c for c in inside if _is_step_of(c, holder)]


def _is_step_of(call: ast.Call, holder: str) -> bool:
    if last(dotted(call.func)) != "step":
        return False
    return dotted(call.func) == f"{holder}.step" or any(dotted(a) == holder for a in call.args)


def _is_before(module: SourceModule, owner: ast.For | ast.With, wipe: ast.stmt, steps: list[ast.Call]) -> bool:
    """True if a backward stands between the wipe and the first step, and no step in front of it."""
    if not steps or any(stands_above(s, wipe) for s in steps):
        return False
    passes = [n for n in _below(owner) if isinstance(n, ast.Attribute) and n.attr == "backward"]
    return any(stands_above(wipe, p) and any(stands_above(p, s) for s in steps) for p in passes)


def _is_counted(module: SourceModule, step: ast.Call, loop: ast.For) -> bool:
    """True where the step is made in some rounds of the loop only, by the counter."""
    for up in module.ancestors(step):
        if up is loop:
            return False
        if isinstance(up, ast.If) and any(isinstance(n, ast.Mod) for n in ast.walk(up.test)):
            return True
    return False


def _is_wiped_behind(module: SourceModule, step: ast.stmt, holder: str) -> bool:
    block = module.block_of(step)
    behind = block[next(i for i, s in enumerate(block) if s is step) + 1 :]
    return any(name == holder for _, name in _wipes(behind))
