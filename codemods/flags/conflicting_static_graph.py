"""DDP003: static_graph=True beside what it cannot stand: the flag for unused parameters, a graph that varies, accumulation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.flag_comment import off_comment
from codemods.analysis.model.flag_edits import comment_at, comment_column, switched
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper, anchor_of, is_on, static_graph_of
from codemods.analysis.model.flow_values import Cause, Decision
from codemods.analysis.model.model_usage import Usage, Verdict, left_out_where, modules_of
from codemods.analysis.model.trained_model import trained_by
from codemods.analysis.model.unused_flag import wrappers
from codemods.analysis.names import dotted
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Asked, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

# Who accumulates, and how the argument is called.
_ACCUMULATION = ("accumulate_grad_batches", "gradient_accumulation_steps")


class ConflictingStaticGraph(DdpCodemod):
    """`static_graph=True` beside `find_unused_parameters`, on a graph that varies, or under gradient accumulation.

    ## What it does
    Finds `static_graph=True` (`ddp_static_graph=True` of the Hugging Face Trainer). Where the flag for unused parameters is on
    in the same call, the flag is switched off: torch searches only where `find_unused_parameters and not static_graph`. Where
    the model leaves a module out in some steps, or gradients are accumulated, it is reported that `static_graph` is what fails.

    ## Why it matters
    With `static_graph=True` DDP looks for unused parameters once, in the first step, and takes every later step for the same.
    The flag beside it does nothing but print a complaint on every rank and mislead whoever reads it. A step in which another
    module takes part raises "Your training graph has changed in this iteration"; a first backward pass under `no_sync()`,
    which is what accumulation makes of it, ends in an internal assertion of torch.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def wrap(model, device):
        return DDP(model, device_ids=[device], find_unused_parameters=True, static_graph=True)
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel as DDP


    def wrap(model, device):
        # Off: static_graph=True finds unused parameters by itself and ignores this flag.
        # If that changes, TORCH_DISTRIBUTED_DEBUG=INFO names the parameters behind
        # "Expected to have finished reduction in the prior iteration". To roll back: True.
        return DDP(model, device_ids=[device], find_unused_parameters=False, static_graph=True)
    ```

    ## Safety
    Safe: torch ignores the flag there, so nothing changes on any number of processes. `static_graph` stays. Unsafe for
    Lightning, which read the flag by itself in manual optimization before 2.6.

    ## Refuses
    - a model that leaves a module out in some steps: reported, `static_graph` has to go and the flag is what is needed
    - gradient accumulation, `no_sync()` round the first backward pass: reported
    - `static_graph` or the flag from a variable or a command line: nothing is said
    - the flag in a dict that is handed over: nothing is said, others may take it
    - a repository's own tests: nothing is said

    ## References
    torch 2.13 `nn/parallel/distributed.py` and `reducer.cpp`; pytorch/pytorch#97030 and #79171;
    Lightning-AI/pytorch-lightning#18086. Two-process runs on torch 2.13 and Lightning 2.6.6.
    """

    code = "DDP003"
    severity = "noise"
    subject = "Drop the flag that static_graph overrules"
    must_show = "Training goes on past the second step with the same losses, and torch prints no complaint about the flag."
    printed = ("Your training graph has changed in this iteration",)
    TRIGGERS = ((b"static_graph",), (b"DistributedDataParallel", b"DDPStrategy", b"DDPPlugin", b"ddp_static_graph"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        seen: set[int] = set()
        for wrapper in wrappers(project, module):
            for setting in wrapper.settings:
                keyword = static_graph_of(setting)
                if keyword is None or not is_on(keyword) or setting.module is not module or id(keyword) in seen:
                    continue
                seen.add(id(keyword))
                yield from self._judge(project, wrapper, setting, keyword)

    def _judge(self, project: Project, wrapper: Wrapper, setting: Setting, keyword: ast.keyword) -> Iterator[Finding]:
        usages = trained_by(project, wrapper).usages
        varying = next(((u, d) for u in usages if (d := _varying(u)) is not None), None)
        if varying is not None:
            yield self._changes(setting, keyword, *varying)
        elif place := _accumulates(wrapper, setting):
            yield self._accumulation(setting, keyword, place)
        elif setting.state is State.ON:
            yield self._idle(project, wrapper, setting)

    def _changes(self, setting: Setting, keyword: ast.keyword, usage: Usage, decision: Decision) -> Finding:
        names = modules_of(decision)
        return self.finding(
            setting.module,
            keyword,
            f"static_graph=True takes every step for the first one, and {names} of {usage.name} takes no part "
            f"{left_out_where(decision)}: DDP stops there (“Your training graph has changed”)",
            evidence=[
                Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line, asked=Asked.BRANCHES),
                *usage.evidence[:8],
            ],
            reason="take static_graph out and pass find_unused_parameters=True"
            + (
                "; before 2.6 Lightning did not stop: gradients that are made by hand were silently not averaged"
                if decision.cause is Cause.TURN
                else ", or always run the module and gate its result"
            ),
        )

    def _accumulation(self, setting: Setting, keyword: ast.keyword, place: tuple[str, int]) -> Finding:
        text, line = place
        return self.finding(
            setting.module,
            keyword,
            f"static_graph=True and gradient accumulation ({text}, line {line}) do not go together: a first backward pass "
            "without synchronisation ends in an internal assertion of torch",
            evidence=[Evidence("static", f"{text}: gradients are accumulated", setting.module.path, line)],
            reason="which of the two the training can do without is not in the code",
        )

    def _idle(self, project: Project, wrapper: Wrapper, setting: Setting) -> Finding:
        assert setting.call is not None
        lightning = wrapper.framework in (Framework.LIGHTNING, Framework.FABRIC)
        why = "Off: static_graph=True finds unused parameters by itself and ignores this flag."
        comment = off_comment(project, setting, wrapper.framework, why, column=comment_column(setting))
        edit = switched(setting, "False")
        text = "static_graph=True: torch searches only where `find_unused_parameters and not static_graph`"
        return self.finding(
            setting.module,
            anchor_of(setting),
            f"{setting.text} does nothing: static_graph=True beside it makes DDP find unused parameters once, in the first step",
            level=Applicability.UNSAFE if lightning else Applicability.SAFE,
            edits=[edit, comment_at(setting, comment)] if edit is not None else [],
            evidence=[Evidence("static", text, setting.module.path, setting.call.lineno, asked=Asked.STATIC_GRAPH)],
            reason="assumes automatic optimization: before 2.6 Lightning read the flag in manual mode" if lightning else "",
        )


def _varying(usage: Usage) -> Decision | None:
    """What leaves a module out in some steps; an argument or a test that training may never meet does not count."""
    if usage.verdict is not Verdict.SOMETIMES:
        return None
    wanted = (Cause.RANDOM, Cause.INDEX, Cause.DATA, Cause.SHAPE, Cause.SCHEDULE, Cause.TURN)
    return next((d for d in usage.skipped if d.cause in wanted), None)


def _accumulates(wrapper: Wrapper, setting: Setting) -> tuple[str, int] | None:
    """(text, line) of what makes the first backward pass of this wrapper one without synchronisation."""
    module = wrapper.module
    for call in (wrapper.call, setting.call):
        for keyword in call.keywords if call is not None else ():
            steps = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg in _ACCUMULATION and isinstance(steps, int) and steps > 1:
                return f"{keyword.arg}={steps}", keyword.value.lineno
    assign = module.parent(wrapper.call)
    names = {dotted(t) for t in assign.targets} - {""} if isinstance(assign, ast.Assign) else set()
    for call in module.calls_named("no_sync"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) in names:
            return module.text_of(call), call.lineno
    return None
