"""DDP706: a launcher waits for its ranks one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_members import end_of
from codemods.analysis.ranks.started_ranks import started_rank
from codemods.codemod import DdpCodemod
from codemods.findings import Evidence, Finding
from codemods.project import Project
from codemods.sites import Site
from codemods.source import SourceModule, walk

# Whoever calls one of these looks at all of the children, or ends those that are left.
_LOOKS_AFTER = ("terminate", "kill", "killpg", "poll", "is_alive", "send_signal", "waitpid", "wait3", "wait4")
_WAITS = frozenset({"join", "wait", "communicate"})


class ChildrenWaitedForInTurn(DdpCodemod):
    """A launcher that waits for its ranks one after the other, and so never sees that a later one has failed.

    ## What it does
    Finds `process.join()` and `process.wait()` in a loop over the processes that a file has started, where each of them is a
    rank (it joins the process group, or is given `RANK`, `LOCAL_RANK` or `--local_rank`), and where nothing in the file looks
    at the other children or ends them.

    ## Why it matters
    Rank 1 fails: rank 0 waits for it in the next collective, and the launcher waits for rank 0. The error stands in the log,
    the job keeps its GPUs until the time-out of the group, half an hour with gloo and ten minutes with NCCL, or for ever.

    ## Example
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def launch(world_size):
        processes = [mp.Process(target=worker, args=(rank, world_size)) for rank in range(world_size)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    import torch.multiprocessing as mp


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        train(rank)


    def launch(world_size):
        mp.spawn(worker, args=(world_size,), nprocs=world_size)
    ```

    ## Safety
    There is no fix: how the children are started and what comes of their errors is the launcher's own.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of children that are not shown to be ranks: preparation, data workers, queues.
    - Says nothing where the file looks at its children (`poll`, `is_alive`, sentinels), ends them, or waits with a time limit.
    - Says nothing of `mp.spawn`, and of a single child.

    ## References
    `torch.multiprocessing.spawn`: when one process fails, it ends the others and raises the error; torchrun does the same; a
    two-process run over gloo in which rank 1 raises.
    """

    code = "DDP706"
    TRIGGERS = ((b"Process", b"Popen"), (b".join(", b".wait(", b".communicate("))
    SITES = (Site(rb"\.(?:join|wait|communicate)\([ \t]*\)", b".join(", b".wait(", b".communicate("),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or _looks_after(module):
            return
        why = _why_ranks(module, project)
        if why is None:
            return
        for wait in module.calls_named(*_WAITS):
            if not isinstance(wait.func, ast.Attribute) or wait.args or wait.keywords:
                continue
            if (loop := _loop_over(module, wait)) is not None:
                verb = f"`{module.text_of(wait)}`"
                yield self.finding(
                    module, wait,
                    f"{verb} waits for the ranks one after the other: when a later one fails, the first waits for it in a "
                    "collective, and nobody ends the first",
                    evidence=[why, Evidence("static", "one child after the other", module.path, loop.lineno)],
                    reason="start them with torch.multiprocessing.spawn or torchrun, or look at all of them in turn (`poll()`, "
                    "`exitcode`) and end the others when one has failed",
                )  # fmt: skip


def _looks_after(module: SourceModule) -> bool:
    if any(isinstance(c.func, ast.Attribute) for c in module.calls_named(*_LOOKS_AFTER)):
        return True
    reads = [n for n in module.nodes(ast.Attribute) if n.attr in ("sentinel", "exitcode", "returncode")]
    return any(n.attr == "sentinel" or any(isinstance(up, ast.While) for up in module.ancestors(n)) for n in reads)


def _why_ranks(module: SourceModule, project: Project) -> Evidence | None:
    """What shows that the file starts ranks, several of them."""
    for call in module.calls_named("Process", "Popen"):
        if (why := started_rank(project, module, call)) and _is_repeated(module, call):
            return Evidence("static", f"a process is started: {why}", module.path, call.lineno)
    return None


def _is_repeated(module: SourceModule, call: ast.Call) -> bool:
    """True where the start stands in a loop or a comprehension, or in a function that is called in one."""
    if _repeats(module, call):
        return True
    function = module.function_of(call)
    return function is not None and any(_repeats(module, c) for c in module.calls_named(function.name))


def _repeats(module: SourceModule, node: ast.AST) -> bool:
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False


def _loop_over(module: SourceModule, wait: ast.Call) -> ast.For | ast.expr | None:
    """The loop whose variable is waited for, also the wait in a comprehension; None where it is another object."""
    assert isinstance(wait.func, ast.Attribute)
    name = dotted(wait.func.value).partition(".")[0]
    for up in module.ancestors(wait):
        if isinstance(up, ast.For) and _names(up.target, name):
            return up if not _starts_in(up) else None
        if isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            if any(_names(part.target, name) for part in up.generators):
                return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(target))


def _starts_in(loop: ast.For) -> bool:
    """True where the loop starts the child that it waits for: one runs at a time, so none is a rank beside another."""
    return any(isinstance(n, ast.Call) and end_of(n.func) in ("start", "Popen", "Process") for s in loop.body for n in walk(s))
