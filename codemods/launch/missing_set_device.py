"""DDP703: ranks that all work on the first GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.entry_points import entries, starts_group
from codemods.analysis.names import is_parameter
from codemods.analysis.ranks.current_gpu import CHOOSES, on_current_gpu, starts_one_for_each_gpu
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.rewriting.imports import in_scope
from codemods.store.project import Project

_HARM = {
    True: "all ranks work on the first GPU, where NCCL refuses them or the memory runs out",
    False: "in every process that is the first GPU, whose memory runs out, and not the one of the rank",
}
_OTHER_OPTIONS = ("node", "machine")


class MissingSetDevice(DdpCodemod):
    """Ranks of NCCL that are spawned without a GPU of their own, and put their tensors on the current one.

    ## What it does
    Finds `init_process_group("nccl", rank=rank, ...)` in what `mp.spawn` runs, where no file of the program chooses the GPU of
    the process, and the ranks come to a `.cuda()`, a move to `"cuda"` without a number, or a collective of objects
    (`broadcast_object_list`), which NCCL sends from the current GPU. So with a group of gloo, where one rank is started for each
    GPU. Sets the device behind the start of the group.

    ## Why it matters
    The current GPU of each process is the first one. All ranks put their model there: the memory of one GPU runs out, NCCL
    says "Duplicate GPU detected", or DDP refuses a model that is not on the GPU in `device_ids`.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        model = build().cuda()
        train(rank, model)


    if __name__ == "__main__":
        mp.spawn(worker, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.cuda.set_device(rank)
        model = build().cuda()
        train(rank, model)


    if __name__ == "__main__":
        mp.spawn(worker, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
    ```

    ## Safety
    Unsafe: it assumes one node, where the rank is the number of the GPU.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where a file of the program chooses the device or hides the other GPUs, and in programs of Lightning,
      Accelerate and DeepSpeed.
    - Says nothing of a backend that is not written down, of gloo where the number of ranks is another than that of the GPUs, and
      of ranks that are not seen to be spawned.
    - Says nothing where all tensors go to a numbered GPU, and of `.cuda()` in the branch without several processes.
    - Says nothing of a collective of objects in a group of its own, or with a device, and under a test of something else.
    - Reports a rank that is no parameter of the function, and a script that takes a number of nodes.

    ## References
    `torch.distributed`: "the device used is given by torch.cuda.current_device() and it is the user's responsibility to ensure
    that this is set so that each rank has an individual GPU, via torch.cuda.set_device()".
    """

    code = "DDP703"
    severity = "crash"
    subject = "Give each spawned rank its GPU"
    must_show = "`nvidia-smi` shows a process on each GPU, and none of them twice on the first."
    printed = ("Duplicate GPU detected", "CUDA error: invalid device ordinal", "CUDA out of memory")
    TRIGGERS = ((b"init_process_group",), (b"nccl", b"gloo"), (b"rank",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        chosen = next((word for word in CHOOSES if word in data), None)
        return chosen is None or not left(path, None, "the file chooses the device of a process: it holds {}", chosen.decode())

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or any(module.holds(word) for word in CHOOSES):
            return
        for call in module.calls_named("init_process_group"):
            if not starts_group(module, call):
                continue
            backend = _backend(call)
            if backend not in ("nccl", "gloo") and left(module, call, "the backend is not written in the call {}", call):
                continue
            spawned = [e for e in entries(project, module, call) if e.call is None and e.function is not None]
            if not spawned and left(module, call, "the ranks that start this group are not seen to be spawned by the project"):
                continue
            nccl = backend == "nccl"
            counted = nccl or all(starts_one_for_each_gpu(project, e) for e in spawned)
            if not counted and left(module, call, "the group is one of gloo, and not shown to have a rank for each GPU"):
                continue
            if (found := on_current_gpu(project, module, call, spawned, nccl=nccl)) is None:
                left(module, call, 'the ranks are not seen to come to a `.cuda()` or `.to("cuda")` without a number')
                continue
            holder, place = found
            edits, reason = _repair(module, call)
            yield self.finding(
                module, call,
                f"no process chooses its GPU, and `{_short(holder, place)}` takes the current one: {_HARM[nccl]}",
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[Evidence("static", "takes the current GPU", holder.path, place.lineno)],
                reason=reason,
            )  # fmt: skip


def _backend(call: ast.Call) -> str:
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
    return str(given.value) if isinstance(given, ast.Constant) else ""


def _repair(module: SourceModule, call: ast.Call) -> tuple[list[Edit], str]:
    rank = next((k.value for k in call.keywords if k.arg == "rank"), None)
    name = rank.id if isinstance(rank, ast.Name) else ""
    statement = module.statement_of(call)
    torch = in_scope(module, lambda dotted_name: dotted_name == "torch")
    options = [str(a.value) for c in module.calls_named("add_argument") for a in c.args if isinstance(a, ast.Constant)]
    if any(word in option for option in options for word in _OTHER_OPTIONS):
        return [], "the script takes several nodes: set the device by the rank within the node"
    if not name or not is_parameter(module, name, call) or torch is None or not module.is_whole(statement):
        return [], "call torch.cuda.set_device with the number of the GPU before the first tensor goes there"
    if not isinstance(statement, ast.Expr):
        return [], "call torch.cuda.set_device with the number of the GPU before the first tensor goes there"
    assumed = "assumes one node, where the rank is the number of the GPU"
    return [InsertAfter(module.path, module.span(statement), f"{torch}.cuda.set_device({name})")], assumed


def _short(module: SourceModule, node: ast.AST) -> str:
    text = " ".join(module.text_of(node).split())
    return text if len(text) <= 60 else "…" + text[-58:]
