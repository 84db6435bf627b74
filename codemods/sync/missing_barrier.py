"""DDP302: nobody waits for what rank 0 writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.files.built_by_others import built_by_others
from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.file_flow import is_pause
from codemods.analysis.files.filled_on_demand import filled_on_demand
from codemods.analysis.guards.above_fit import is_past_before_the_others
from codemods.analysis.guards.barrier_spelling import barrier_for
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.guards.file_handover import Handover, Use, handovers
from codemods.analysis.guards.filled_by_all import filled_by_all
from codemods.analysis.guards.guard_place import guarded_call
from codemods.analysis.guards.leaders import lets_all_in
from codemods.analysis.guards.meeting_place import parted_before
from codemods.analysis.guards.merged_too_early import Merge, merges
from codemods.analysis.guards.removed_too_early import Removal, removals
from codemods.analysis.guards.told_merges import line_there, merge_evidence, merge_message
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.short_texts import shortened
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, InsertAfter, InsertBefore, PathRole, PathStep
from codemods.data.printed_errors import HALF_WRITTEN, WAITING
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARDS
from codemods.files.left_alone import left
from codemods.files.sites import Beside
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.store.project import Project


class MissingBarrier(DdpCodemod):
    """Rank 0 writes a file that every rank reads, and nobody waits for it.

    ## What it does
    Finds what rank 0 alone writes, makes, fetches, renames or removes (under a guard, behind an early return, in a decorated
    function, through functions of the project in other files, or by `trainer.save_model` of transformers), and the first place
    where every rank reads, lists, loads, asks for or writes into that path: further down in the same function, in what it calls,
    or behind the calls of the function itself. Where no collective stands between the two, puts a barrier behind the guard (or
    behind the call), in the spelling of the framework: `trainer.strategy.barrier()`, `accelerator.wait_for_everyone()`,
    `fabric.barrier()`, or `dist.barrier()`. Finds as well a loop over a rank's own share that writes files into a folder which
    every rank lists behind it: the images of a class that each rank makes a part of. And what rank 0 removes below the place
    where every rank reads it, such as first weights that all load, with nobody who waits between: the barrier goes above it.

    ## Why it matters
    The other ranks are at the read long before rank 0 has written: FileNotFoundError, a torn file, or last run's file without
    any error. Rank 0 then waits for them at its next collective until the time-out.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator


    def average(accelerator: Accelerator, model, path):
        if accelerator.is_main_process:
            torch.save(model.state_dict(), path)
        return torch.load(path, map_location="cpu")
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator


    def average(accelerator: Accelerator, model, path):
        if accelerator.is_main_process:
            torch.save(model.state_dict(), path)
        accelerator.wait_for_everyone()
        return torch.load(path, map_location="cpu")
    ```

    ## Safety
    Safe in the spellings of Lightning (in hooks, or behind `fit`), Fabric and Accelerate, which do nothing with one process,
    where every rank reaches the guard in the same way, callers included. `dist.barrier()` is unsafe: it assumes that the
    process group exists there, or it is put behind `dist.is_initialized()`. So is `trainer.strategy` where neither the pinned
    version nor the file shows Lightning 1.6 or newer.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing in `prepare_data`: only one process of a node is there, and a barrier would hang.
    - Says nothing where a collective stands between the two, also one that a project function reaches; a backward pass, the DDP
      wrapper, `prepare`, a file lock, a loop that sleeps, and calls whose names say that they wait or train count as one.
      A `time.sleep(5)` outside of a loop counts as none: it is no measure of how long rank 0 takes.
    - Says nothing where the path holds the rank, has got another value in between, or is used under a rank test too,
      be it one that a caller hands over (`Log(path, keep=rank == 0)`).
    - Says nothing where every rank makes the same folder, or writes the same file, for itself before it is used.
    - Says nothing of a cache that the other ranks ask for, and make for themselves where it is not there.
    - Says nothing above `trainer.fit()` where texts start the program by Python alone: Lightning starts the other ranks there.
    - Says nothing inside `main_process_first()` and the like, whose end is a barrier.
    - Says nothing where the guard's function is itself called under a rank test.
    - Takes `args.debug or rank == 0` for a guard of rank 0, as the setting beside it is decided for all ranks alike, and says
      nothing where a parameter of the function or a call stands there (`everywhere or rank == 0`, `not exists(path) or …`).
    - Says nothing of parts that rank 0 reads where a loop waits for them, where it reads its own alone, or where no rank or
      sample is seen in the name of what each rank writes.
    - Says nothing of what a hook writes and another hook reads: what Lightning does in between is not in the project.
    - Reports a guard that not every rank is shown to come to, or not as often, at the calls of its function too: in a branch that
      may differ, behind such an exit, in a `try` that a rank may leave, in a loop whose rounds may differ, in the workers of a
      loader. A barrier there could hang.
    - Reports a place before `trainer.fit()` in a script, or above the start of the process group, at the calls of its function
      too: the barrier would be silently nothing there.
    - Reports a path that the other branch of the guard uses: each branch needs its own barrier.
    - Reports a place where no spelling of a barrier is known, and a guard that shares its line.

    ## References
    Lightning 2.6.6 and Accelerate 1.15 on two processes: write and read with and without a barrier.
    """

    code = "DDP302"
    severity = "data"
    subject = "Wait for the first process before its files are used"
    must_show = "With the output folder deleted first, the other process finds the file."
    printed = (*HALF_WRITTEN, *WAITING)
    TRIGGERS = (
        (*GUARDS, b".save_model(", b".prepare("),
        (b"open(", b"save", b"mkdir", b"makedirs", b"copy", b".move", b"to_csv", b"to_json", b"write_", b"urlretrieve", b"dump",
         b"rename", b"replace(", b"download", b"extract", b"to_p", b"rmtree", b"remove", b"unlink", b"import"),
        (*PROCESSES, b".save_model(", b".prepare("),
    )  # fmt: skip
    SITES = (
        *RANK_GUARDS, Beside((b"Trainer",), rb"\.save_model\(", b".save_model("),
        Beside((b".prepare(", b"DistributedSampler"), rb"\b(?:iterdir|listdir|scandir|r?glob)\(", b"dir(", b"glob("),
    )  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in handovers(project, module):
            function = found.function
            if function is not None and (function.name == "prepare_data" or guarded_call(project, found.module, function)):
                left(found.module, found.anchor, "the function itself is called on some ranks alone, or is `prepare_data`")
                continue
            if any(cache.write.call is found.write.call for cache in filled_on_demand(project, found.write.module)):
                left(found.module, found.anchor, "whoever asks for the file may make it for itself: DDP307 reports these")
                continue
            if found.use.module is found.write.module and built_by_others(found.use.module, found.use.call, found.write.call):
                left(found.module, found.anchor, "the other ranks build it for themselves")
                continue
            if found.ranks is not Ranks.ALL and is_past_before_the_others(project, found.module, found.anchor):
                left(found.module, found.anchor, "Lightning starts the other ranks further down, in `fit`, and no launcher does")
                continue
            yield self._told(project, found)
        for found in filled_by_all(project, module):
            yield self._told(project, found)
        for removal in removals(project, module):
            if removal.function is None or removal.function.name != "prepare_data":
                yield self._told_of_removal(project, removal)
        for merge in merges(project, module):
            if merge.function is None or merge.function.name != "prepare_data":
                yield self._told_of_merge(project, merge)

    def _told_of_removal(self, project: Project, found: Removal) -> Finding:
        module, anchor, read = found.module, found.anchor, found.use
        barrier, level, reason = _wait_at(project, module, anchor, found.function)
        if level is not Applicability.DISPLAY and not module.is_whole(anchor):
            level, reason = Applicability.DISPLAY, "the guard is an elif, or shares its line"
        message = (
            f"rank 0 removes `{shortened(found.write.written)}` here, and every rank reads it in {line_there(module, read)} "
            f"({_called(read.module, read.call)}): nobody waits for the ranks that have not read it yet, and they get "
            "FileNotFoundError"
        )
        return self.finding(
            module, anchor, message, level=level, reason=reason,
            edits=[InsertBefore(module.path, module.span(anchor), barrier)] if barrier else [],
            evidence=[_on_every_rank(read)],
        )  # fmt: skip

    def _told_of_merge(self, project: Project, found: Merge) -> Finding:
        module, anchor = found.module, found.anchor
        barrier, level, reason = _wait_at(project, module, anchor, found.function)
        if level is not Applicability.DISPLAY and not module.is_whole(anchor):
            level, reason = Applicability.DISPLAY, "the guard is an elif, or shares its line"
        return self.finding(
            module, anchor, merge_message(found), level=level, reason=reason,
            edits=[InsertBefore(module.path, module.span(anchor), barrier)] if barrier else [],
            evidence=list(merge_evidence(found)),
        )  # fmt: skip

    def _told(self, project: Project, found: Handover) -> Finding:
        module, anchor = found.module, found.anchor
        barrier, level, reason = _wait_at(project, module, anchor, found.function)
        if found.in_branch:
            level = Applicability.DISPLAY
            reason = "the other branch of the guard uses it: it has to wait before that, and rank 0 behind its branch"
        if level is not Applicability.DISPLAY and not module.is_whole(anchor):
            level, reason = Applicability.DISPLAY, "the guard is an elif, or shares its line"
        return self.finding(
            module,
            anchor,
            _message(found, lets_all_in(project, module, anchor)),
            level=level,
            edits=[InsertAfter(module.path, module.span(anchor), barrier)] if barrier else [],
            evidence=list(_evidence(found)),
            reason=reason,
        )


def _wait_at(
    project: Project, module: SourceModule, anchor: ast.stmt, function: FunctionNode | None
) -> tuple[str, Applicability, str]:
    """(the barrier as it is written beside a guard, "" where none is known; the level of its edit; what that rests on)."""
    barrier = barrier_for(project, module, anchor, function)
    if barrier.level is Applicability.DISPLAY:
        return barrier.code, barrier.level, barrier.reason
    if parted := parted_before(project, module, anchor, function):
        return barrier.code, Applicability.DISPLAY, f"a barrier here could hang: it is not shown that {parted}"
    if later := group_comes_later(project, module, anchor):
        why = f"there is no process group yet: {later}, and a barrier above that waits for nobody"
        return barrier.code, Applicability.DISPLAY, why
    return barrier.code, barrier.level, barrier.reason


_MADE = {
    Act.WRITES: ("writes", "FileNotFoundError, or a torn or old file, on the ranks that are first"),
    Act.MAKES: ("makes the folder", "FileNotFoundError on the ranks that are first"),
    Act.FILLS: ("fills", "a missing or half-filled folder on the ranks that are first"),
    Act.REMOVES: ("removes", "what the other ranks made there is lost, or they find what was to be gone"),
}


# Whether single files are read -> what each rank does, and what the first one finds.
_OF_SHARES = {
    False: ("lists", "finds fewer files, and has a shorter data set than the others"),
    True: ("reads files of", "finds files missing, or half written"),
}


def _message(found: Handover, setting: str) -> str:
    if found.ranks is Ranks.ALL:
        does, harm = _OF_SHARES[found.use.act is Act.READS]
        return (
            f"each rank writes its own share of the files here{_from(found, found.write.module, found.write.call)}, and {does} "
            f"the folder in {_place(found, found.use.module, found.use.call)} ({_called(found.use.module, found.use.call)}) "
            f"without waiting for the others: the rank that is first {harm}"
        )
    who = "rank 0 alone" if found.ranks is Ranks.ZERO else "local rank 0 alone"
    who = f"where `{shortened(setting)}` does not let the others in, {who}" if setting else who
    does, harm = _MADE[found.write.act]
    made = f"`{shortened(found.write.written)}` " if found.write.written and not found.write.written.startswith("*") else ""
    return (
        f"{who} {does} {made}here{_from(found, found.write.module, found.write.call)}, and every rank uses it in "
        f"{_place(found, found.use.module, found.use.call)} ({_called(found.use.module, found.use.call)}) without waiting for "
        f"it: {harm}"
    )


def _from(found: Handover, module: SourceModule, call: ast.AST) -> str:
    inside = module is found.module and any(n is call for n in walk(found.anchor))
    return "" if inside else f" (in {_place(found, module, call)})"


def _place(found: Handover, module: SourceModule, call: ast.AST) -> str:
    line = line_of(call)
    return f"line {line}" if module is found.module else f"{module.path}:{line}"


def _called(module: SourceModule, call: ast.AST) -> str:
    return shortened(module.text_of(call.func if isinstance(call, ast.Call) else call))


def _evidence(found: Handover) -> Iterator[Evidence]:
    write, use = found.write, found.use
    yield from _pauses(found)
    of_all, written = found.ranks is Ranks.ALL, _called(write.module, write.call)
    step = None if of_all else PathStep(PathRole.WRITES, written)
    yield Evidence("static", f"{written} {_BY[of_all]}", write.module.path, line_of(write.call), step=step)
    for way in found.ways:
        yield _leading(way.module, way.call)
    if found.through is not None:
        yield _leading(*found.through)
    yield _on_every_rank(use)


def _leading(module: SourceModule, call: ast.AST) -> Evidence:
    called = _called(module, call)
    return Evidence("static", f"{called} leads there", module.path, line_of(call), step=PathStep(PathRole.LEADS, called))


def _on_every_rank(use: Use) -> Evidence:
    called = _called(use.module, use.call)
    step = PathStep(PathRole.USES, called)
    return Evidence("static", f"{called} on every rank", use.module.path, line_of(use.call), step=step)


def _pauses(found: Handover) -> Iterator[Evidence]:
    """`time.sleep(5)` behind the write, in its function."""
    module, end = found.module, line_of(found.through[1] if found.through is not None else found.use.call)
    for call in module.calls_named("sleep"):
        if found.anchor.lineno < call.lineno < end and module.function_of(call) is found.function and is_pause(module, call):
            yield Evidence("static", f"`{shortened(module.text_of(call))}` waits for no rank", module.path, call.lineno)


_BY = {False: "on rank 0 alone", True: "on each rank, for its own share"}
