"""DDP705: a model that is spread over the GPUs of the machine, in a training of several processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.job_files.several_started import started_on_several
from codemods.analysis.model.spread_models import KEYWORD, SPREADS, spread_loads
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.started_alone import is_in_mode_of_one
from codemods.analysis.trainer.trainer_calls import trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression, Span
from codemods.files.import_statements import stem_of
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_ASKED = lazy(r"num_processes|world_size|WORLD_SIZE|LOCAL_RANK|local_rank|\bddp|distributed|device_count|n_?gpus?|is_initialized")
_TRAINS = (b"Trainer", b".prepare(")
_ASSUMED = "assumes that the whole model fits on one GPU; where it does not, only sharding (FSDP, DeepSpeed) trains it on several"
_ADVICE = (
    'load it on the GPU of the process, `device_map={"": int(os.environ["LOCAL_RANK"])}`, or leave `device_map` out, where '
    "several processes run; a model that does not fit on one GPU needs FSDP or DeepSpeed"
)


@record
class _Trained:
    """A use that trains a model of the file. holder: the object that knows this process's device; several: where it says so."""

    module: SourceModule
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
    the process's own device where there are several processes, and leaves the rest as it is. Follows a load in a file that the
    training imports, a model that a dataclass carries (`bundle.model`), and one that a class keeps (`self.backbone = backbone`).

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
    - Says nothing under a test of an option that commands of one process give, and no launch of several.
    - Says nothing in a repository's own tests.
    - Reports a load in another file or function than the training.
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
    TRIGGERS = ((b"device_map",), tuple(word.encode() for word in sorted(SPREADS)))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        return any(w in data for w in _TRAINS) or bool(_users_of(project, path))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        seen: set[ast.AST] = set()
        for trained in (t for user in (module, *_users(project, module)) for t in _trainings(project, user)):
            for holder, loaded in spread_loads(project, trained.module, trained.model):
                if holder is module and loaded not in seen and not _is_for_one(module, loaded):
                    seen.add(loaded)
                    if is_in_mode_of_one(project, module, loaded) and left(module, loaded, "commands of one process ask for it"):
                        continue
                    yield self._told(module, loaded, trained)

    def _told(self, module: SourceModule, loaded: ast.keyword, trained: _Trained) -> Finding:
        edits = _edits(module, loaded, trained)
        given = module.text_of(loaded.value)
        taken = Evidence("static", f"{trained.shown} takes the model", trained.module.path, trained.call.lineno)
        return self.finding(
            module,
            loaded.value,
            f"`{KEYWORD}={given}`: each process spreads the model over all GPUs of the machine, and {trained.shown} refuses it "
            "(\"You can't train a model that has been loaded with `device_map='auto'` in any distributed mode\")",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[trained.several, taken],
            reason=_ASSUMED if edits else _ADVICE,
        )


def _users(project: Project, module: SourceModule) -> Iterator[SourceModule]:
    """The files that import this one and train: the model may be loaded here and trained there."""
    for path in _users_of(project, module.path):
        user = project.module(path)
        if user is not None:
            yield user


def _users_of(project: Project, path: str) -> list[str]:
    users = (p for p in project.files_importing(stem_of(path)) if p != path and not is_test_file(p))
    return [p for p in users if any(w in (project.read(p) or b"") for w in _TRAINS)]


def _trainings(project: Project, module: SourceModule) -> Iterator[_Trained]:
    for call in module.calls_named("prepare"):
        if isinstance(call.func, ast.Attribute) and is_accelerator(project, module, call.func.value):
            said = Evidence("static", "the Accelerator prepares it for several processes", module.path, call.lineno)
            for argument in call.args:
                yield _Trained(module, argument, f"`{module.text_of(call.func)}`", call, call.func.value, "num_processes", said)
    if not module.holds(b"Trainer"):
        return
    started = started_on_several(project, module.path)
    for trainer in trainer_calls(project, module) if started is not None else ():
        model = trainer.argument("model") or next(iter(trainer.call.args), None)
        if model is not None and started is not None:
            shown = f"`{last(dotted(trainer.call.func))}`"
            yield _Trained(module, model, shown, trainer.call, trainer.argument("args"), "world_size", started)


def _is_for_one(module: SourceModule, loaded: ast.keyword) -> bool:
    """True where the way to the place asks for the number of processes or of GPUs, or where a test chose another map."""
    tests = [up.test for up in module.ancestors(loaded) if isinstance(up, (ast.If, ast.IfExp, ast.While))]
    return any(_ASKED.search(module.text_of(test)) for test in tests)


def _edits(module: SourceModule, loaded: ast.keyword, trained: _Trained) -> list[Edit]:
    holder = trained.holder
    if trained.module is not module or not isinstance(holder, ast.Name):
        return []
    if module.function_of(holder) is not module.function_of(loaded):
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
