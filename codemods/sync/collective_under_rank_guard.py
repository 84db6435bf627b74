"""DDP301: a collective that only some ranks reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.guard_place import Repair
from codemods.analysis.guards.guard_repairs import repair
from codemods.analysis.guards.guarded_collectives import AFTER_EVALUATION, Guarded, guarded_collectives, later_collective
from codemods.analysis.ranks.collectives import PENDING
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.uneven_collectives import uneven_collectives
from codemods.codemod import DdpCodemod
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARD
from codemods.findings import Applicability, Evidence, Finding
from codemods.project import Project
from codemods.source import SourceModule

_WHO = {
    Ranks.ZERO: "rank 0", Ranks.LOCAL_ZERO: "local rank 0 of each node",
    Ranks.OTHERS: "the ranks other than 0", Ranks.LOCAL_OTHERS: "the ranks other than local rank 0",
}  # fmt: skip


class CollectiveUnderRankGuard(DdpCodemod):
    """A collective under a rank guard: the other ranks never come to it.

    ## What it does
    Finds collectives that a rank test keeps from some ranks: `torch.distributed`, Lightning's strategy and Fabric, Accelerate,
    the HF Trainer, and the hidden ones (`trainer.save_checkpoint` since Lightning 2.1.0, `trainer.callback_metrics`,
    `trainer.log_dir`, `self.log(..., sync_dist=True)`, `Metric.compute()`), also where a project function reaches one. Takes
    the guard off where nothing else stands under it, moves collectives at the head or the end of the guarded block out of it,
    moves reads of Trainer properties above it, and turns an early return by rank into a guard.

    ## Why it matters
    A collective waits until every rank has made the same call. Rank 0 alone waits for ever, until the time-out of the process
    group (10 or 30 minutes), or it is paired with the next collective of the others and both get garbage without an error.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def save(model, path):
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
            # the others read it next
            dist.barrier()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def save(model, path):
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
        # the others read it next
        dist.barrier()
    ```

    ## Safety
    Safe where the rank test is the whole guard (or the rest of it is the same on every rank), every rank comes to the guard,
    and the collective needs nothing that is made inside. The file output stays on rank 0. One process alone runs the same
    statements in the same order as before. Unsafe, with the assumption named: `accelerator.save_state` (under plain DDP it does
    not hang), `trainer.save_checkpoint` without a pinned version, conditions round the guard that may differ between ranks, reads
    under further conditions, and `torch.distributed` where a single process may have no group and the guard kept it away.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where the other ranks have a collective of their own: zero-first pairs, `gather` with different arguments,
      barriers at both exits.
    - Says nothing of groups of ranks (`group=`), of `is_initialized()` tests and of `rank == src`, whose ranks are not shown.
    - Says nothing where the other branch makes calls, or another rank has the same call: it may be the other half of a
      protocol.
    - Says nothing of `torch.save`, `state_dict()`, `save_pretrained`, `accelerator.save`: no collectives under plain DDP.
    - Says nothing of `trainer.save_checkpoint` where every allowed Lightning is older than 2.1.0.
    - Says nothing of metrics that are read under a guard behind the evaluation, where no collective follows.
    - Tells a project function that reaches a collective: the rest of the function would run on every rank too.
    - Tells `trainer.fit`, `test`, `evaluate` and the like: whether all ranks should run them is a decision.
    - Tells a collective in the middle of the guarded block, one that needs a name or an attribute made inside, and one that
      shares its line.
    - Tells a read of a Trainer property in a function that is no hook, and whatever stands in `prepare_data`.
    - Tells a guarded block that can be left before its last collective, or that ends in a comment.
    - Tells a result, or a tensor reduced in place, that is used outside the guard, and names that other ranks may not have.
    - Tells whatever stands in an exception handler.
    - Tells a test with more operands that cannot be taken apart, an `else`, an `elif`, two guards, a conditional expression.
    - Tells a decorated function, and a function that is called under a guard itself.
    - Tells a collective in a loop over, or under a test of, what only rank 0 set; it is silent where that is broadcast first.
    - Tells a model that rank 0 runs through the DDP wrapper before it unwraps it.
    - Tells an epoch-level log on one rank where Lightning 1.7 is not shown; older ones reduce it all the same.
    - Tells an early return that gives a value, or behind which the function can be left once more.

    ## References
    Lightning issues #18148 and #19045; runs on two gloo processes with torch 2.13, Lightning 2.6.6 and 1.9.5, Accelerate 1.15.
    """

    code = "DDP301"
    TRIGGERS = (GUARDS, PROCESSES)
    SITE = RANK_GUARD
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for sites in grouped(guarded_collectives(project, module)):
            made = repair(project, module, sites)
            first = sites[0]
            yield self.finding(
                module,
                first.node,
                message(project, module, sites),
                level=made.level if made.edits else Applicability.DISPLAY,
                edits=made.edits,
                evidence=list(paths(module, first)),
                reason=reason(made),
            )
        for found in uneven_collectives(project, module):
            line, text = found.why
            shown = Evidence("static", text, module.path, line)
            yield self.finding(module, found.node, found.message, evidence=[shown], reason=found.reason)


def grouped(found: tuple[Guarded, ...]) -> list[list[Guarded]]:
    """Sites by guard; calls that come to `save_state` by function: a training script has one at each of its exits."""
    groups: dict[tuple[object, ...], list[Guarded]] = {}
    for site in found:
        by_function = site.reached is not None and site.collective.writes_its_part
        key = ("function", id(site.function)) if by_function else (site.guard.kind, id(site.guard.node), site.reached is None)
        groups.setdefault(key, []).append(site)
    return list(groups.values())


def reason(made: Repair) -> str:
    return made.reason if made.level is not Applicability.SAFE or not made.edits else ""


def message(project: Project, module: SourceModule, sites: list[Guarded]) -> str:
    site = sites[0]
    who = _WHO[site.guard.ranks]
    where = guard_text(module, site)
    also = f" (so do lines {', '.join(str(s.node.lineno) for s in sites[1:])})" if len(sites) > 1 else ""
    if site.collective.writes_its_part:
        return (
            f"{site.text} saves the random state of each process that calls it, and {where} only {who} does{also}: after a "
            "resume the other ranks start from other random numbers, and DeepSpeed or FSDP would hang"
        )
    if site.collective.name in PENDING:
        evaluated = site.function is not None and site.function.name in AFTER_EVALUATION
        which = ", those of values logged in this hook or by a callback before it" if evaluated else ""
        then = later_collective(project, module, site)
        next_one = f"{then.text} in line {then.node.lineno}" if then else "the next collective"
        return (
            f"reading {site.text} runs the reductions that are still pending{which}, and {where} only {who} does{also}; "
            f"the other ranks are at {next_one} by then: a hang, or mixed-up values"
        )
    if site.collective.is_read:
        return f"reading {site.text} is a collective, and {where} only {who} does{also}: {who} waits for the other ranks"
    return f"{site.text} waits for every rank, but {where} only {who} comes to it{also}: the run hangs"


def guard_text(module: SourceModule, site: Guarded) -> str:
    guard = site.guard
    if guard.kind == "decorator":
        return f"in the decorated {getattr(guard.node, 'name', 'function')}"
    if guard.kind == "exit":
        return f"behind the early exit in line {guard.line}"
    test = getattr(guard.node, "test", None)
    text = " ".join(module.text_of(test).split()) if isinstance(test, ast.expr) else "the rank test"
    return f"in the other branch of `{text}`" if guard.kind == "else" else f"under `{text}`"


def paths(module: SourceModule, site: Guarded) -> Iterator[Evidence]:
    """Both paths: what keeps ranks away, and the way to the collective."""
    who = _WHO[site.guard.ranks]
    yield Evidence("static", f"only {who} passes {guard_text(module, site)}", module.path, site.guard.line)
    if site.reached is None:
        yield Evidence("static", f"{site.text} waits for all ranks", module.path, site.node.lineno)
        return
    for step in site.reached.steps:
        yield Evidence("static", step.text, step.path, step.line)
