"""DDP507: attributes and methods of the model that are asked of the wrapper round it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.wrapped.asked_in_callee import asked_in_callee
from codemods.analysis.wrapped.asked_in_trainer import InTrainer, asked_in_trainer, level_in_trainer, speaks_of_steps
from codemods.analysis.wrapped.asked_of_wrapper import Asked, asked_here, names_of_wrapper
from codemods.analysis.wrapped.asked_together import whole_groups
from codemods.analysis.wrapped.handed_to_pipelines import handed_to_pipelines
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.loss_parts import LossParts
from codemods.analysis.wrapped.losses import is_quiet
from codemods.analysis.wrapped.made_models import is_named_in
from codemods.analysis.wrapped.made_objects import may_hold_wrapper
from codemods.analysis.wrapped.way_inside import way_inside
from codemods.analysis.wrapped.weight_reads import is_weight_read
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.data.wrapper_attributes import QUIET
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_OF_WEIGHTS = frozenset({"state_dict", "load_state_dict", "parameters", "named_parameters", "save_pretrained", "requires_grad_"})
_SAFE, _UNSAFE, _DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


class AttributeOfWrapper(DdpCodemod):
    """An attribute or a method of the model that is asked of the DDP wrapper round it.

    ## What it does
    Follows what `DistributedDataParallel(model)` and `accelerator.prepare(model)` give, through names, fields, lists, loops and
    calls, to the places where something is read that the model has and the wrapper has not, and asks the model inside instead.
    So with `hasattr(model, "x")`, which is False for the wrapper, in a function that is handed it as well, or that such a one
    hands it on to (the class is seen, or the networks of the program have such a method); with a write
    that the model inside does not see, with
    `model.module` where one process does not wrap, or where a setting leaves the model bare that is not asked there, and with a
    test of the number of GPUs that stands for one of the wrapper.

    So with an average of the weights that goes by name: `average[name]` in a loop over the `named_parameters()` of the wrapper,
    whose names all begin with `module.`, where the average is a copy of the bare model.

    So with a wrapper that is handed to `from_pretrained` of a pipeline of diffusers (`unet=unet`), which refuses its class.

    A Hugging Face Trainer hands the wrapper to `training_step` and `compute_loss`, too: what is asked there, or in a method of
    the class that is handed it, is asked of `self.model`.

    ## Why it matters
    The wrapper has `forward`, `parameters`, `state_dict` and little else. Accelerate wraps with several processes only: a program
    that was written on one GPU ends with `'DistributedDataParallel' object has no attribute 'config'` on two, often only where
    the first checkpoint is written, when hours are gone and the other ranks wait.

    ## Example
    ```python
    from accelerate import Accelerator
    from transformers import AutoModel


    def main(folder):
        accelerator = Accelerator()
        model = AutoModel.from_pretrained("bert-base-uncased")
        model = accelerator.prepare(model)
        model.save_pretrained(folder)
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator
    from transformers import AutoModel


    def main(folder):
        accelerator = Accelerator()
        model = AutoModel.from_pretrained("bert-base-uncased")
        model = accelerator.prepare(model)
        accelerator.unwrap_model(model).save_pretrained(folder)
    ```

    ## Safety
    Safe where the class of the model is shown to have the attribute and no gradient goes through it. Behind `prepare` it is asked
    by `accelerator.unwrap_model(model)`, which gives a bare model as it is; behind DistributedDataParallel by `model.module`,
    and by `getattr(model, "module", model)` where a test stands over the wrap. Unsafe where the class is not seen, or where a
    method may run a forward: gradients of a forward that goes past the wrapper are not averaged. In a step of a Trainer safe for
    settings, for what saves, for the type and place of weights, and under `no_grad`; a call of anything else is reported.

    ## Refuses
    - Says nothing where a test, an exit above or a handler distinguishes the wrapper and the model, or one process from several.
    - Says nothing of what the wrapper has itself, of what is set on it in the file, and of names with an underscore in front.
    - Says nothing of a field in methods that may run in front of the wrap, and of a parameter that one caller gives a bare model.
    - Says nothing of a model without parameters to train: `prepare` does not wrap it.
    - Says nothing of a way on which the program refuses several processes right below (`if args.distributed: raise`).
    - Says nothing of an arm that no value of an option leads to, nor of one process where each run starts a launcher's group, or
      where the loop round the place comes to a collective of torch itself every so many rounds.
    - Says nothing where all configurations of Accelerate are for DeepSpeed or FSDP, and where the program asks its
      `deepspeed_plugin` with no test: these wrappers pass attributes on.
    - Says nothing of Fabric, whose wrapper passes them on, too.
    - Says nothing of a setting over the wrap where the function has no code for its other value, or asserts it.
    - Says nothing of `.module` under the expression that the wrap's flag is set from, and, outside of the constructor, of a class
      under a decorator that may change it.
    - Reports what a loss is made of, `model.module` of a training forward too: it belongs into the forward of the model.
    - An object of a class that is no module (`trainer = Trainer(net)`): the program ends where DDP is to wrap it.
    - Says nothing of `prediction_step` and callbacks, which are handed the bare model, and of what a step does in evaluation
      alone; nothing of a Trainer with a loop, a wrap or a `model` of its own, or where every command asks for DeepSpeed or FSDP.
    - Says nothing of an average by name where the function strips `module.` or asks for the name, and where the average is not
      seen to be a copy of the bare model, or another model of its class.
    - A repository's own tests.

    ## References
    Steps of transformers 5.23 with accelerate 1.15 on two processes: `training_step`, and `compute_loss` in training, are handed
    the wrapper, `prediction_step` and callbacks the bare model, as `self.model` is everywhere.

    `torch.nn.parallel.DistributedDataParallel` (torch 2.13), `Accelerator.prepare_model` (accelerate 1.15); `__getattr__` of
    DeepSpeedEngine, FullyShardedDataParallel and `_FabricModule`. diffusers 0.31, `maybe_raise_or_warn`.
    """

    code = "DDP507"
    severity = "crash"
    ends_each_run = True
    subject = "Ask the model inside the DDP wrapper"
    must_show = "Two processes and one both get past these lines."
    printed = ("object has no attribute",)
    TRIGGERS = ((b"DistributedDataParallel", b".prepare(", b".prepare_model(", b"self.", b"model", b"net"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_hold_wrapper(project, path) or speaks_of_steps(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if may_hold_wrapper(project, module.path):
            yield from self._of_own_wraps(module, project)
        if speaks_of_steps(project, module.path):
            yield from self._of_trainers(module, project)

    def _of_own_wraps(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        passes = LossParts(project, module)
        found = [*names_of_wrapper(project, module), *asked_here(project, module), *asked_in_callee(project, module)]
        found += handed_to_pipelines(project, module)
        groups = whole_groups(project, module, found, passes)
        repairs = [_repair(project, module, asked, passes) for asked in groups]
        for repair in _together(module, repairs):
            yield self._tell(module, repair)

    def _tell(self, module: SourceModule, repair: _Repair) -> Finding:
        first = repair.asked[0]
        where = _also([(a.node, a.attribute) for a in repair.asked])
        return self.finding(
            module, first.node, f"{first.text}{where}", level=repair.level,
            edits=repair.edits, evidence=[*_wrapped(first.wrapped), *first.evidence, *_why_safe(module, repair)],
            reason=repair.reason,
            severity="risk" if first.inverse else "data" if first.asks_by_name and first.handed else "",
        )  # fmt: skip

    def _of_trainers(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """What the steps of a Trainer ask of their model: one finding for each function and way of repair."""
        grouped: dict[tuple[int, Applicability, str], list[InTrainer]] = {}
        found = list(asked_in_trainer(project, module))
        for one in found:
            level, reason = level_in_trainer(one, found)
            grouped.setdefault((id(one.function), level, reason), []).append(one)
        for (_, level, reason), asked in grouped.items():
            first = asked[0]
            text = (
                f"`{module.text_of(first.node)}` is asked of the DDP wrapper: with several processes the Trainer hands it to "
                f"`{first.step.name}`, it has no `{first.node.attr}`, and this line raises AttributeError"
            )
            edits = [ReplaceExpression(module.path, module.span(a.node.value), "self.model") for a in asked]
            proof = Evidence("static", "the Trainer hands the model to this step", module.path, first.step.lineno)
            yield self.finding(
                module, first.node, f"{text}{_also([(a.node, a.node.attr) for a in asked])}", level=level,
                edits=[] if level is _DISPLAY else edits, evidence=[proof], reason=reason,
            )  # fmt: skip


def _also(asked: list[tuple[ast.expr, str]]) -> str:
    """What else a finding stands for: other names, other lines."""
    first, attribute = asked[0]
    lines = sorted({node.lineno for node, _ in asked} - {first.lineno})
    names = [n for n in dict.fromkeys(name for _, name in asked) if n != attribute]
    also = [*(f"`{n}`" for n in names[:4]), *([f"in line {', '.join(map(str, lines[:4]))}"] if lines else [])]
    return f" (also {', '.join(also)})" if also else ""


@record
class _Repair:
    """asked: the same model, asked in one function. edits, level and reason: how it is put right. kin: what the reason says but
    for the attribute; several: the reason for more than one."""

    asked: list[Asked]
    edits: list[ReplaceExpression]
    level: Applicability
    reason: str
    kin: str = ""
    several: str = ""


def _together(module: SourceModule, repairs: list[_Repair]) -> Iterator[_Repair]:
    """One repair for what a function asks of one model with one answer; none is safe where another line ends the program."""
    whole: dict[tuple[int, str], list[_Repair]] = {}
    for repair in repairs:
        first = repair.asked[0]
        whole.setdefault((id(module.function_of(first.node)), first.receiver), []).append(repair)
    for same in whole.values():
        left = [r for r in same if r.level is not _SAFE]
        merged: dict[tuple[Applicability, str, bool], _Repair] = {}
        for one in same:
            repair = one
            if left and one.level is _SAFE:
                reason = f"line {left[0].asked[0].node.lineno} ends the program, too: see there"
                repair = replace(one, level=_UNSAFE, reason=reason)
            key = repair.level, repair.kin or repair.reason, repair.asked[0].inverse
            merged[key] = _joined(merged[key], repair) if key in merged else repair
        yield from merged.values()


def _joined(one: _Repair, other: _Repair) -> _Repair:
    several = max(one.several, other.several, key=len)
    return replace(
        one, asked=[*one.asked, *other.asked], edits=[*one.edits, *other.edits], reason=several or one.reason, several=several
    )


def _wrapped(wrapped: Wrapped) -> Iterable[Evidence]:
    text = "Accelerate wraps the model here where several processes run" if wrapped.prepared else "the model is wrapped"
    yield Evidence("static", text, wrapped.module.path, wrapped.wrap.lineno)


def _repair(
    project: Project, module: SourceModule, asked: list[Asked], passes: LossParts
) -> _Repair:
    first = asked[0]
    if first.instead:
        edit = ReplaceExpression(module.path, module.span(first.holder), first.instead)
        return _Repair(asked, [edit], _UNSAFE, "assumes that the test is there for the wrapper alone")
    inside, doubt = way_inside(project, module, first.node, first.wrapped, first.receiver)
    if first.handed:
        reason = f"hand over `{inside or 'the model inside'}`, or take the model out of the wrapper in the function"
        return _Repair(asked, [], _DISPLAY, reason)
    if any(passes.made_of(a.node) and not _is_weight(module, a) for a in asked) and not first.inverse:
        return _Repair(
            asked, [], _DISPLAY,
            "a loss is made of it: let `forward` of the model make it, and call the wrapper; the gradients of what goes past the "
            "wrapper are not averaged",
        )  # fmt: skip
    if first.inverse and (past := next((a for a in asked if passes.goes_past(a.node)), None)) is not None:
        return _Repair(
            asked, [], _DISPLAY,
            f"the loss is made of line {past.node.lineno}, past the wrapper, and its gradients are not averaged: let `forward` "
            f"of the model make it, and call `{first.receiver}`, which is right with one process, too",
        )  # fmt: skip
    if not inside or doubt:
        also = "" if all(_is_harmless(module, a) for a in asked) else "; where a loss is made of it, let `forward` make it"
        where = inside or "the model inside"
        reason, several = f"write `{where}{first.rest}`; {doubt}{also}", f"ask `{where}` instead; {doubt}{also}"
        return _Repair(asked, [], _DISPLAY, reason, f"{where}; {doubt}", several)
    edits = [ReplaceExpression(module.path, module.span(a.holder), inside) for a in asked]
    if first.inverse or (first.known and all(_is_harmless(module, a) for a in asked)):
        return _Repair(asked, edits, _SAFE, "")
    if not first.known and not is_named_in(project, first.attribute):
        unseen = "the class of the model is not seen: where it has"
        reason, several = f"{unseen} `{first.attribute}`, write `{inside}{first.rest}`", f"{unseen} them, ask `{inside}` instead"
        return _Repair(asked, [], _DISPLAY, reason, unseen, several)
    if not first.known:
        reason = "assumes that the model has it, and that it runs no forward whose gradients are needed"
    else:
        reason = "assumes that it runs no forward whose gradients are needed: those would not be averaged"
    return _Repair(asked, edits, _UNSAFE, reason)


def _why_safe(module: SourceModule, repair: _Repair) -> Iterable[Evidence]:
    """Why these places may ask the model inside: each reason once."""
    if repair.level is not _SAFE:
        return
    told = {_harmless_by(module, asked): asked for asked in reversed(repair.asked)}
    for text, asked in reversed(told.items()):
        yield Evidence("safe", text, module.path, asked.node.lineno)


def _harmless_by(module: SourceModule, one: Asked) -> str:
    if one.inverse:
        return "with a wrapper this gives the model inside as before, and without one the model itself"
    if is_quiet(module, one.node):
        return f"`{one.attribute}` is asked where no gradient is recorded"
    if _is_weight(module, one) or one.attribute in _OF_WEIGHTS:
        return f"`{one.attribute}` reads weights, and runs no forward"
    return f"the model has `{one.attribute}`, through which no gradient goes"


def _is_harmless(module: SourceModule, one: Asked) -> bool:
    """True where no gradient can go through it: a setting, what saves, all under `no_grad`, a question by its name."""
    if one.attribute in QUIET or one.asks_by_name or one.plain or is_quiet(module, one.node) or _is_weight(module, one):
        return True
    above = module.parent(one.node)  # `model.head.state_dict()`
    return isinstance(above, ast.Attribute) and above.attr in _OF_WEIGHTS


def _is_weight(module: SourceModule, one: Asked) -> bool:
    return is_weight_read(module, one.node, one.receiver)
