"""DDP505: a model that is changed behind the DDP wrap."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.conditions import conjuncts
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.literals import is_false
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.wrapped.cast_behind_prepare import CastBehind, cast_behind_prepare
from codemods.analysis.wrapped.first_batch import set_by_first_batch
from codemods.analysis.wrapped.in_front import is_called_in_front
from codemods.analysis.wrapped.lightning_runs import BEHIND, IN_FRONT, runs_on_several
from codemods.analysis.wrapped.moved_between_steps import CASTS, Moved, casts, may_ask_for_one, moved_between_steps
from codemods.analysis.wrapped.put_in_behind import put_in_behind
from codemods.analysis.wrapped.switches import Switched, frozen_by, frozen_in_front, of_call, switched_behind
from codemods.analysis.wrapped.wraps import Side, held, is_wrap
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.left_alone import left
from codemods.files.sites import Beside
from codemods.files.source import SourceModule, stands_above
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project

_FROZEN = (
    "{0} behind the DDP wrap, which waits for their gradients in each backward pass: the second step ends with “Expected to have "
    "finished reduction in the prior iteration”"
)

_IN_TRAINING = "is_in_train"  # of a Trainer: it holds for an evaluation between two epochs as well


class ChangedAfterWrap(DdpCodemod):
    """A model that is changed behind the DDP wrap: frozen, given another type, a new layer, or set by its first batch.

    ## What it does
    Reports parts that are frozen behind the wrap (in Lightning: in hooks from `on_fit_start` on), of `half()`, `double()`,
    `bfloat16()` and `to(dtype)` of the wrapper, of modules that set their parameters from the first batch they see (ActNorm),
    of layers that are put into the wrapped model and given to an optimizer (`model.module.head = nn.Linear(...)`), of a model
    that goes to the CPU and back, or is given another type, between two epochs, and of a type behind Accelerate's `prepare`.

    ## Why it matters
    DDP takes the parameters as they are when it is made. It waits for the gradient of one that is frozen later; it does not see
    the gradients of parameters that were given another type or device since, or of a new layer: the ranks drift apart without
    an error, and where rank 0 alone moved its model, the others wait for it. And it sends parameters once: what each rank makes
    of its own first batch stays different for the whole training.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(net):
        model = DDP(net)
        model.module.backbone.requires_grad_(False)
        return model
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(net):
        net.backbone.requires_grad_(False)
        model = DDP(net)
        return model
    ```

    ## Safety
    There is no fix: the change belongs in front of the wrap, and often stands where it does for a reason that the source does not
    give.

    ## Refuses
    - Says nothing of parts that were frozen in front of the wrap, also by a helper that is only called there, of a whole
      model, and of what is switched off and on.
    - Says nothing of frozen parts where DDP looks for unused parameters.
    - Says nothing of `to(device)`, and of `float()`: most models are of that type already.
    - Says nothing of a type behind `prepare` where the parameters go to nobody above it, all are frozen, or a test that `prepare`
      does not stand under decides over it.
    - Says nothing of a move to the CPU behind the training or in its last round, of a copy, of a model that the loop wraps anew,
      and where nothing shows a GPU or a way back.
    - Says nothing of a new layer where the model is wrapped again below it, where the layer is frozen, and where its
      optimizer is not made below it in the same function.
    - Says nothing of a first batch whose values are reduced or sent in the class, whose flag another method sets, and where no
      DDP is in the project.
    - A repository's own tests.

    ## References
    Two-process runs on torch 2.13 (frozen, `double()`, also there and back, and a new layer after the wrap) and Lightning 2.6.6;
    `VariableHooks::set_data` of torch, which drops the gradient accumulator where the type or the device changes;
    `Trainer._run` of Lightning 2.0.9 to 2.6.6, which wraps in front of `on_fit_start`.
    """

    code = "DDP505"
    severity = "data"
    TRIGGERS = (
        (b"requires_grad", b".half(", b".double(", b".bfloat16(", b".to(", b".cpu(", b"Parameter(", b".module."),
        (b"DistributedDataParallel", b"ightning", b".module", b"Parameter(", b"ccelerat"),
    )
    SITES = (
        Beside(
            (b"DistributedDataParallel", b"ightning", b".module", b"ccelerat"),
            rb"requires_grad|\.(?:half|double|bfloat16|cpu)\(|\.to\([^\n]*(?:float|dtype|half|double|cpu)",
            b"requires_grad", b".half(", b".double(", b".bfloat16(", b".to(", b".cpu(",
        ),
        Beside((b"DistributedDataParallel",), rb"\.module\.[\w.]+[ \t]*=[^=]", b".module."),
        Beside((b"Parameter(",), rb"self\.\w+(?:\.data[ \t]*=|(?:\.data)?\.(?:copy|set|fill|add|mul|sub)_\()", b"self."),
    )  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        yield from self._frozen(module, project)
        yield from self._cast(module, project)
        yield from (self._cast_behind(module, found) for found in cast_behind_prepare(project, module))
        yield from (self._moved(module, project, found) for found in moved_between_steps(project, module))
        yield from self._put_in(module, project)
        yield from self._hooks(module, project)
        yield from self._first_batch(module, project)

    def _frozen(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not module.holds(b"requires_grad") and not module.holds(b"freeze"):
            return
        found = list(switched_behind(project, module))
        seen: set[int] = set()
        for one in found:
            if one.on or not one.path or id(one.node) in seen:
                continue
            if (_looks_for_unused(one) or one.inside.prepared) and left(module, one.node, "the wrapper looks for unused ones"):
                continue
            if any(o.on and (o.path == one.path or not o.path) for o in found) and left(module, one.node, "they are freed again"):
                continue
            if is_called_in_front(project, module, one.node, one.inside.module, one.inside.wrap):
                left(module, one.node, "it is called in front of the wrap", at=one.inside.wrap, within=one.inside.module)
                continue
            if frozen_in_front(project, one) is None:
                seen.add(id(one.node))
                yield self.finding(
                    module,
                    one.node,
                    _FROZEN.format(f"{_named(one.path)} are frozen"),
                    reason="freeze them in front of the wrap, and make the optimizer behind that",
                    evidence=[Evidence("static", "the model is wrapped", one.inside.module.path, one.inside.wrap.lineno)],
                )

    def _cast(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not module.holds(b".backward("):
            return
        for call in module.calls_named("to", *CASTS):
            if not isinstance(call.func, ast.Attribute) or not casts(module, call) or _has_trained(module, call):
                continue
            if _is_out_of_training(module, call) and left(module, call, "no training follows where this test holds"):
                continue
            holder = call.func.value
            followed = isinstance(holder, (ast.Name, ast.Attribute)) or is_wrap(module, holder)
            found = held(project, module, holder) if followed else None
            if found is not None and found.side is Side.WRAPPER and not found.prepared:
                yield self.finding(
                    module,
                    call,
                    "the wrapped model is given another type: DDP keeps hold of the parameters as they were, averages none of "
                    "the new gradients, and the ranks drift apart without an error",
                    reason="change the type in front of the wrap: `DDP(model.to(...))`",
                    evidence=[Evidence("static", "the model is wrapped", found.module.path, found.wrap.lineno)],
                )

    def _cast_behind(self, module: SourceModule, found: CastBehind) -> Finding:
        where = "" if found.always else "where `prepare` is handed it, "
        which = "another type" if found.sure else "another type, with bf16,"
        return self.finding(
            module,
            found.call,
            f"{where}`{found.name}` is given {which} behind `prepare`, which puts DDP round it: DDP keeps hold of the parameters "
            "as they were, averages none of the new gradients, and the ranks drift apart without an error",
            reason="change the type in front of `prepare`, or leave it to the Accelerator's `mixed_precision`",
            evidence=[Evidence("static", "the model is prepared", module.path, found.inside.wrap.lineno)],
        )

    def _moved(self, module: SourceModule, project: Project, found: Moved) -> Finding:
        what = "goes to the CPU and back" if found.away else "is given another type"
        who, then = "the wrapped model", "no gradients are averaged from there on, and the ranks drift apart without an error"
        if alone := ranks_reaching(project, module, found.call) in (Ranks.ZERO, Ranks.LOCAL_ZERO):
            who = "on rank 0 alone the wrapped model"
            then = "rank 0 trains on alone, and the others wait for it in their backward pass"
        elif may_ask_for_one(found):
            then = "a rank that comes here trains on alone, and one that does not waits for it in its backward pass"
        return self.finding(
            module,
            found.call,
            f"{who} {what} in the midst of the training: its parameters lose the hooks by which DDP averages their gradients; "
            f"{then}",
            reason="evaluate where the model is, or a copy of it: `copy.deepcopy(model.module).cpu()`",
            severity="hang" if alone else "data",
            evidence=[
                Evidence("static", "the model is wrapped", found.inside.module.path, found.inside.wrap.lineno),
                Evidence("static", "the training goes on", found.module.path, found.loop.lineno),
            ],
        )

    def _put_in(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not module.holds(b"DistributedDataParallel"):
            return
        if not any(project.files_containing(word) for word in (b".backward(", b"scaler(")):
            return
        for assign, inside in put_in_behind(project, module):
            yield self.finding(
                module,
                assign,
                f"`{module.text_of(assign.targets[0])}` is given a new layer behind the DDP wrap: DDP knows the parameters that "
                "it was made with, so it averages none of its gradients, and the layers of the ranks drift apart",
                reason="put the layer in front of the wrap",
                evidence=[Evidence("static", "the model is wrapped", inside.module.path, inside.wrap.lineno)],
            )

    def _hooks(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        several = runs_on_several(project) if module.holds(b"ightning") and module.holds(b"requires_grad") else None
        if several is None or "find_unused" in several[0].text_of(several[1]):
            return
        for node in module.nodes(ast.ClassDef):
            facts = class_facts(project, module, node)
            methods = module.methods_of(node)
            for name in sorted(BEHIND & set(methods)) if facts.is_a(Role.LIGHTNING_MODULE) else ():
                switched = list(of_call(project, FunctionSite(module, methods[name]), None))
                found = [s for s in switched if s.target.startswith("self.")]
                for one in found if all(o.on is False for o in found) else ():
                    path = one.target[5:]
                    if frozen_by(project, facts.lineage[0], path, IN_FRONT) is None:
                        yield self.finding(
                            module,
                            one.node if module.class_of(one.node) is node else methods[name],
                            _FROZEN.format(f"{_named(path)} are frozen in {name},"),
                            reason="freeze them in __init__ or setup, which run in front of the wrap",
                            evidence=[Evidence("static", "the Trainer runs several", several[0].path, several[1].lineno)],
                        )

    def _first_batch(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not module.holds(b"Parameter(") or not _wraps(project):
            return
        for one in set_by_first_batch(project, module):
            yield self.finding(
                module,
                one.node,
                f"`self.{one.parameter}` is set from the first batch that the module sees, and each rank sees another: DDP sent "
                "the parameters before that, so each rank trains from its own start and the weights never agree",
                reason="reduce the statistics over the ranks here (all_reduce, divided by the number of ranks), or send rank 0's "
                "parameters behind the first forward",
                evidence=[Evidence("static", f"`self.{one.flag}` says that it has been done", module.path, one.node.lineno)],
            )


def _named(path: str) -> str:
    return "parameters" if "*" in path else f"the parameters of {path}"


def _has_trained(module: SourceModule, call: ast.Call) -> bool:
    """True behind a backward pass of the same function: what is given another type there is to be saved or run."""
    function = module.function_of(call)
    return any(stands_above(c, call) and module.function_of(c) is function for c in module.calls_named("backward"))


def _is_out_of_training(module: SourceModule, call: ast.Call) -> bool:
    """True under `if not self.is_in_train:`, also where more than that is asked."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and below is not up.test:
            inside = any(s is below for s in up.body)
            for part in conjuncts(up.test) if inside else [up.test]:
                negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
                asked = part.operand if isinstance(part, ast.UnaryOp) else part
                if last(dotted(asked)) == _IN_TRAINING and inside == negated:
                    return True
        below = up
    return False


def _looks_for_unused(one: Switched) -> bool:
    return any(k.arg == "find_unused_parameters" and not is_false(k.value) for k in one.inside.wrap.keywords)


def _wraps(project: Project) -> bool:
    """True where a file that is no test makes a DDP wrapper, or a Trainer is given several devices."""

    def build() -> bool:
        for path in sorted(project.files_containing(b"DistributedDataParallel")):
            module = project.module(path) if path.endswith(PYTHON_KINDS) and not is_test_file(path) else None
            if module is not None and any(is_wrap(module, c) for c in module.nodes(ast.Call)):
                return True
        return runs_on_several(project) is not None

    return project.keep("a model is wrapped", build)
