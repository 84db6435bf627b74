"""DDP306: a collective where there may be no process group."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.conditional_starts import conditional_starters
from codemods.analysis.guards.earlier_waits import ONLY_WAIT, callers_wait, earlier_wait, later_wait
from codemods.analysis.guards.ended_trainings import ENDS, EndedTraining, ended_trainings
from codemods.analysis.guards.entry_points import group_name
from codemods.analysis.guards.group_may_be_missing import Unguarded, unguarded
from codemods.analysis.guards.lost_groups import LostGroup, lost_groups
from codemods.analysis.names import last, qualified
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, WrapInGuard
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ASKING = Site(
    rb"init_process_group[ \t]*\(|get_dist_info[ \t]*\(|(?<![.\w])get_(?:rank|world_size|dist_rank)[ \t]*\(|"
    rb"\w\.get_rank[ \t]*\(",
    b"init_process_group", b"get_dist", b"get_rank", b"get_world_size",
)  # fmt: skip
_WAITING = Site(
    rb"\b(?:barrier|destroy_process_group)[ \t]*\([ \t]*\)|\.end_training\(",
    b"barrier",
    b"destroy_process_group",
    b"end_training",
)
# Without the call what they fill stays as it was made, `torch.empty` say: a guard would turn an error into wrong numbers.
_FILL = frozenset(
    {"all_gather", "all_gather_into_tensor", "all_gather_object", "gather", "gather_object", "reduce_scatter",
     "reduce_scatter_tensor", "scatter", "scatter_object_list", "all_to_all", "all_to_all_single"}
)  # fmt: skip


class CollectiveWithoutGroup(DdpCodemod):
    """A collective that a run with one process comes to, without a process group.

    ## What it does
    Finds calls of `torch.distributed` (barriers, reductions, `destroy_process_group`) that stand under no test for several
    processes, in a function that starts the process group under a condition, or that asks for its rank by a helper which
    works without one. Reports `dist.get_rank()` of torch itself behind such a start, and in what is called there. Finds
    barriers below a function of the project that starts the group on some of its ways only (`init_distributed_mode(args)`),
    also in what is called there; and the rank or the size that is asked for below it in the same function, where that asks
    `is_initialized()` elsewhere. Finds the group destroyed where there is none: a second time, by the process that has
    spawned the ranks, and in a helper whose caller starts the group under a condition. Puts the call under
    `is_initialized()`. Reports `accelerator.end_training()` of Accelerate from 0.34 on, which destroys the group, where the same
    function comes to a collective behind it.

    ## Why it matters
    On one GPU the program ends there: "Default process group has not been initialized", or "Process group cannot be None" when
    the training is done. Behind `end_training()` every process ends so, and the model is not saved.

    ## Example
    ```python
    import torch.distributed as dist


    def main(args):
        if args.distributed:
            dist.init_process_group("nccl")
        train(args)
        dist.destroy_process_group()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    def main(args):
        if args.distributed:
            dist.init_process_group("nccl")
        train(args)
        if dist.is_initialized():
            dist.destroy_process_group()
    ```

    ## Safety
    Safe for a barrier and for the destruction of the group where the same function starts the group under a condition: without a
    group the call could only raise. Unsafe for other collectives, whose result may be used, and where a helper alone shows that
    the function is to work without a group.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing under a test for several processes or for the rank, behind an exit without them, and where the error is caught.
    - Says nothing where the group is started on every way, or where the function does not show that there may be none.
    - Says nothing of a function all of whose calls stand below a plain start of the group.
    - Says nothing below such a function where the program cannot run without a group anyway: it wraps its model, or asks the
      group for its rank, under no test above.
    - Says nothing where the same function wraps its model under no test, or asks the environment for a variable that a launcher
      alone sets, and where a collective under no test stands above every call of the function.
    - Says nothing of collectives of a part of the ranks, and of a start under `place != -1` in what `mp.spawn` alone calls.
    - Reports a call above or below which the same way may come to another one without a test, in a function that it calls, unless
      that one is a barrier which this rule puts under a test itself.
    - Says nothing of a function that is written to work without a group and asks torch itself for the rank or the size above, or
      wraps its model there under no test.
    - Reports a call whose result is used on the spot, and a statement that shares its line.
    - Says nothing of `end_training()` where Accelerate is pinned below 0.34, where a launcher of notebooks starts the processes
      (the group stays there), and where what follows stands in an `else`, or under a test that may exclude that of the end.
    - Reports what fills a list or a tensor (`all_gather`): under a test it would stay unfilled, and be read.

    ## References
    torch 2.13: `ValueError: Default process group has not been initialized, please make sure to call init_process_group.`, and of
    `destroy_process_group`: `AssertionError: Process group cannot be None`. huggingface/transformers#37434; two processes with
    Accelerate 1.15, and its sources of 0.33 and 0.34.
    """

    code = "DDP306"
    severity = "crash"
    subject = "Ask for the group before it is used"
    must_show = "The script runs to its end on one process without a launcher, and on two with it."
    printed = ("Default process group has not been initialized", "Process group cannot be None")
    TRIGGERS = (
        (
            b"barrier(",
            b"reduce(",
            b"broadcast(",
            b"all_gather",
            b"destroy_process_group(",
            b".get_rank(",
            b".get_world_size(",
            ENDS,
        ),
        (b"torch.distributed", b"torch import distributed", ENDS),
    )
    SITES = (_ASKING, _WAITING)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        return ENDS in data or _ASKING.search(data) or bool(conditional_starters(project))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        for found in unguarded(project, module):
            told.add(found.call.lineno)
            wait = callers_wait(project, module, found.call)
            if wait is not None and left(module, found.call, f"{wait[0]}:{wait[1]} needs the group too, on every way here"):
                continue
            statement = module.statement_of(found.call)
            name = group_name(module, statement)
            alone = isinstance(statement, ast.Expr) and statement.value is found.call and module.is_whole(statement)
            end = last(qualified(module, found.call.func))
            alone = alone and end not in _FILL
            span = module.span(statement)
            before = earlier_wait(project, module, found.call) if alone and name else None
            behind = later_wait(project, module, found.call) if alone and name and before is None else None
            alone = alone and before is None and behind is None
            yield self.finding(
                module,
                found.call,
                f"with one process there may be no process group here ({found.why}), and {end} ends the program: " + _error(end),
                level=_level(found, end) if alone and name else Applicability.DISPLAY,
                edits=[WrapInGuard(module.path, span, f"{name}.is_initialized()", span)] if alone and name else [],
                evidence=[Evidence("static", found.why, found.path or module.path, found.line)],
                reason=_all_of_them(before, behind) or _reason(found, end, alone=alone, name=name),
                severity="risk",
            )
        for lost in lost_groups(project, module) if module.holds(b"destroy_process_group") else ():
            if lost.destroys.lineno not in told:
                yield self._lost(module, lost)

        for ended in ended_trainings(project, module) if module.holds(ENDS) else ():
            yield self._ended(module, ended)

    def _ended(self, module: SourceModule, found: EndedTraining) -> Finding:
        """A group that Accelerate destroys before the last collective."""
        needs = module.text_of(found.needs.func)
        since = f"{found.known} is pinned" if found.known else "from Accelerate 0.34 on"
        when = f"where {found.under} holds, " if found.under else ""
        evidence = [Evidence("static", f"`{needs}` needs the group", module.path, found.needs.lineno)]
        if found.known:
            evidence.append(Evidence("version", since, found.path, found.line))
        return self.finding(
            module,
            found.ends,
            f"{when}this destroys the process group ({since}): with several processes `{needs}` in line {found.needs.lineno} "
            f"then ends the program with `{_error('')}`",
            evidence=evidence,
            reason="call it when all is done: below the last statement that waits, gathers or saves",
        )

    def _lost(self, module: SourceModule, lost: LostGroup) -> Finding:
        """The destruction of a group that is none: put under `is_initialized()` where it stands, for all who come there."""
        statement = module.statement_of(lost.destroys)
        name = group_name(module, statement)
        alone = isinstance(statement, ast.Expr) and statement.value is lost.destroys and module.is_whole(statement)
        span = module.span(statement)
        return self.finding(
            module,
            lost.call,
            f"there is no process group here ({lost.why}): {module.text_of(lost.call.func)}() ends the program with "
            f"`{_error('destroy_process_group')}`",
            level=Applicability.SAFE if alone and name else Applicability.DISPLAY,
            edits=[WrapInGuard(module.path, span, f"{name}.is_initialized()", span)] if alone and name else [],
            evidence=[Evidence("static", lost.why, lost.path, lost.line)],
            reason="" if alone and name else "put it under `torch.distributed.is_initialized()`",
        )


def _error(end: str) -> str:
    if end == "destroy_process_group":
        return "Process group cannot be None"
    return "Default process group has not been initialized"


def _all_of_them(before: tuple[str, int] | None, behind: tuple[str, int] | None) -> str:
    """What to do where other functions need the group, too; "" where none does."""
    path, line = before or behind or ("", 0)
    if not path:
        return ""
    ends = "the program ends before," if before else "the program would end"
    return f"with one process {ends} in {path}:{line}, which needs the group too: put all of them under a test"


def _level(found: Unguarded, end: str) -> Applicability:
    return Applicability.SAFE if found.sure and end in ONLY_WAIT else Applicability.UNSAFE


def _reason(found: Unguarded, end: str, *, alone: bool, name: str) -> str:
    if end in _FILL:
        return "under a test alone, what it fills would stay as it was made: put the own values there in an `else`"
    if not alone:
        return "its result is used on the spot, or it shares its line: what stands for it without a group has to be decided"
    if not name:
        return "no import reaches torch.distributed here"
    if not found.sure:
        return "assumes that the function runs without a group too, as the helper that it asks for its rank does"
    return "" if end in ONLY_WAIT else "assumes that its result needs no stand-in where there is one process"
