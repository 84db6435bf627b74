"""DDP004: activation checkpointing of the reentrant kind inside a model that DDP searches for unused parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import torch_pin
from codemods.analysis.job_files.said_torch import said_torch
from codemods.analysis.model.checkpoint_kinds import checkpoint_calls, choice_of, is_open
from codemods.analysis.model.effective_flag import effect_of
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper, static_graph_of
from codemods.analysis.model.trained_model import Trained, trained_by
from codemods.analysis.model.unused_flag import wrappers
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression, SetKeyword, lowest
from codemods.data.find_unused_parameters import REENTRANT_CHOICE_FROM
from codemods.data.printed_errors import UNUSED
from codemods.files.sites import Site
from codemods.files.source import SourceModule, line_of
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class _Searched:
    """A wrapper that searches the graph, and a model that it wraps."""

    wrapper: Wrapper
    setting: Setting
    trained: Trained

_LIGHTNING = (b"import lightning", b"from lightning", b"pytorch_lightning", b"lightning_fabric")


class ReentrantCheckpointWithFindUnused(DdpCodemod):
    """Reentrant activation checkpointing in a model that is wrapped with `find_unused_parameters` on.

    ## What it does
    Finds `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` with `use_reentrant=True`, or without the argument,
    which means the same, on the way from `forward` to the loss of a model whose wrapper has the flag on, by what is written
    or by the framework's default. `use_reentrant=False` is written. `gradient_checkpointing_kwargs` of the Hugging Face
    Trainer are read the same way.

    ## Why it matters
    The reentrant kind runs its part of the model without a graph and builds it again inside of the backward pass. DDP's search
    does not find the parameters in there, takes them for unused, and then they arrive all the same: the first step ends with
    "Expected to mark a variable ready only once" or "has been marked as ready twice".

    ## Example
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.checkpoint import checkpoint


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(8, 8)
            self.body = nn.Linear(8, 8)

        def forward(self, x):
            return checkpoint(self.body, self.stem(x), use_reentrant=True)


    def train(loader, device):
        model = DDP(Net().to(device), device_ids=[device], find_unused_parameters=True)
        for x in loader:
            model(x).mean().backward()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.checkpoint import checkpoint


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(8, 8)
            self.body = nn.Linear(8, 8)

        def forward(self, x):
            return checkpoint(self.body, self.stem(x), use_reentrant=False)


    def train(loader, device):
        model = DDP(Net().to(device), device_ids=[device], find_unused_parameters=True)
        for x in loader:
            model(x).mean().backward()
    ```

    ## Safety
    Safe where the checkpoint lies on the way of a model that is followed from its wrapper, the flag is written as on, and
    torch is 1.11 or newer: `use_reentrant=True` shows that, else the pin does. Both kinds compute the same values and
    gradients. Unsafe where the flag is on by a framework's default or in one arm of an expression, or torch is not pinned.

    ## Refuses
    - A checkpoint that is given the inputs of the wrapped model alone fails otherwise, and says so: its part gets no gradient.
    - `use_reentrant` from a variable, or by position: reported
    - `static_graph=True` beside the flag: nothing is said, the two go together
    - a model that is not followed from the wrapper to the checkpoint: nothing is said
    - the flag off: nothing is said
    - a checkpoint function of another library: nothing is said
    - a torch that is pinned below 1.11: reported, it knows no other kind

    ## References
    torch 2.13 `utils/checkpoint.py` (the argument came with 1.11; without it the reentrant kind is still taken), `reducer.cpp`;
    transformers 5.23 takes the other kind by default. Two-process runs on torch 2.13.
    """

    code = "DDP004"
    severity = "crash"
    subject = "Checkpoint without re-entrant backward passes"
    must_show = "Training goes on past the first backward pass, with the same losses on one process as before."
    printed = ("Expected to mark a variable ready only once", *UNUSED)
    TRIGGERS = ((b"checkpoint(", b"checkpoint_sequential(", b"use_reentrant"), (b"torch.utils", b"use_reentrant"))
    SITES = (Site(rb"(?<!def )\bcheckpoint(?:_sequential)?[ \t]*\(|use_reentrant", b"checkpoint", b"use_reentrant"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        """Most files with a checkpoint hold models that no wrapper with the flag on is seen to train."""
        return b"use_reentrant" in (project.read(path) or b"") or path in _paths(project)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        reentrant = checkpoint_calls(module)
        places = _places(project) if reentrant else {}
        for call in reentrant:
            if found := places.get(f"{module.path}:{call.lineno}"):
                yield self._judge(project, module, call, found)
        for wrapper in wrappers(project, module):
            if wrapper.framework is Framework.HF:
                yield from self._arguments(module, wrapper)

    def _judge(self, project: Project, module: SourceModule, call: ast.Call, found: _Searched) -> Finding:
        wrapper, setting = found.wrapper, found.setting
        level, reason = _level(project, module, call, found)
        given = choice_of(call)
        kind = "use_reentrant=True" if given is not None else "without use_reentrant, which means True,"
        on = setting.text if setting.state is State.ON else f"{setting.keyword} on by default"
        edit = SetKeyword(module.path, module.span(call), "use_reentrant", "False")
        message = (
            f"this checkpoint {kind} fails in the first step beside {on} ({setting.module.path}:{setting.node.lineno}): its "
            "parameters are taken for unused and arrive all the same (“marked as ready twice”)"
        )
        if given_inputs_alone(module, call, found.trained):
            level = lowest(level, Applicability.UNSAFE)
            alone = "nobody asks for the gradients of the inputs"
            reason = f"{reason}; {alone}" if reason else f"assumes that {alone}"
            message = (
                f"this checkpoint {kind} is given the inputs of the model alone, which ask for no gradient: its part of the "
                f"model gets none, and {on} ({setting.module.path}:{setting.node.lineno}) takes it for unused without a word"
            )
        return self.finding(
            module,
            given if given is not None and given.arg else call,
            message,
            level=level,
            edits=[edit] if level is not Applicability.DISPLAY else [],
            evidence=[
                Evidence("static", f"{wrapper.framework.value} has the flag on: {on}", setting.module.path, setting.node.lineno),
                *found.trained.evidence,
                Evidence("static", "the way to the loss goes through this checkpoint", module.path, call.lineno),
            ],
            reason=reason,
        )

    def _arguments(self, module: SourceModule, wrapper: Wrapper) -> Iterator[Finding]:
        """`TrainingArguments(ddp_find_unused_parameters=True, gradient_checkpointing_kwargs={"use_reentrant": True})`."""
        setting = next((s for s in wrapper.settings if s.state is State.ON and s.call is wrapper.call), None)
        if setting is None or static_graph_of(setting) is not None:
            return
        given = {k.arg: k.value for k in wrapper.call.keywords}
        enabled, options = given.get("gradient_checkpointing"), given.get("gradient_checkpointing_kwargs")
        if not (isinstance(enabled, ast.Constant) and enabled.value is True) or not isinstance(options, ast.Dict):
            return
        for key, value in zip(options.keys, options.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "use_reentrant" and isinstance(value, ast.Constant) and value.value:
                yield self.finding(
                    module,
                    value,
                    f"reentrant checkpointing fails in the first step beside {setting.text}: its parameters are taken for unused "
                    "and arrive all the same (“marked as ready twice”)",
                    level=Applicability.SAFE,
                    edits=[ReplaceExpression(module.path, module.span(value), "False")],
                    evidence=[Evidence("static", f"{setting.text} in the same call", module.path, setting.node.lineno)],
                )


def given_inputs_alone(module: SourceModule, call: ast.Call, trained: Trained) -> bool:
    """True in `forward` of the wrapped model itself, where the part gets what the loader gave and nothing else: a reentrant
    checkpoint goes backward only where one of its inputs asks for a gradient (torch's documentation of `checkpoint`).
    """
    owner, function = module.class_of(call), module.function_of(call)
    if function is None or function.name != "forward" or not any(u.site.node is owner for u in trained.usages):
        return False
    names = [a.id for a in call.args[1:] if isinstance(a, ast.Name)]
    bound = [b for name in names for b in bindings_in(module, function, name)]
    plain = all(b.parameter or line_of(b.node) >= call.lineno for b in bound)
    return bool(names) and len(names) == len(call.args) - 1 and plain


def _level(project: Project, module: SourceModule, call: ast.Call, found: _Searched) -> tuple[Applicability, str]:
    given = choice_of(call)
    pin = torch_pin(project, near=module.path)
    if given is not None and is_open(call):
        return Applicability.DISPLAY, f"`{module.text_of(given.value)}` decides the kind: it has to come to use_reentrant=False"
    if pin is not None and pin.surely_below(REENTRANT_CHOICE_FROM):
        return Applicability.DISPLAY, f"{pin.text} knows no other kind: torch 1.11 does"
    said = said_torch(project, module)
    if given is None and pin is None and said.surely_below(REENTRANT_CHOICE_FROM):
        where = said.names_below(REENTRANT_CHOICE_FROM)
        return Applicability.DISPLAY, f"{where} names a torch that knows no other kind: torch 1.11 does"
    doubts = []
    if found.setting.state is not State.ON:
        doubts.append("the flag is on by the framework's default for this model")
    if found.setting.conditional:
        doubts.append("the arm of the expression that switches the flag on is taken")
    if found.trained.unknown or len(found.trained.usages) > 1:
        doubts.append("this is the model that is wrapped")
    if given is None and not (pin is not None and pin.surely_at_least(REENTRANT_CHOICE_FROM)):
        doubts.append("torch is 1.11 or newer, which the project does not pin")
    if doubts:
        return Applicability.UNSAFE, "assumes that " + "; ".join(doubts)
    return Applicability.SAFE, ""


def _places(project: Project) -> dict[str, _Searched]:
    """`path:line` of a reentrant checkpoint -> a wrapper with the flag on whose model goes through it, written flags first."""
    return project.memo("reentrant checkpoints under the flag", lambda: _find_places(project))


def _paths(project: Project) -> frozenset[str]:
    def build() -> frozenset[str]:
        return frozenset(place.rpartition(":")[0] for place in _places(project))

    return project.keep("files with reentrant checkpoints under the flag", build)


def _find_places(project: Project) -> dict[str, _Searched]:
    found: list[_Searched] = []
    paths = {p for word in (b"find_unused_parameters", b"TrainingArguments(") for p in project.files_containing(word)}
    paths |= {p for p in project.files_containing(b"strategy") if any(w in (project.read(p) or b"") for w in _LIGHTNING)}
    for path in sorted(paths):
        module = project.module(path) if not is_test_file(path) else None
        for wrapper in wrappers(project, module) if module is not None else ():
            for setting in wrapper.settings:
                if effect_of(project, wrapper, setting) is State.ON and static_graph_of(setting) is None:
                    found.append(_Searched(wrapper, setting, trained_by(project, wrapper)))
                    break
    found.sort(key=lambda f: (f.setting.state is not State.ON, f.setting.conditional))
    out: dict[str, _Searched] = {}
    for searched in found:
        for usage in searched.trained.usages:
            for place in usage.checkpoints:
                out.setdefault(place, searched)
    return out
