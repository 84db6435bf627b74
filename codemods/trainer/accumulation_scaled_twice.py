"""DDP606: a loss that is divided by the accumulation steps before a backward that divides it again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum, auto

from codemods.analysis.accelerators import Made, accumulation, is_one, made_by
from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.accumulation_in_steps import returned_losses, trainer_steps
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, RemoveStatement, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_Division = ast.BinOp | ast.AugAssign
_OWN = "gradient_accumulation_steps"
_SETTINGS = (".yaml", ".yml", ".json")
_COMMANDS = (".sh", ".md")
_KINDS = ("distributed_type", "deepspeed", "DEEPSPEED")
_ASSUMED = (
    "assumes that the learning rate and the clipping were not chosen for the smaller gradient; numbers that are made of the "
    "divided loss below grow by the same factor"
)
_AS_SHIPPED = "changes nothing with the one step that the commands of the project give"
_TOO_SMALL = "the gradients are that many times too small"
_WITH_MORE = f"with more than the one step that the commands of the project give, {_TOO_SMALL}"


class _Shipped(Enum):
    """The accumulation steps as a project ships them. ONE_SO_FAR: its commands alone give the number, and 1 each time."""

    ANY = auto()
    ONE_SO_FAR = auto()
    ALWAYS_ONE = auto()


@record
class _Twice:
    """divided: the project's division. name: that of the number. again: the other division, in words. divider: who makes it."""

    divided: _Division
    name: str
    again: str
    divider: str
    evidence: tuple[Evidence, ...]


class AccumulationScaledTwice(DdpCodemod):
    """A loss that is divided by the accumulation steps before a backward that divides it again.

    ## What it does
    Finds `accelerator.backward(loss)` where the loss was divided by the number of accumulation steps that the Accelerator was
    given too, and takes that division out. Does the same for the loss that a LightningModule's `training_step` returns, where the
    Trainer is given the steps.

    ## Why it matters
    `accelerator.backward` divides by the steps itself, and so do the DeepSpeed engine behind it and Lightning. The gradients
    are that many times too small. Adam hides it from its steps, but clipping never acts, weight decay and SGD are off by that
    factor, and the loss that is logged below is too small as well.

    ## Example
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=8)


    def train(model, optimizer, loader):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = (model(x) - y).square().mean()
                loss = loss / 8
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=8)


    def train(model, optimizer, loader):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = (model(x) - y).square().mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Safety
    Unsafe: the gradients grow by the number of steps, and a learning rate that was tuned to the small ones may be too high.

    ## Refuses
    - Says nothing where the Accelerator was not given the steps, was given 1, or another number than the loss is divided by.
    - Says nothing of manual optimization in Lightning, and where one of the project's Trainers is not given the steps.
    - Says nothing where it is not seen how the Accelerator is made, or where `**options` may hold the steps.
    - Says nothing where the settings of the project give the number, and all settings and commands give 1. Where commands alone
      do, it is a risk: the next one may give another number.
    - Says nothing of `loss.backward()` and of Fabric's `backward`, which divide nothing.
    - Says nothing under a test of what kind of run it is (`distributed_type`), where one kind may divide and the other not.
    - Reports a division that is one part of a longer expression.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `Accelerator.backward`: `loss = loss / self.gradient_accumulation_steps`, and for DeepSpeed
    `engine.backward`, which divides by the engine's steps. Lightning 2.6, `ClosureResult.from_training_step_output`. A run on
    two processes: with 4 steps the gradients are a quarter.
    """

    code = "DDP606"
    severity = "data"
    subject = "Divide the loss by the accumulation steps once"
    must_show = "A step over several micro batches moves the weights as far as one over a batch of all their samples."
    printed = ()
    TRIGGERS = ((b".backward(", b"def training_step("), (b"ccelerat", b"ightning"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"Accelerator(") or project.files_containing(b"accumulate_grad_batches"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        told: set[int] = set()
        for found in (*_in_backward(project, module), *_in_step(project, module)):
            shipped = _as_shipped(project, found.name)
            if id(found.divided) not in told and shipped is not _Shipped.ALWAYS_ONE:
                told.add(id(found.divided))
                yield self._tell(module, found, so_far_one=shipped is _Shipped.ONE_SO_FAR)

    def _tell(self, module: SourceModule, found: _Twice, *, so_far_one: bool) -> Finding:
        edits = _repair(module, found.divided)
        assumed = _AS_SHIPPED if so_far_one else _ASSUMED
        return self.finding(
            module,
            found.divided,
            f"the loss is divided by `{module.text_of(_divisor(found.divided))}` here, and {found.again} again: "
            f"{_WITH_MORE if so_far_one else _TOO_SMALL}",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=found.evidence,
            reason=assumed if edits else f"take the division out: {found.divider} makes it",
            severity="risk" if so_far_one else "",
        )


def _in_backward(project: Project, module: SourceModule) -> Iterator[_Twice]:
    """The losses of `accelerator.backward(loss)`."""
    for call in module.calls_named("backward"):
        if not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        divided = _division(module, call.args[0], call)
        steps = _steps(project, module, call.func.value, _divisor(divided)) if divided is not None else None
        if divided is None or steps is None or _by_kind(module, divided, call):
            continue
        evidence = (
            Evidence("static", "the Accelerator is given the steps", steps.module.path, steps.call.lineno),
            Evidence("static", "the backward that divides", module.path, call.lineno),
        )
        again = f"`{dotted(call.func)}` divides it by the accumulation steps"
        yield _Twice(divided, last(dotted(_divisor(divided))), again, "the backward", evidence)


def _in_step(project: Project, module: SourceModule) -> Iterator[_Twice]:
    """The losses that the `training_step` of a LightningModule returns."""
    if not project.files_containing(b"accumulate_grad_batches"):
        return
    for node, loss in returned_losses(project, module):
        divided = _division(module, loss, node)
        given = trainer_steps(project, module, _divisor(divided)) if divided is not None else None
        if divided is None or given is None:
            continue
        evidence = (
            Evidence("static", "the Trainer is given the steps", given.module.path, given.call.lineno),
            Evidence("static", "the loss that it divides", module.path, node.lineno),
        )
        again = "Lightning divides what `training_step` returns by `accumulate_grad_batches`"
        yield _Twice(divided, given.name, again, "the Trainer", evidence)


def _division(module: SourceModule, loss: ast.expr, call: ast.Call | ast.Return) -> _Division | None:
    """The division that the loss is the result of, in the call or in an assignment above it."""
    if isinstance(loss, ast.Name):
        scope = module.function_of(call)
        above = [b for b in bindings_of(module, loss) if _line(b) <= call.lineno]
        for bound in sorted(above, key=lambda b: (_line(b), getattr(b.node, "col_offset", 0)), reverse=True):
            if module.function_of(bound.node) is not scope:
                continue
            if isinstance(bound.node, ast.AugAssign) and isinstance(bound.node.op, ast.Div):
                return bound.node
            if isinstance(bound.value, ast.BinOp) and isinstance(bound.value.op, ast.Div):
                return bound.value
            if not bound.parameter and not isinstance(bound.node, ast.AugAssign) and not _names(bound.value, loss.id):
                return None
        return None
    return loss if isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Div) else None


def _line(bound: Binding) -> int:
    return getattr(bound.node, "lineno", 0)


def _names(value: ast.expr | None, name: str) -> bool:
    return value is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))


def _divisor(divided: _Division) -> ast.expr:
    return divided.right if isinstance(divided, ast.BinOp) else divided.value


def _steps(project: Project, module: SourceModule, holder: ast.expr, divisor: ast.expr) -> Made | None:
    """The Accelerator that divides by the same number; None where that is not shown of each that it may be."""
    if "ccelerat" not in module.text_of(holder) and not module.holds(b"Accelerator("):
        return None
    found = made_by(project, module, holder)
    for made in found:
        given = accumulation(project, made)
        if given is None or is_one(given[1]) or not _is_same(given[0], given[1], module, divisor):
            return None
    return found[0] if found else None


def _is_same(there: SourceModule, given: ast.expr, here: SourceModule, divisor: ast.expr) -> bool:
    name = last(dotted(divisor))
    if name == _OWN and "accelerator" in dotted(divisor).lower():
        return True
    if name:
        return name == last(dotted(given))
    return " ".join(here.text_of(divisor).split()) == " ".join(there.text_of(given).split())


def _as_shipped(project: Project, name: str) -> _Shipped:
    """How many steps the files of the project give by that name."""
    settings, commands = _given(project, name, _SETTINGS), _given(project, name, _COMMANDS)
    if not (settings or commands) or any(v != b"1" for v in (*settings, *commands)):
        return _Shipped.ANY
    return _Shipped.ALWAYS_ONE if settings else _Shipped.ONE_SO_FAR


def _given(project: Project, name: str, kinds: tuple[str, ...]) -> list[bytes]:
    """The numbers that the files of these kinds give by that name."""
    if not name:
        return []
    given = re.compile(rb"(?:\b|--)" + re.escape(name.encode()) + rb"[\"']?[ ]*[ :=][ ]*[\"']?(\d+)")
    texts = (project.read(p) or b"" for p in project.files_containing(name.encode(), kinds=kinds))
    return [v for text in texts for v in given.findall(text)]


def _by_kind(module: SourceModule, divided: ast.AST, call: ast.Call) -> bool:
    """True where a test of the kind of run decides over the division or the backward."""
    for node in (divided, call):
        for up in module.ancestors(node):
            if isinstance(up, (ast.If, ast.IfExp)) and any(word in module.text_of(up.test) for word in _KINDS):
                return True
    return False


def _repair(module: SourceModule, divided: _Division) -> list[Edit]:
    statement = module.statement_of(divided)
    if isinstance(divided, ast.AugAssign):
        return [RemoveStatement(module.path, module.span(divided))] if module.is_whole(divided) else []
    if isinstance(statement, ast.Assign) and statement.value is divided and isinstance(divided.left, ast.Name):
        if len(statement.targets) == 1 and dotted(statement.targets[0]) == divided.left.id and module.is_whole(statement):
            return [RemoveStatement(module.path, module.span(statement))]
    text = module.text_of(divided.left)
    return [] if "\n" in text else [ReplaceExpression(module.path, module.span(divided), text)]
