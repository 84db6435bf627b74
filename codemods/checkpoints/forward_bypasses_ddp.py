"""DDP504: a forward with gradients that goes past the DDP wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.short_texts import short
from codemods.analysis.wrapped.by_hand_averages import averages_by_hand
from codemods.analysis.wrapped.dropped_behind import dropped_behind
from codemods.analysis.wrapped.losses import Backward, Behind, backward_passes, only_looks_at_gradients
from codemods.analysis.wrapped.past_wrapper import past_the_wrapper, run_by_getter
from codemods.analysis.wrapped.skipped_rounds import skipped_round
from codemods.analysis.wrapped.thrown_away import thrown_away
from codemods.analysis.wrapped.unrun_wraps import Unrun, unrun_wraps
from codemods.analysis.wrapped.wraps import Held
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import UNUSED
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY
_UNRUN = (
    "wrap what is run: a module that holds the trained layers and whose forward calls {0}; or average the gradients of these "
    "layers by hand before each optimizer step"
)
_DROPPED = "keep the wrapper and call it in training; ask `.module` of it where something is asked of the model inside"


class ForwardBypassesDdp(DdpCodemod):
    """A training forward of the module inside the DDP wrapper.

    ## What it does
    Follows the loss from `backward()` to the calls it is made of. Where these are calls of the module inside (`ddp.module(x)`,
    `unwrap_model(ddp)(x)`, a method of it, the variable that was wrapped, a field that is `net.module` where several processes
    run and else `net`) and none of the wrapper, the plain call becomes one of the wrapper. A method is reported: the wrapper runs
    `forward` and nothing else. So is `ddp.loss(x)` where the project's own class of the wrapper looks attributes up in the module
    inside (`__getattr__`).

    Reports a wrapper that nobody calls, too: one round the layers of a model that is run itself (`Layers(net.attn_processors)`),
    one round a network that `apply_to` puts into other models, and one of which only the module inside is kept
    (`nets = [DDP(n).module for n in nets]`, `self.net = self.net.module` behind the wrap).

    ## Why it matters
    DDP gets ready to average the gradients in the forward of the wrapper. Without it the backward pass averages nothing: each
    rank trains on its own data, the weights drift apart without an error, and rank 0 saves what it learned from its own share.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, loader, loss_fn, optimizer):
        model = DDP(net)
        for x, y in loader:
            loss = loss_fn(model.module(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, loader, loss_fn, optimizer):
        model = DDP(net)
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Safety
    Unsafe: the result changes, as the gradients are averaged from there on, and parameters that this forward leaves out stop the
    wrapper in its second step.

    ## Refuses
    - Says nothing of a forward under `no_grad` or `inference_mode`, and of one whose result is detached: evaluation, targets.
    - Says nothing where the loss is made of a call of a wrapper too: that one makes DDP ready, and all gradients are averaged.
      One that `prepare` put round another model does not, where the optimizer that steps next is the first model's.
    - Says nothing of a method of a plain object that the module keeps (a schedule): no parameter runs in it.
    - Says nothing where a wrapper is handed to a function that is not followed, but one that gives it back under its name
      (`net, optimizer = amp.initialize(net, optimizer)`): that one has not run it.
    - Says nothing of a helper that takes the wrapper away where the other arm of a test for several processes runs the wrapper.
    - Says nothing of a backward pass without an optimizer step in the file, of one for the gradient of an input, and of one in a
      function that sets the model to evaluation and has no optimizer (Grad-CAM).
    - Says nothing where the project averages gradients itself.
    - Says nothing of what rank 0 does alone, and of DataParallel, whose module is trained in either way.
    - Says nothing of a wrapper round layers that is handed on, kept or called anywhere, or whose model is wrapped, too.
    - Reports a method of the module inside, a part of it, and a module that came as an argument; of several such calls of one
      model behind one loss the first.
    - Reports `model = model.module`, after which no name holds the wrapper.
    - Reports a call behind a `continue` or `break` that a rank takes by what its round holds: with the wrapper the others wait.
    - A repository's own tests.

    ## References
    Two-process runs on torch 2.13: `ddp.module(x)` and methods of the module leave the gradients as they are, `ddp.forward(x)`
    averages them.
    """

    code = "DDP504"
    severity = "data"
    subject = "Train through the DDP wrapper"
    must_show = "After some steps on two processes the weights of both agree."
    printed = UNUSED
    TRIGGERS = (
        (b".backward(", b"scaler(", b".setup(", b".module\n", b".module\r"),
        (b".step(", b"scaler(", b"apply_to(", b").module", b".module\n", b".module\r"),
        (b"DistributedDataParallel", b".module", b"unwrap", b"model", b"net"),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not _is_possible(project):
            return
        done: set[tuple[str, int, int]] = set()
        told: set[ast.Call] = set()
        passed: set[tuple[ast.Call, ast.Call]] = set()
        for one in backward_passes(module):
            if not _trains(module, one) and left(module, one.call, "no step of an optimizer is seen behind this backward pass"):
                continue
            way_past = past_the_wrapper(project, one)
            if not way_past:
                left(module, one.call, "the loss is not seen to come past a wrapper, or the wrapper takes part in it")
            for past, inside, node in sorted(way_past, key=lambda w: (w[0].module.path, *_place(w[0].call))):
                key = (past.module.path, *_place(past.call))
                if averages_by_hand(project) and left(module, one.call, "the project averages gradients by hand"):
                    continue
                if key in done:
                    continue
                done.add(key)
                finding = self._tell(module, one, past, inside, node)
                if finding.edits or (one.call, inside.wrap) not in passed:  # a report asks for a change at one place
                    yield finding
                passed.add((one.call, inside.wrap))
                told.add(inside.wrap)
        yield from self._unrun(module, project)
        yield from self._thrown_away(module, project, told)

    def _thrown_away(self, module: SourceModule, project: Project, told: set[ast.Call]) -> Iterator[Finding]:
        for kept, wrap, one in (*thrown_away(project, module), *dropped_behind(project, module)):
            if wrap in told or not _trains(one.module, one, elsewhere=True) or averages_by_hand(project):
                continue
            told.add(wrap)
            where = f"line {one.call.lineno}" if one.module is module else f"{one.module.path}:{one.call.lineno}"
            message = (
                f"`{short(module, kept)}` keeps the module inside and drops the DDP wrapper: nothing can call the wrapper, so "
                f"the backward pass in {where} averages no gradients, and the weights of the ranks drift apart without an error"
            )
            evidence = [Evidence("static", "the backward pass", one.module.path, one.call.lineno)]
            yield self.finding(module, kept, message, evidence=evidence, reason=_DROPPED)

    def _unrun(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """The first wrapper that nobody runs, while what it wraps is run inside of another model."""
        told = False
        for one in unrun_wraps(project, module):
            if told or averages_by_hand(project) or not _takes_steps(project, module, one):
                continue
            told = True
            at = one.run.call if one.run is not None else one.wrap
            inside = "its layers run inside of the models that they are put into"
            where = f"the loss comes from `{one.model}(...)`" if one.model else inside
            message = (
                f"nothing calls `{one.name}`, the DDP wrapper that line {one.wrap.lineno} makes: {where}, so the backward pass "
                "averages no gradients, and the weights of the ranks drift apart without an error"
            )
            evidence = [Evidence("static", "it is wrapped, and nobody calls it", module.path, one.wrap.lineno)]
            yield self.finding(module, at, message, evidence=evidence, reason=_UNRUN.format(one.model or "the model that runs"))

    def _tell_taken(self, module: SourceModule, one: Backward, past: Behind, inside: Held, taken: ast.stmt) -> Finding:
        name, text = inside.wrapper, short(past.module, past.call.func)
        here = past.module is module
        where = "" if here else f" ({past.module.path}:{taken.lineno})"
        message = (
            f"`{short(past.module, taken)}`{where} takes the DDP wrapper away: `{text}(...)` in line {past.call.lineno} trains "
            "the module inside, no gradients are averaged, and the weights of the ranks drift apart without an error"
        )
        ask = f"accelerator.unwrap_model({name})" if inside.prepared else f"{name}.module"
        line = "this line" if here else "that line"
        reason = f"leave {line} out, and write `{ask}` where something is asked of the model inside (`{ask}.config`)"
        evidence = [
            Evidence("static", "the model is wrapped", inside.module.path, inside.wrap.lineno),
            Evidence("static", "the loss is made of this call, and of no wrapper", past.module.path, past.call.lineno),
            Evidence("static", "the backward pass", module.path, one.call.lineno),
        ]
        return self.finding(module, taken if here else one.call, message, evidence=evidence, reason=reason)

    def _tell(self, module: SourceModule, one: Backward, past: Behind, inside: Held, node: ast.expr) -> Finding:
        text = short(past.module, (run_by_getter(past.module, past.call) or past.call).func)
        if (taken := _taken_away(past.module, node, inside)) is not None:
            return self._tell_taken(module, one, past, inside, taken)
        edits, reason = _repair(past, inside, node)
        here = past.module is module
        where = "" if here else f" ({past.module.path}:{past.call.lineno})"
        message = (
            f"`{text}(...)`{where} goes past the DDP wrapper: the backward pass in line {one.call.lineno} averages no "
            "gradients, and the weights of the ranks drift apart without an error"
        )
        return self.finding(
            module,
            past.call if here else one.call,
            message,
            level=_UNSAFE if edits and here else _DISPLAY,
            edits=edits if here else (),
            evidence=[
                Evidence("static", "the model is wrapped", inside.module.path, inside.wrap.lineno),
                Evidence("static", "the loss is made of this call, and of no wrapper", past.module.path, past.call.lineno),
                Evidence("static", "the backward pass", module.path, one.call.lineno),
            ],
            reason=reason,
        )


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _taken_away(module: SourceModule, node: ast.expr, inside: Held) -> ast.stmt | None:
    """`model = model.module`: the statement after which no name holds the wrapper."""
    if not isinstance(node, ast.Name) or inside.wrapper != node.id:
        return None
    bound = [b.node for b in bindings_in(module, module.function_of(node), node.id) if b.value is not None and not b.part]
    above = [b for b in bound if isinstance(b, ast.Assign) and b.lineno < node.lineno and _names(b.value, node.id)]
    return above[-1] if above else None


def _names(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))


def _is_possible(project: Project) -> bool:
    """False where no file wraps a model: most projects, at the price of one look at the bytes."""
    return any(project.files_containing(word) for word in (b"DistributedDataParallel", b".prepare(", b".setup("))


def _trains(module: SourceModule, one: Backward, *, elsewhere: bool = False) -> bool:
    """True where an optimizer steps (elsewhere: in any file), and the pass is not for the gradient of an input (`x.grad`)."""
    if not elsewhere and not module.calls_named("step") and not one.steps:
        return False
    function = module.function_of(one.call)
    if function is not None and not one.steps and only_looks_at_gradients(module, function):
        return False
    for read in module.reads_of("grad"):
        if isinstance(read, ast.Attribute) and module.function_of(read) is function and isinstance(read.value, ast.Name):
            if not any("param" in module.text_of(source) for source in _gone_through(module, read)):
                return False
    return True


def _takes_steps(project: Project, module: SourceModule, one: Unrun) -> bool:
    """True where an optimizer steps: in the file, or in one that trains what others make."""
    if one.run is not None:
        return bool(module.calls_named("step"))
    return any(not is_test_file(p) for p in project.files_containing(b"backward(") if b".step(" in (project.read(p) or b""))


def _gone_through(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    """What the loops and comprehensions round a place go through."""
    for up in module.ancestors(node):
        if isinstance(up, ast.For):
            yield up.iter
        yield from (part.iter for part in getattr(up, "generators", ()))


def _repair(past: Behind, inside: Held, node: ast.expr) -> tuple[list[Edit], str]:
    func = past.call.func
    plain = func is node or (isinstance(func, ast.Attribute) and func.attr == "forward" and func.value is node)
    if not plain:
        name = func.attr if isinstance(func, ast.Attribute) else dotted(func)
        return [], (
            f"the wrapper runs `forward` alone: let forward of the model make what `{name}` makes (by an argument, or in a "
            "module that holds the model), and call the wrapper"
        )
    if not inside.wrapper:
        return [], "call the wrapper instead; it was given another name, or is not known by one here"
    if (skip := skipped_round(past.module, past.call)) is not None:
        return [], (
            f"call the wrapper instead, once every rank comes here equally often: line {skip.lineno} skips a round by what this "
            "rank has, and the backward pass of the wrapper then waits for the rank that skips"
        )
    edits: list[Edit] = [ReplaceExpression(past.module.path, past.module.span(func), inside.wrapper)]
    return edits, "assumes that every rank comes here equally often, and that this forward uses every parameter"
