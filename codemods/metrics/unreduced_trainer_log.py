"""DDP109: a number of one rank that a Hugging Face Trainer logs beside its own, reduced loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.wrong import joins_ranks
from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import Version, transformers_pin
from codemods.analysis.loading.samplers import short
from codemods.analysis.logged.accumulated import fillers, puts_into
from codemods.analysis.logged.held_modules import held_by
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.mixed_entries import Mixed, mixed_entries
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.names import dotted
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_GATHERS_ITS_LOSS: Version = (4, 11, 0)  # before, a Trainer logged rank 0's own
_HAS_ACCELERATOR: Version = (4, 30, 0)
_LOGS_THE_LOSS = ("_maybe_log_save_evaluate", "_inner_training_loop", "train")
_ADVICE = "gather it before it is logged, on every rank: `self.accelerator.gather(value).mean().item()` of a tensor on the device"
_OLD_ADVICE = "average it before it is logged, on every rank: `torch.distributed.all_reduce`, divided by the world size"


class UnreducedTrainerLog(DdpCodemod):
    """A number of one rank that a Hugging Face Trainer logs beside its own, reduced loss.

    ## What it does
    Finds what a subclass of the Trainer, or an object that it hands itself to, logs with `log({...})` out of a rank's own batch,
    and what an overridden `log` adds out of sums that `compute_loss` or a step keeps, where nothing gathers it. In a Trainer with
    a `log` of its own it finds the dict of numbers of which some are gathered, and some are the rank's own.

    ## Why it matters
    The Trainer gathers its own loss over the ranks before it logs it; what is added beside it is the number of rank 0's batches
    alone, drawn in the same charts. Losses that should add up do not, and the noise grows with the number of GPUs.

    ## Example
    ```python
    from transformers import Trainer


    class DistillationTrainer(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
            outputs = model(**inputs)
            side = outputs["side"].mean()
            self.log({"side": side.item()})
            return outputs["loss"] + side
    ```

    ## Use instead
    ```python
    from transformers import Trainer


    class DistillationTrainer(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
            outputs = model(**inputs)
            side = outputs["side"].mean()
            self.log({"side": self.accelerator.gather(side.detach()).mean().item()})
            return outputs["loss"] + side
    ```

    ## Safety
    There is no fix: a gather waits for every rank, so it has to stand where all of them come.

    ## Refuses
    - Values that are gathered or reduced, in the call or before they are added to a sum; values that are not seen to differ.
    - Says nothing of a dict whose numbers are all gathered, or none of them.
    - Says nothing of entries that no name calls a loss or a metric.
    - What `evaluate` and `predict` log: their metrics are gathered.
    - A repository's own tests.

    ## References
    transformers 5.23: `Trainer._maybe_log_save_evaluate` gathers `tr_loss` (since 4.11; before, it logged the loss of
    rank 0); `Trainer.log` writes what it is given, on rank 0. `Trainer.accelerator` came with 4.30.
    """

    code = "DDP109"
    severity = "data"
    TRIGGERS = ((b".log(", b"def log("), (b"rainer",), (b"transformers", b"trl", b"self."))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        """Log calls are everywhere; trainers that somebody derives from are not."""
        return bool(project.files_containing(b"Trainer):")) or bool(project.files_containing(b"Trainer,"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("log"):
            if call.args and self._speaks_to_a_trainer(module, project, call):
                yield from self._call(module, project, call)
        for owner in module.nodes(ast.ClassDef):
            own = [m for m in owner.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)) and m.name == "log"]
            facts = class_facts(project, module, owner) if own else None
            if facts is not None and facts.is_a(Role.HF_TRAINER):
                yield from self._override(module, project, facts, own[-1])
                for method in () if _gathers_later(project, facts, own[-1]) else module.methods_of(owner).values():
                    yield from (self._mixed(module, project, found) for found in mixed_entries(project, module, method))

    def _mixed(self, module: SourceModule, project: Project, found: Mixed) -> Finding:
        more = f", and so are {found.others} more of its entries" if found.others > 1 else ", and so is one more of its entries"
        return self.finding(
            module,
            found.own,
            f"`{short(module, found.own.value)}` is this rank's own number{more if found.others else ''}, beside "
            f"`{short(module, found.gathered.value)}`, which is gathered over the ranks: rank 0's alone is logged",
            evidence=[Evidence("static", "this one is gathered", module.path, found.gathered.lineno)],
            reason=_advice(project, module),
        )

    def _speaks_to_a_trainer(self, module: SourceModule, project: Project, call: ast.Call) -> bool:
        function = module.function_of(call)
        if function is None or function.name in ("log", "evaluate", "predict", "evaluation_loop"):
            return False
        receiver = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        owner = module.class_of(call)
        if receiver == "self" and owner is not None:
            return class_facts(project, module, owner).is_a(Role.HF_TRAINER)
        return bool(receiver) and held_by(project, module, call, Role.HF_TRAINER) is not None

    def _call(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Finding]:
        value = variance(project).argument(module, call, 0)
        if not value.differs or value.cause is not Cause.DATA:
            return
        function, pin = module.function_of(call), transformers_pin(project, near=module.path)
        if function is not None and function.name in _LOGS_THE_LOSS and pin and pin.surely_below(_GATHERS_ITS_LOSS):
            if left(module, call, "the Trainer of the pinned transformers logs its own loss so"):
                return
        evidence = [Evidence("static", link.text, link.path, link.line) for link in value.chain[-2:]]
        beside = ", beside the gathered loss" if _gathers_the_loss(module, project, call) else ""
        text = f"the Trainer's log gets a number of this rank's own batch: rank 0's alone is shown{beside}"
        yield self.finding(module, call, text, reason=_advice(project, module), evidence=evidence)

    def _override(self, module: SourceModule, project: Project, facts: ClassFacts, method: FunctionNode) -> Iterator[Finding]:
        given = [a.arg for a in method.args.args][1:2]
        for node in walk_scope(method):
            for value in _added(node, given):
                scope = Scope(project, facts, module, method)
                if classify(scope, value).kind is not Kind.LIST or not (source := _own_sum(project, facts, value)):
                    continue
                shown = " ".join(module.text_of(value).split())
                beside = "logged beside the gathered loss" if _gathers_the_loss(module, project, value) else "logged"
                text = f"`{shown}` is {beside}, but each rank sums up {source} from its own batches"
                yield self.finding(module, value, f"{text}: rank 0's alone is shown", reason=_advice(project, module))


def _advice(project: Project, module: SourceModule) -> str:
    pin = transformers_pin(project, near=module.path)
    return _OLD_ADVICE if pin is not None and pin.surely_below(_HAS_ACCELERATOR) else _ADVICE


def _gathers_the_loss(module: SourceModule, project: Project, at: ast.AST) -> bool:
    """False where the pinned Trainer logs rank 0's loss, and where the class logs the loss itself and gathers nothing there."""
    pin = transformers_pin(project, near=module.path)
    if pin is not None and pin.minimum is not None and pin.minimum < _GATHERS_ITS_LOSS:
        return False
    owner = module.class_of(at)
    facts = class_facts(project, module, owner) if owner is not None else None
    own = [method for name in _LOGS_THE_LOSS if facts is not None and (method := facts.method(name))]
    logs = [function for _, function in own if any(isinstance(n, ast.Attribute) and n.attr == "log" for n in walk(function))]
    return all(any(isinstance(n, ast.Call) and joins_ranks(project, n) for n in walk(function)) for function in logs)


def _gathers_later(project: Project, facts: ClassFacts, log: FunctionNode) -> bool:
    """True where the `log` of a Trainer, or what fills the attributes that it reads, brings the numbers together itself."""
    functions = [log, *fillers(project, facts, [log])]
    return any(isinstance(n, ast.Call) and joins_ranks(project, n) for f in functions for n in walk(f))


def _added(node: ast.AST, given: list[str]) -> Iterator[ast.expr]:
    """What `logs["x"] = value` and `logs.update({...})` add to the dictionary that `log` is given."""
    if isinstance(node, ast.Assign) and node.targets and isinstance(node.targets[0], ast.Subscript):
        if dotted(node.targets[0].value) in given:
            yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
        if dotted(node.func.value) in given and node.args and isinstance(node.args[0], ast.Dict):
            yield from node.args[0].values


def _own_sum(project: Project, facts: ClassFacts, value: ast.expr) -> str:
    """`self.x` in the value that a step adds a number of its batch to; "" where none is seen."""
    for part in walk(value):
        name = dotted(part) if isinstance(part, ast.Attribute) else ""
        if not name.startswith("self.") or name.count(".") != 1:
            continue
        for put in puts_into(project, facts, name[5:]):
            if put.function.name in ("compute_loss", "training_step", "forward") and not isinstance(put.value, ast.Constant):
                return name
    return ""
