"""DDP703: ranks that all work on the first GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.called_with_group import SPEAKING, words_of
from codemods.analysis.guards.entry_points import Entry, entries, starts_group
from codemods.analysis.names import dotted, is_parameter
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.rewriting.imports import in_scope
from codemods.store.project import Project

# One of these chooses the GPU of the process, or leaves it only one.
_CHOOSES = (b"set_device", b"CUDA_VISIBLE_DEVICES", b"cuda.device(", b"set_default_device",
            b"deepspeed", b"ccelerat", b"ightning")  # fmt: skip
_OTHER_OPTIONS = ("node", "machine")


class MissingSetDevice(DdpCodemod):
    """Ranks of NCCL that are spawned without a GPU of their own, and put their tensors on the current one.

    ## What it does
    Finds `init_process_group("nccl", rank=rank, ...)` in what `mp.spawn` runs, where no file on the way chooses the GPU of the
    process, and the program moves tensors by `.cuda()` or to `"cuda"` without a number. Sets the device behind the start of
    the group.

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
    - Says nothing where a file on the way chooses the device or hides the other GPUs, and in files of Lightning, Accelerate and
      DeepSpeed.
    - Says nothing of a backend that is not written down, of another one than NCCL, and of ranks that are not seen to be spawned.
    - Says nothing where all tensors go to a numbered GPU, and of `.cuda()` in the branch without several processes.
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
    TRIGGERS = ((b"init_process_group",), (b"nccl",), (b"rank",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        chosen = next((word for word in _CHOOSES if word in data), None)
        return chosen is None or not left(path, None, "the file chooses the device of a process: it holds {}", chosen.decode())

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or any(module.holds(word) for word in _CHOOSES):
            return
        for call in module.calls_named("init_process_group"):
            if not starts_group(module, call):
                continue
            if _backend(call) != "nccl" and left(module, call, "the backend is not written as 'nccl' in the call {}", call):
                continue
            spawned = [e for e in entries(project, module, call) if e.call is None and e.function is not None]
            if not spawned and left(module, call, "the ranks that start this group are not seen to be spawned by the project"):
                continue
            if (bare := _bare(project, module, spawned)) is None:
                continue
            holder, place = bare
            edits, reason = _repair(module, call)
            yield self.finding(
                module, call,
                f"no process chooses its GPU, and `{_short(holder, place)}` takes the current one: all ranks work on the first "
                "GPU, where NCCL refuses them or the memory runs out",
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[Evidence("static", "takes the current GPU", holder.path, place.lineno)],
                reason=reason,
            )  # fmt: skip


def _backend(call: ast.Call) -> str:
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
    return str(given.value) if isinstance(given, ast.Constant) else ""


def _bare(project: Project, module: SourceModule, spawned: list[Entry]) -> tuple[SourceModule, ast.Call] | None:
    """A tensor that goes to the current GPU, in the file of the group or of the rank; None where one of them chooses it."""
    files = {module.path: module, **{e.module.path: e.module for e in spawned}}
    for holder in list(files.values()):
        for path in _imported(project, holder):
            if any(word in (project.read(path) or b"") for word in _CHOOSES):
                left(holder, None, "the imported file {} chooses the device of a process", path)
                return None
    for holder in files.values():
        if any(holder.holds(word) for word in _CHOOSES) and left(module, None, "{} chooses the device of a process", holder.path):
            return None
    for holder in files.values():
        for call in holder.calls_named("cuda", "to"):
            if isinstance(call.func, ast.Attribute) and _is_bare(call) and not _is_alone(holder, call):
                return holder, call
    left(module, None, "no `.cuda()` or `.to(\"cuda\")` without a number is seen in the files of the group and of the rank")
    return None


def _imported(project: Project, module: SourceModule) -> set[str]:
    """The files of the project that a file imports."""
    targets = {i.dotted for found in module.imports.values() for i in found}
    resolved = (project.resolve(t, module.path) for t in targets)
    return {r.path for r in resolved if r is not None}


def _is_bare(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "cuda":
        return not call.args and not call.keywords and dotted(call.func) != "torch.cuda"
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == "cuda"


def _is_alone(module: SourceModule, node: ast.AST) -> bool:
    """True in a branch of a test for several processes, and of a script's top level, which the parent runs as well."""
    if module.function_of(node) is None:
        return True
    for up in module.ancestors(node):
        if isinstance(up, ast.If):
            words = words_of(up.test)
            if any(s in w.lower() for w in words for s in (*SPEAKING, "rank", "gpu")):
                return True
    return False


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
