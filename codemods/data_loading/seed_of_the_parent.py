"""DDP413: the parent of spawned ranks seeds itself, and the ranks start unseeded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.seeds import handed_seeds, seeds_in
from codemods.analysis.loading.spawned import calls_in, spawns_in
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule, called_name, walk_scope
from codemods.store.project import Project

_DEPTH = 3  # calls of calls of a worker that are looked at for a seed
_REASON = "seed in `{}`, which each process runs: `torch.manual_seed(seed + rank)`"


class SeedOfTheParent(DdpCodemod):
    """A seed that the parent of spawned ranks sets, and that no rank gets.

    ## What it does
    Finds a function, or a block under `__main__`, that seeds the random numbers and then starts the ranks with
    `torch.multiprocessing.spawn`, by itself or by a helper, where nothing that the ranks run seeds anything.

    ## Why it matters
    `spawn` starts fresh interpreters: they have nothing of the random numbers of their parent. `--seed 1` twice gives two
    different runs. Masks, orders and splits that are taken for the same on all ranks differ. Nothing fails.

    ## Example
    ```python
    import torch
    import torch.multiprocessing as mp


    def worker(rank, args):
        torch.distributed.init_process_group("nccl", rank=rank, world_size=args.gpus)
        torch.randn(4)


    def main(args):
        torch.manual_seed(args.seed)
        mp.spawn(worker, nprocs=args.gpus, args=(args,))
    ```

    ## Use instead
    ```python
    import torch
    import torch.multiprocessing as mp


    def worker(rank, args):
        torch.distributed.init_process_group("nccl", rank=rank, world_size=args.gpus)
        torch.manual_seed(args.seed + rank)
        torch.randn(4)


    def main(args):
        mp.spawn(worker, nprocs=args.gpus, args=(args,))
    ```

    ## Safety
    There is no fix: whether the ranks want the same numbers or others is a decision, and so is where they need them.

    ## Refuses
    - Says nothing where the worker, or what it calls, seeds, or hands a seed on (`seed=`), by any name with "seed" in it.
    - Says nothing of a seed at the top of a file: fresh interpreters import the file, and run it.
    - Says nothing where the start method is "fork", whose children have the parent's numbers.
    - Says nothing where the worker is not seen.
    - Says nothing of seeds behind the start, and of a repository's own tests.

    ## References
    `torch.multiprocessing.spawn` (start method "spawn"); Python's `multiprocessing`, contexts and start methods. Runs with torch
    2.13: two processes with one seed of the parent draw different numbers in each run.
    """

    code = "DDP413"
    severity = "data"
    subject = "Seed in the processes that spawn starts"
    must_show = "Two runs on two processes with one seed draw the same numbers."
    printed = ()
    TRIGGERS = ((b"seed",), (b"spawn", b"launch"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"spawn("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        seeds = {id(s.call): s.call for s in (*seeds_in(module), *handed_seeds(project, module)) if not s.own}
        done: set[int] = set()
        for call in sorted(seeds.values(), key=lambda c: (c.lineno, c.col_offset)):
            function = module.function_of(call)
            if id(function) in done or (function is None and call not in calls_in(module, None)):
                continue
            done.add(id(function))
            for spawn in spawns_in(project, module, function):
                if spawn.call.lineno > call.lineno and not _is_seeded(project, spawn.worker, 0, set()):
                    yield self._tell(module, call, spawn.call, spawn.worker)
                    break

    def _tell(self, module: SourceModule, seed: ast.Call, start: ast.Call, worker: FunctionSite) -> Finding:
        name = worker.node.name
        return self.finding(
            module,
            seed,
            f"`{short(module, seed)}` seeds the parent alone: the processes that line {start.lineno} starts run `{name}` as "
            "fresh interpreters, and this seed has no effect on what they draw",
            evidence=[
                Evidence("static", "the processes are started here", module.path, start.lineno),
                Evidence("static", "nothing that they run seeds", worker.module.path, worker.node.lineno),
            ],
            reason=_REASON.format(name),
        )


def _is_seeded(project: Project, site: FunctionSite, depth: int, seen: set[tuple[str, int, int]]) -> bool:
    """True where a function, or one that it calls, seeds by any name."""
    if site.key in seen or depth > _DEPTH:
        return False
    seen.add(site.key)
    for call in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)):
        if "seed" in called_name(call).lower():
            return True
        if any(k.arg is not None and "seed" in k.arg.lower() for k in call.keywords):
            return True  # handed on, to a sampler or to the workers of a loader
        inner = called_function(project, site.module, call)
        if inner is not None and _is_seeded(project, inner, depth + 1, seen):
            return True
    return False
