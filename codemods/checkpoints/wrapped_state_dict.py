"""DDP502: the state of a DDP wrapper, or the wrapper itself, in a checkpoint that a bare model is to be made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.wrapped.bare_states import BareState, bare_states
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.made_objects import may_hold_wrapper
from codemods.analysis.wrapped.other_readers import OtherReader, other_readers
from codemods.analysis.wrapped.own_shards import OwnShard, own_shards
from codemods.analysis.wrapped.passing_on import passes_on
from codemods.analysis.wrapped.saved_states import Loaded, Saved, copied_wrappers, load_of, saved_wrappers
from codemods.analysis.wrapped.stripped_states import StrippedState, stripped_states
from codemods.analysis.wrapped.way_inside import way_inside
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class WrappedStateDict(DdpCodemod):
    """A checkpoint that holds the state of a DDP wrapper, or the wrapper itself.

    ## What it does
    Finds `torch.save` of a wrapper's `state_dict()`, in a function that is handed the dict as well, where the project loads such
    a file into a bare model and nothing takes `module.` off the keys, and `torch.save` of the wrapper itself. The module inside
    is saved instead. Reports `deepcopy` of a wrapper, as for a moving average of the weights. Finds the other way round, too: a
    load into the wrapper of what the project saves of the model inside only, or of a state whose keys lose `module.` first.
    Reports an optimizer's own `state_dict()` that rank 0 saves beside the full state of an FSDP model.

    ## Why it matters
    The keys of the wrapper begin with `module.`. A bare model of the same class refuses them all, on the day the run is resumed
    or evaluated; with `strict=False`, or where the keys that it has are picked out, it takes none of them, says nothing, and
    trains or predicts with its first weights. A wrapper that was pickled whole asks for a process group where it is loaded.

    ## Example
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, path, resume):
        if resume:
            net.load_state_dict(torch.load(path))
        model = DDP(net)
        torch.save(model.state_dict(), path)
    ```

    ## Use instead
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(net, path, resume):
        if resume:
            net.load_state_dict(torch.load(path))
        model = DDP(net)
        torch.save(model.module.state_dict(), path)
    ```

    ## Safety
    Unsafe: files that were written before keep their keys, and a reader outside the project may have learned to strip them.

    ## Refuses
    - Says nothing where no load into a bare model (`DataParallel` is none) is seen of the same class, or of the variable that
      is wrapped later, under the same key.
    - Says nothing where the file that loads takes `module.` off, or puts it on, and where a test distinguishes wrapper and model.
    - Says nothing of a load in a file that saves bare models under that key itself, of a file of another name, and where
      nobody runs the load.
    - Says nothing of a load from a file with given weights (`pretrained`, `backbone`, ...): another program wrote it.
    - Says nothing where all configurations of Accelerate are for DeepSpeed or FSDP.
    - Reports where no name of the Accelerator is in reach, and where another place reads the same key: a load into the wrapper,
      or into `DataParallel`, would no longer find its keys.
    - Says nothing of a load where `module.` is taken off under a test, or put on again somewhere in the file.
    - Says nothing of a load into the wrapper where a part of the project saves the keys of one, or what it saves is not seen.
    - Says nothing of an optimizer's state in a project that gathers such states (`FSDP.optim_state_dict`), that knows `NO_SHARD`,
      and where each rank saves its own.
    - Reports a copy: what updates it may go by the names of the wrapper's parameters.
    - A repository's own tests.

    ## References
    `DistributedDataParallel.__setstate__` asks for the default process group (torch 2.13). A run on two processes: the moments
    of an optimizer over an FSDP model are those of the rank's half of the parameters.
    """

    code = "DDP502"
    severity = "data"
    subject = "Save the module inside the DDP wrapper"
    must_show = (
        "A checkpoint that was written on two processes loads into a bare model, and its keys do not begin with `module.`."
    )
    printed = ("Error(s) in loading state_dict",)
    TRIGGERS = ((b".save(", b"deepcopy(", b".load_state_dict(", b".state_dict()"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        near = may_hold_wrapper(project, path) or b"FULL_STATE_DICT" in (project.read(path) or b"")
        return near or not left(path, None, "no DDP wrapper is seen to come to this file")

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for shard in {id(s.state): s for s in reversed(list(own_shards(project, module)))}.values():  # saved twice, told once
            yield self._tell_shard(module, shard)
        if not may_hold_wrapper(project, module.path):
            return
        for saved in saved_wrappers(project, module):
            load = load_of(project, module, saved) if saved.state else None
            if saved.state and load is None and left(module, saved.node, "no load of this state into a bare model is seen"):
                continue
            if passes_on(project, saved.wrapped) and left(module, saved.node, "the wrapper hands attributes on to its module"):
                continue
            yield self._tell(module, project, saved, load)

        for found in bare_states(project, module) if module.holds(b".load_state_dict(") else ():
            if not is_run_by_nobody(project, module, found.call):
                yield self._tell_bare(module, project, found)
        for call, node, wrapped in copied_wrappers(project, module):
            if not passes_on(project, wrapped):
                yield self._tell_copy(module, project, call, node, wrapped)
        for lost in stripped_states(project, module) if module.holds(b".load_state_dict(") else ():
            if not is_run_by_nobody(project, module, lost.call):
                yield self._tell_stripped(module, project, lost)

    def _tell_shard(self, module: SourceModule, found: OwnShard) -> Finding:
        return self.finding(
            module,
            found.state,
            f"under FSDP `{module.text_of(found.state)}` holds the shards of this rank alone, and rank 0 saves its own: what the "
            "optimizer knows on the other ranks is not in the file",
            evidence=[
                Evidence("static", "the whole state of the model is asked for", module.path, found.full.lineno),
                Evidence("static", "rank 0 saves it", module.path, found.saved.lineno),
            ],
            reason="ask on every rank for `FSDP.optim_state_dict(model, optimizer)`, and load what "
            "`FSDP.optim_state_dict_to_load` makes of it",
        )

    def _tell_stripped(self, module: SourceModule, project: Project, found: StrippedState) -> Finding:
        where = f"line {line_of(found.stripped)}" if found.stripped_in is module else _place(found)
        shown = Evidence("static", "the keys lose `module.`", found.stripped_in.path, line_of(found.stripped))
        why = f"; {where} takes it off, and the load"
        return self._tell_load(module, project, found, why, shown, "assumes that the keys of the file are those of the model")

    def _tell_bare(self, module: SourceModule, project: Project, found: BareState) -> Finding:
        place = found.saved_in.path, found.saved.lineno
        shown = Evidence("static", "what is saved has the keys of the bare model", *place)
        why = f", and {place[0]}:{place[1]} saves the model inside: the load"
        return self._tell_load(module, project, found, why, shown, "assumes that the file comes from this training")

    def _tell_load(
        self, module: SourceModule, project: Project, found: StrippedState | BareState, why: str, shown: Evidence, assumes: str
    ) -> Finding:
        """A load into the wrapper of keys without its prefix."""
        receiver = module.text_of(found.node)
        inside, doubt = way_inside(project, module, found.node, found.wrapped, receiver)
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(found.node), inside)] if inside and not doubt else []
        come = "raises an error for every key" if found.strict else "takes none of them with strict=False, and says nothing"
        some = "" if found.wrapped.always and not found.wrapped.prepared else " where several processes run"
        wrapped = Evidence("static", "the model is wrapped", found.wrapped.module.path, found.wrapped.wrap.lineno)
        return self.finding(
            module,
            found.call,
            f"`{receiver}` is the DDP wrapper{some}, whose keys begin with `module.`{why} {come}",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[wrapped, shown],
            reason=assumes if edits else f"write `{inside or 'the module inside'}`; {doubt}",
        )

    def _tell_copy(
        self, module: SourceModule, project: Project, call: ast.Call, node: ast.expr, wrapped: Wrapped
    ) -> Finding:
        receiver = module.text_of(node)
        inside, doubt = way_inside(project, module, node, wrapped, receiver)
        message = (
            f"`{module.text_of(call)}` copies the DDP wrapper: the keys of the copy's state begin with `module.`, it has no "
            "attribute of the model, and where the model has buffers its forward waits for all ranks"
        )
        reason = f"write `deepcopy({inside or 'the module inside'})`, and go by the names of that module where it is updated"
        evidence = [Evidence("static", "the model is wrapped", wrapped.module.path, wrapped.wrap.lineno)]
        return self.finding(module, call, message, evidence=evidence, reason=f"{reason}; {doubt}" if doubt else reason)

    def _tell(self, module: SourceModule, project: Project, saved: Saved, load: Loaded | None) -> Finding:
        receiver = module.text_of(saved.node)
        inside, doubt = way_inside(project, module, saved.node, saved.wrapped, receiver)
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(saved.node), inside)] if inside and not doubt else []
        evidence = [Evidence("static", "the model is wrapped", saved.wrapped.module.path, saved.wrapped.wrap.lineno)]
        if load is not None:
            evidence.append(Evidence("static", "a bare model loads it", load.module.path, load.call.lineno))
        if edits and saved.state and (readers := other_readers(project, saved)):
            doubt, edits = _of_readers(readers), []
        reason = "assumes that nothing outside the project expects the wrapper in this file" if edits else (
            f"write `{inside or 'the module inside'}`; {doubt}"
        )  # fmt: skip
        return self.finding(
            module, saved.node, _message(receiver, saved, load), level=_UNSAFE if edits else _DISPLAY, edits=edits,
            evidence=evidence, reason=reason,
        )  # fmt: skip


def _of_readers(readers: tuple[OtherReader, ...]) -> str:
    first = f"{readers[0].module.path}:{readers[0].line} (`{readers[0].text}`)"
    if len(readers) == 1:
        return f"{first} reads the keys too, and may expect `module.`: change both at once"
    *places, last_one = [first, *(f"{r.module.path}:{r.line}" for r in readers[1:])]
    return f"{', '.join(places)} and {last_one} read the keys too, and may expect `module.`: change all of them at once"


def _place(found: StrippedState) -> str:
    return f"{found.stripped_in.path}:{line_of(found.stripped)}"


def _message(receiver: str, saved: Saved, load: Loaded | None) -> str:
    if load is None:
        return (
            f"`{receiver}` is saved as the DDP wrapper: where it is loaded without a process group, the load ends with “Default "
            "process group has not been initialized”, and what it gives is a wrapper"
        )
    where = f"{load.module.path}:{load.call.lineno}"
    come = "raises an error for every key" if load.strict else "takes none of them with strict=False, and says nothing"
    if load.picked:
        come = "takes those alone whose keys it has: none of them, and says nothing"
    return (
        f"`{receiver}.state_dict()` of the DDP wrapper is saved: its keys begin with `module.`, and the bare model at "
        f"{where} {come}"
    )
