"""DDP705: a model that is spread over the GPUs of the machine, in a training of several processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.distribution import is_test_module
from codemods.analysis.job_files.several_started import started_on_several
from codemods.analysis.loading.origins import Origin, origins
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.trainer_calls import trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression, Span
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_KEYWORD = "device_map"
_SPREADS = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_WRAPPERS = frozenset(
    {"get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training", "compile", "prepare_model"}
)
_ASKED = lazy(r"num_processes|world_size|WORLD_SIZE|LOCAL_RANK|local_rank|\bddp|distributed|device_count|n_?gpus?|is_initialized")
_ASSUMED = "assumes that the whole model fits on one GPU; where it does not, only sharding (FSDP, DeepSpeed) trains it on several"
_ADVICE = (
    'load it on the GPU of the process, `device_map={"": int(os.environ["LOCAL_RANK"])}`, or leave `device_map` out, where '
    "several processes run; a model that does not fit on one GPU needs FSDP or DeepSpeed"
)


@record
class _Trained:
    """A use that trains a model of the file. holder: the object that knows this process's device; several: where it says so."""

    model: ast.expr
    shown: str
    call: ast.Call
    holder: ast.expr | None
    count: str
    several: Evidence


class DeviceMapAuto(DdpCodemod):
    """A model that each of several processes spreads over all GPUs.

    ## What it does
    Finds `from_pretrained(..., device_map="auto")` (`"balanced"`, `"sequential"`) whose model goes to `accelerator.prepare`, or
    to a Hugging Face `Trainer` in a script that a command of the repository starts on several processes. Loads the model onto
    the process's own device where there are several processes, and leaves the rest as it is.

    ## Why it matters
    `device_map="auto"` lays the layers of one model over all GPUs that the process sees, and every process sees all of them.
    Accelerate refuses such a model: "You can't train a model that has been loaded with `device_map='auto'` in any distributed
    mode". Before it does, all processes have filled the same GPUs with a copy each.

    ## Example
    ```python
    from accelerate import Accelerator
    from transformers import AutoModel


    def main(name):
        accelerator = Accelerator()
        model = AutoModel.from_pretrained(name, device_map="auto")
        model = accelerator.prepare(model)
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator
    from transformers import AutoModel


    def main(name):
        accelerator = Accelerator()
        model = AutoModel.from_pretrained(name, device_map={"": accelerator.device} if accelerator.num_processes > 1 else "auto")
        model = accelerator.prepare(model)
    ```

    ## Safety
    Unsafe: it assumes that the whole model fits on one GPU. One process loads it as before.

    ## Refuses
    - Says nothing of a Trainer that no command starts on several processes: one process may well spread its model.
    - Says nothing of a model that is not trained: a teacher, a judge, a script of evaluation.
    - Says nothing under a test that asks for the number of processes or of GPUs, and of a map that is not a literal text.
    - Says nothing in a repository's own tests.
    - Reports a place where neither an Accelerator nor the training arguments are made above the model.

    ## References
    Accelerate 1.15, `Accelerator.prepare` and `prepare_model` (`verify_device_map`); transformers 5.23,
    `TrainingArguments.device`; a run on two processes whose model does not fit where it is loaded.
    """

    code = "DDP705"
    severity = "crash"
    subject = "Load the model on the process's own device"
    must_show = "`nvidia-smi` shows each process on one GPU, and the whole model has room there."
    printed = ("You can't train a model that has been loaded with `device_map='auto'` in any distributed mode",)
    TRIGGERS = ((b"device_map",), (b"Trainer", b".prepare("), tuple(word.encode() for word in sorted(_SPREADS)))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        seen: set[ast.AST] = set()
        for trained in _trainings(project, module):
            for loaded in _spread(project, module, trained.model):
                if loaded not in seen and not _is_for_one(module, loaded):
                    seen.add(loaded)
                    yield self._told(module, loaded, trained)

    def _told(self, module: SourceModule, loaded: ast.keyword, trained: _Trained) -> Finding:
        edits = _edits(module, loaded, trained)
        given = module.text_of(loaded.value)
        return self.finding(
            module,
            loaded.value,
            f"`{_KEYWORD}={given}`: each process spreads the model over all GPUs of the machine, and {trained.shown} refuses it "
            "(\"You can't train a model that has been loaded with `device_map='auto'` in any distributed mode\")",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[trained.several, Evidence("static", f"{trained.shown} takes the model", module.path, trained.call.lineno)],
            reason=_ASSUMED if edits else _ADVICE,
        )


def _trainings(project: Project, module: SourceModule) -> Iterator[_Trained]:
    for call in module.calls_named("prepare"):
        if isinstance(call.func, ast.Attribute) and is_accelerator(project, module, call.func.value):
            said = Evidence("static", "the Accelerator prepares it for several processes", module.path, call.lineno)
            for argument in call.args:
                yield _Trained(argument, f"`{module.text_of(call.func)}`", call, call.func.value, "num_processes", said)
    if not module.holds(b"Trainer"):
        return
    started = started_on_several(project, module.path)
    for trainer in trainer_calls(project, module) if started is not None else ():
        model = trainer.argument("model") or next(iter(trainer.call.args), None)
        if model is not None and started is not None:
            shown = f"`{last(dotted(trainer.call.func))}`"
            yield _Trained(model, shown, trainer.call, trainer.argument("args"), "world_size", started)


def _spread(project: Project, module: SourceModule, model: ast.expr) -> Iterator[ast.keyword]:
    """The `device_map=` by which the model of this expression is loaded in this file."""
    asked, todo = set[int](), [Origin(module, model)]
    while todo:
        origin = todo.pop()
        if id(origin.node) in asked or origin.module is not module:
            continue
        asked.add(id(origin.node))
        node = origin.node
        found = [origin] if isinstance(node, ast.Call) and not origin.path else list(origins(project, module, node))
        for made in found:
            call = made.node
            if made.module is not module or not isinstance(call, ast.Call) or made.path:
                continue
            name = last(dotted(call.func))
            if name == "from_pretrained":
                yield from (k for k in call.keywords if k.arg == _KEYWORD and _is_spread(k.value))
                todo += [Origin(module, a) for a in call.args[:1] if "Peft" in dotted(call.func)]
            elif name in _WRAPPERS:
                todo += [Origin(module, a) for a in call.args[:1]]


def _is_spread(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in _SPREADS


def _is_for_one(module: SourceModule, loaded: ast.keyword) -> bool:
    """True where the way to the place asks for the number of processes or of GPUs, or where a test chose another map."""
    tests = [up.test for up in module.ancestors(loaded) if isinstance(up, (ast.If, ast.IfExp, ast.While))]
    return any(_ASKED.search(module.text_of(test)) for test in tests)


def _edits(module: SourceModule, loaded: ast.keyword, trained: _Trained) -> list[Edit]:
    holder = trained.holder
    if not isinstance(holder, ast.Name) or module.function_of(holder) is not module.function_of(loaded):
        return []
    bound = bindings_of(module, holder)
    given_at = module.span(loaded.value)
    if len(bound) != 1 or not _is_above(module.span(bound[0].node), given_at) or _may_be_missing(module, bound[0], loaded):
        return []
    name, given = holder.id, module.text_of(loaded.value)
    text = f'{{"": {name}.device}} if {name}.{trained.count} > 1 else {given}'
    return [ReplaceExpression(module.path, given_at, text)]


def _is_above(bound: Span, place: Span) -> bool:
    return (bound.line, bound.column) < (place.line, place.column)


def _may_be_missing(module: SourceModule, bound: Binding, place: ast.AST) -> bool:
    """True for a statement under a condition that the place is not under, and for a parameter with a default."""
    if bound.parameter:
        function = module.function_of(bound.node)
        return function is None or bool(function.args.defaults or any(function.args.kw_defaults))
    blocks = {id(block) for block in _blocks(module, place)}
    return any(id(block) not in blocks for block in _blocks(module, bound.node))


def _blocks(module: SourceModule, place: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that hold the place within its function."""
    below = place
    for up in module.ancestors(place):
        for name in ("body", "orelse", "finalbody"):
            held = getattr(up, name, None)
            if isinstance(held, list) and any(s is below for s in held):
                yield held
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up
