"""DDP717: a parent and the workers that it spawns, of which one takes for its own what the other has in memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.processes.left_attributes import left_attributes
from codemods.analysis.processes.left_behind import LeftBehind, left_behind
from codemods.analysis.processes.left_models import left_models
from codemods.analysis.processes.main_block_names import MissingName, names_of_main_block
from codemods.analysis.processes.parent_groups import destroyed_by_parent
from codemods.analysis.processes.starts import Start, starts_in
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule, line_of, walk
from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project


class MemoryOfEachProcess(DdpCodemod):
    """A parent and the workers that it spawns, of which one relies on what only the other has in memory.

    ## What it does
    Finds, round `mp.spawn`, `start_processes` and `Process` with the start method `spawn`: lists, dicts and arrays that are made
    empty, filled by the workers, and read by the parent afterwards; a model on the CPU that each worker moves to its GPU and
    trains, and that the parent then saves; attributes that the workers put on a function and the parent reads; names that the
    workers read and only the block under `if __name__ == "__main__":` binds; and `destroy_process_group` of a parent in which
    nothing has made a group.

    ## Why it matters
    A spawned process is a fresh interpreter. It gets copies of its arguments, imports the file without the block under
    `__main__`, and takes all it has changed with it when it ends. The parent draws empty curves and saves untrained weights, and
    nothing fails. What the block alone binds is a NameError in each worker; the group that the parent does not have an
    AssertionError behind the whole training.

    ## Example
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size, losses):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        for loss in train(rank):
            losses.append(loss)


    def main(world_size):
        losses = []
        mp.spawn(worker, args=(world_size, losses), nprocs=world_size)
        print(min(losses))
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size, losses):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        for loss in train(rank):
            losses.append(loss)


    def main(world_size):
        losses = mp.Manager().list()
        mp.spawn(worker, args=(world_size, losses), nprocs=world_size)
        print(min(losses))
    ```

    ## Safety
    There is no fix: whether the workers write a file, send a message or share an object is the program's own.

    ## Refuses
    - Says nothing of what is shared: tensors, which torch.multiprocessing shares when they are handed over, `Manager()`, `Queue`,
      `Value`, `Array`; of models that are on a GPU or shared already; and of files.
    - Says nothing where the parent, too, fills the object or binds it again, or hands it to what may fill it.
    - Says nothing of workers that are not waited for (`join=False`), and of `start_processes` with another start method: forked
      processes see what the block under `__main__` has bound.
    - Says nothing of names that the file binds in any other way, and below a handler that takes NameError.
    - Says nothing of a group that something else in the file may have made, and below a `try`.
    - Says nothing in a repository's own tests and in notebooks.

    ## References
    The Python library reference, multiprocessing: contexts and start methods, and "safe importing of main module". Measured with
    torch 2.13: `mp.spawn` spawns even with `start_method="fork"`; tensors on the CPU and the parameters of a model are shared
    until a worker moves them; `destroy_process_group` says "Process group cannot be None".
    """

    code = "DDP717"
    severity = "crash"
    TRIGGERS = ((b"multiprocessing",), (b"spawn(", b"start_processes(", b"Process("))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.path.endswith(NOTEBOOK):
            return
        told: set[tuple[int, str]] = set()
        for start in starts_in(project, module):
            for found in self._of(project, module, start):
                if (key := (found.span.line, found.message)) not in told:
                    told.add(key)
                    yield found

    def _of(self, project: Project, module: SourceModule, start: Start) -> Iterator[Finding]:
        started = Evidence("static", "the workers are spawned here", module.path, start.call.lineno)
        if left := list(left_behind(project, module, start)):
            yield self._filled(module, left, started)
        yield from self._models(module, start, started)
        for put in left_attributes(project, module, start):
            text = module.text_of(put.read)
            yield self.finding(
                module, put.read,
                f"the workers put `{text}` (line {put.put.lineno}) on a function of their own process: the parent's "
                "has none, and the parent ends here with AttributeError",
                evidence=[started], reason="write it to a file in rank 0, or send it through a queue",
            )  # fmt: skip
        for name in names_of_main_block(project, module, start):
            also = f" (also in line {', '.join(map(str, name.others[:4]))})" if name.others else ""
            yield self.finding(
                module, name.name,
                f'only the block under `if __name__ == "__main__":` binds `{name.name.id}`{also}, and a spawned worker does '
                "not run it: each one that comes here ends with NameError",
                evidence=[started, Evidence("static", "the block that binds it", module.path, name.bound.lineno)],
                reason=_remedy(name),
            )  # fmt: skip
        if (call := destroyed_by_parent(project, module, start)) is not None:
            yield self.finding(
                module, call,
                "only the workers make a process group: the parent, which destroys one here, has none and ends with "
                "AssertionError when all is done",
                evidence=[started], reason="destroy the group at the end of the worker",
            )  # fmt: skip

    def _filled(self, module: SourceModule, left: list[LeftBehind], started: Evidence) -> Finding:
        names = " and ".join(f"`{f.name}`" for f in left[:3]) + (" and others" if len(left) > 3 else "")
        one = len(left) == 1
        lines = ", ".join(map(str, sorted({f.read.lineno for f in left})[:4]))
        first = left[0].change
        return self.finding(
            module, left[0].made,
            f"each worker fills {'a copy' if one else 'copies'} of {names} that {'is' if one else 'are'} gone when it ends: the "
            f"parent reads {'it' if one else 'them'} in line {lines} as {'it was' if one else 'they were'} made here",
            evidence=[started, Evidence("static", "a worker fills it here", first.module.path, line_of(first.node))],
            reason="write it to a file in rank 0, send it through a queue, or make it by `mp.Manager()`", severity="data",
        )  # fmt: skip

    def _models(self, module: SourceModule, start: Start, started: Evidence) -> Iterator[Finding]:
        for model in left_models(module, start):
            moved = Evidence("static", "the worker's model leaves the parent's", start.worker.module.path, model.moved.lineno)
            yield self.finding(
                module, model.read,
                f"`{model.name}` is as it was before the training: each worker moves its model to its GPU and trains it "
                f"there, and the parent's stays on the CPU ({model.on})",
                evidence=[started, moved], severity="data",
                reason="save the weights in rank 0, in the worker, and load them here",
            )  # fmt: skip


def _remedy(name: MissingName) -> str:
    """A module cannot be handed to a worker, and what the block has set up by it (`wandb.init`) is the parent's alone."""
    imports = (n for s in name.bound.body for n in walk(s) if isinstance(n, (ast.Import, ast.ImportFrom)))
    if any((a.asname or a.name.partition(".")[0]) == name.name.id for n in imports for a in n.names):
        return "import it at the top of the file; what the block sets up by it is the parent's alone: the worker needs its own"
    return "hand it to the worker as an argument, or bind it outside of the block"
