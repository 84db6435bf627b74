"""DDP503: every rank reads a checkpoint onto the GPU that it was saved from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.one_visible_gpu import insists_on_one_gpu
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.seen_starts import runs_one_a_machine
from codemods.analysis.ranks.several_processes import is_without_rank
from codemods.analysis.short_texts import short
from codemods.analysis.unbound_names import is_unbound
from codemods.analysis.wrapped.near_wraps import near_wraps
from codemods.analysis.wrapped.resumed_states import Resumed, resumed_states, shows_processes
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, SetKeyword
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# Classes of averages have a `load_state_dict` of their own, which may keep the tensors as they come.
_OWN = lazy(r"ema|averag|shadow|swa|teacher|queue|bank", 0)
# A process that sees one card calls it GPU 0; a list of cards is for all of them.
_ONE_CARD = lazy(
    rb"environ\[[\"']CUDA_VISIBLE_DEVICES[\"']\]\s*=\s*(?:[\"']\d[\"']|[^\n,]*rank|f?(?:str\()?[\"'{]*[\w.]*gpu(?:_id)?\b)|"
    rb"set_default_device\("
)


_CATCHING = ("NameError", "Exception", "BaseException")


class LoadOnOneGpu(DdpCodemod):
    """Every rank reads the checkpoint of this training onto the GPU of the rank that saved it.

    ## What it does
    Finds `torch.load(path)` without `map_location` on every rank, where `load_state_dict` takes a state from it under the key by
    which the project saves one, or an optimizer takes the whole file into which the project saves an optimizer's state, by its
    name. Adds `map_location="cpu"`, to other loads of that file in the function as well.

    ## Why it matters
    A tensor is loaded to the device that it was saved from, and rank 0 saves from GPU 0. Each process then makes a context on
    GPU 0 and puts model and optimizer there a second time before they are copied to its own GPU: with eight processes GPU 0
    holds eight copies, and a run that fitted when it was started ends out of memory when it is resumed.

    ## Example
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel


    def resume(net, optimizer, path, gpu):
        model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return model


    def save(model, optimizer, path):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    ```

    ## Use instead
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel


    def resume(net, optimizer, path, gpu):
        model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
        state = torch.load(path, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return model


    def save(model, optimizer, path):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    ```

    ## Safety
    Safe where each state goes to `load_state_dict` of a model, an optimizer, a schedule or a scaler, which copies it to the
    device of what it fills, and all else that is read are counts. Unsafe where something else is read from the file, where the
    file is handed on, and where an average or a class of the project takes a state: it may keep the tensors where they are.

    ## Refuses
    - Says nothing where one rank alone loads, and in a file that neither wraps a model, nor starts the group, nor has an
      Accelerator, and whose function is called by no such file.
    - Says nothing in an arm beside the one that wraps the model (`if args.dist == "OFF"`), and in one for runs of one process
      (`if rank is None`).
    - Says nothing where no file of the project saves such a state under that key, or saves it from the CPU; of a file that is
      one state, where it is no optimizer's, or its name is not written out as a whole.
    - Says nothing of weights that were trained elsewhere (`args.pretrained`): where they were saved is not shown.
    - Says nothing where the resume ends in each run, as a line behind the load reads a name that nothing in the file binds.
    - Says nothing where each process sees one GPU alone (by CUDA_VISIBLE_DEVICES, or as the program asserts a
      `torch.cuda.device_count()` of 1 where it starts the group), or is the only one of its machine by each command, and where
      nothing is on a GPU.
    - Says nothing of a load with `map_location`, by position or name.
    - A repository's own tests.

    ## References
    `torch.load` and `Optimizer.load_state_dict` in torch 2.13's documentation; PyTorch's tutorial on DDP saves on one rank and
    loads with `map_location`.
    """

    code = "DDP503"
    severity = "risk"
    subject = "Load checkpoints to the CPU on every rank"
    must_show = "A resumed run goes on at its old loss, and nvidia-smi shows each process on its own GPU alone."
    printed = ("Expected all tensors to be on the same device",)
    TRIGGERS = ((b"torch",), (b"load(",), (b"load_state_dict",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        return _may_be_on_a_gpu(data) if shows_processes(data) else path in near_wraps(project)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not self.is_worth_parsing(module.path, project):
            return
        for found in resumed_states(project, module):
            if found.caller is not None and not _may_be_on_a_gpu(found.caller.data):
                continue
            if _ends_behind(module, found.load) and left(module, found.load, "the resume ends in a name that nothing binds"):
                continue
            if ranks_reaching(project, module, found.load).some or is_without_rank(project, module, found.load):
                continue
            if not project.launched and not project.observed and runs_one_a_machine(project, module, found.load):
                continue  # GPU 0 of its machine is its own
            if insists_on_one_gpu(project, module) and left(module, found.load, "the program insists on one GPU in each process"):
                continue
            yield self._tell(project, module, found)

    def _tell(self, project: Project, module: SourceModule, found: Resumed) -> Finding:
        saved = found.saved[1]
        said = f"the project saves `{found.key}` here, from the device that rank 0 trains on"
        reason = _kept(project, module, found)
        again = [Evidence("static", "the same file is read there again", module.path, load.lineno) for load in found.again]
        copied = "each state that is read goes to `load_state_dict`, which copies it to the device of what it fills"
        safe = [] if reason else [Evidence("safe", copied, module.path, found.load.lineno)]
        return self.finding(
            module, found.load,
            f"every rank reads this file onto the GPU that it was saved from: GPU 0 holds `{found.key}` once for each process",
            level=Applicability.UNSAFE if reason else Applicability.SAFE,
            edits=[SetKeyword(module.path, module.span(load), "map_location", '"cpu"') for load in (found.load, *found.again)],
            evidence=[Evidence("static", said, found.saved[0].path, saved.lineno), *_called_in(found), *safe, *again],
            reason=reason,
        )  # fmt: skip


def _ends_behind(module: SourceModule, load: ast.Call) -> bool:
    """True where a statement behind the load, in its own block, calls something of a name that nothing in the file binds."""
    statement = module.statement_of(load)
    block = next((b for b in _blocks_of(module.parent(statement)) if statement in b), [])
    behind = block[block.index(statement) + 1 :] if statement in block else []
    plain = (s.value for s in behind if isinstance(s, (ast.Expr, ast.Assign)))
    names = (n for value in plain for n in walk(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return any(is_unbound(module, n) and handler_over(module, n, _CATCHING) is None for n in names)


def _blocks_of(owner: ast.AST | None) -> Iterator[list[ast.stmt]]:
    """The lists of statements that a statement, a function or a module holds."""
    parts = (getattr(owner, part, None) for part in ("body", "orelse", "finalbody"))
    yield from (p for p in parts if isinstance(p, list))


def _called_in(found: Resumed) -> Iterator[Evidence]:
    if found.caller is not None:
        yield Evidence("static", "this file runs on several processes, and has it loaded", found.caller.path, 1)


def _may_be_on_a_gpu(data: bytes) -> bool:
    """False where each process sees one card alone, and where nothing is on one."""
    return (b"cuda" in data or b"ccelerat" in data) and not _ONE_CARD.search(data)


def _kept(project: Project, module: SourceModule, found: Resumed) -> str:
    """What may keep a tensor on the device that it is loaded to; "" where nothing does."""
    if found.others:
        return f"assumes that `{short(module, found.others[0])}` works with tensors on the CPU as well"
    for call in found.fills:
        receiver = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if not receiver or _OWN.search(last(receiver).lower()) or any(k.arg == "assign" for k in call.keywords):
            return f"assumes that `{receiver or 'load_state_dict'}` copies what it is given to its own device"
    if project.files_containing(b"def load_state_dict("):
        return "assumes that the project's own `load_state_dict` copies what it is given to its own device"
    return ""
