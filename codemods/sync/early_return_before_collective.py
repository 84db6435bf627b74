"""DDP303: ranks that leave above a collective."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.files.file_calls import Act
from codemods.analysis.guards.asked_meanwhile import AskedMeanwhile, asked_meanwhile
from codemods.analysis.guards.early_returns import renest_inner
from codemods.analysis.guards.exits_of_rank_zero import ExitOfZero, exits_of_rank_zero
from codemods.analysis.guards.guard_place import Repair
from codemods.analysis.guards.guard_repairs import repair
from codemods.analysis.guards.one_rank_decisions import decisions
from codemods.analysis.guards.told_collectives import grouped, message, message_of_unmatched, paths, reason
from codemods.analysis.guards.told_collectives import guarded_here as _sites
from codemods.analysis.guards.unmatched_collectives import both_ways, unmatched_collectives
from codemods.analysis.ranks.forwards_behind_guards import calls_told_behind
from codemods.analysis.short_texts import short
from codemods.analysis.variance.exclusive_tests import excludes
from codemods.analysis.variance.mismatches import Form as Parting
from codemods.analysis.variance.mismatches import under_rank_tests
from codemods.analysis.variance.wording import chain, head, where_to_call
from codemods.analysis.variance.wording import message as parting_message
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARDS
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project

_OF_BREAK = "broadcast the decision of rank 0 first (`broadcast_object_list`, or a tensor), and let every rank leave by it"
_OF_RETURN = (
    "raise an error instead, so that the launcher ends the other ranks, or broadcast what rank 0 has found first, and let every "
    "rank return by it"
)


class EarlyReturnBeforeCollective(DdpCodemod):
    """Ranks that return above a collective: the others wait for them.

    ## What it does
    Finds `if not rank 0: return` (and `continue`, `break`) above a collective of the same function or loop, also where the
    collective is hidden in Lightning or in a project function, and exits that only rank 0 can take. Takes the exit away and puts
    the work under it into an `if`, so that every rank comes to the collective. Reports a `return` that rank 0 alone can take by
    what it has found (a run of that name is there already), above the constructor of the wrapper or another meeting that the
    other ranks are sure to come to.

    ## Why it matters
    An early return reads like a guard, but it also keeps the ranks from everything that is written below it later. Rank 0 stands
    in the barrier at the end of the function until the time-out of the process group (10 or 30 minutes), while the others are in
    the next epoch; or their next collective is paired with it, and both get garbage.

    ## Example
    ```python
    import lightning.pytorch as pl


    class Plots(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            if not trainer.is_global_zero:
                return

            figure = draw(pl_module)
            figure.savefig("epoch.png")
            trainer.strategy.barrier()
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl


    class Plots(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            if trainer.is_global_zero:
                figure = draw(pl_module)
                figure.savefig("epoch.png")
            trainer.strategy.barrier()
    ```

    ## Safety
    Safe where the rank alone decides on the exit, every rank reaches it, the collectives are the last thing in the function (or
    the loop), and they need nothing that rank 0 has made. Rank 0, and one process alone, run the same statements in the same
    order as before. What an exit sets before it leaves stays where it is. An exit of rank 0 inside a guarded block is turned into
    a test of the rest of the block where only barriers follow. Unsafe, with the assumption named: conditions round the exit
    that may differ between ranks, and `torch.distributed` where a single process may have no group.

    ## Refuses
    - Says nothing in a repository's own tests, and nothing where both exits have a barrier of their own.
    - Says nothing of exits that every rank takes, of `raise`, `sys.exit()` and statuses like `return -1`.
    - Says nothing where the ranks that leave make a call that may be the other half, or where `finally` holds the collective.
    - Says nothing of metrics that are read below `trainer.fit(...)`, or below the work of a process that a launcher starts, also
      by a function that is only called there.
    - Reports an exit that gives a value which is not what the function ends with, or which rank 0 makes.
    - Reports a function that can be left once more before the collective, and a collective between other work.
    - Reports a collective that needs what rank 0 has made, and a block that holds another collective.
    - Reports an exit that sets what the test or the work reads.
    - Says nothing of a conditional return of rank 0 where the others make calls in the other arm, in a loop or a `try`, where the
      same test stands below for all ranks, and where no meeting below is sure.
    - Says nothing of a path that takes long to be made, of a wait above the change, and where both arms wait.
    - Leaves a `break` that rank 0 alone takes, by more than its rank, to DDP305.
    - Reports a `break`, and an exit inside other blocks: what the other ranks do then has to be decided.
    - Reports an exit in a guarded block behind which more than barriers follow, or that is not the only one.

    ## References
    Runs on two gloo processes with Lightning 2.6.6 and torch 2.13.
    """

    code = "DDP303"
    severity = "hang"
    subject = "Let no rank leave before a collective call"
    must_show = "Both processes get to the end of the hook or the loop."
    printed = (*WAITING, "Detected mismatch between collectives on ranks")
    TRIGGERS = (GUARDS, PROCESSES)
    SITES = RANK_GUARDS
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        told_nodes: list[ast.AST] = []
        exits: set[int] = set()
        for sites in grouped([s for s in _sites(project, module) if s.guard.kind == "exit"]):
            made = repair(project, module, sites)
            told |= {id(s.node) for s in sites}
            told_nodes += [n for s in sites for n in (s.node, s.guard.node)]
            yield self._told(module, sites[0].node, message(project, module, sites), made, paths(project, module, sites[0]))
        for found in unmatched_collectives(project, module):
            if found.by_exit and id(found.node) not in told:
                told_nodes.append(found.node)
                exits.add(found.at)
                if found.at in _decided(project, module):
                    continue  # DDP305 tells of this exit, where it stands
                made = renest_inner(project, module, found)
                yield self._told(module, found.node, message_of_unmatched(found), made, both_ways(module, found))
        lines = {line for site in told_nodes for line in _lines(site)}
        behind = calls_told_behind(project, module)  # DDP301 tells these
        for node, parted in under_rank_tests(project, module, lines):
            if excludes(module, parted):
                continue
            forward = parted.meeting is not None and parted.meeting.name == "forward"
            if forward and parted.meeting is not None and parted.meeting.steps[0].line in behind:
                continue
            if parted.form is Parting.LEAVES:
                text = parting_message(parted, head(module, parted.node))
                advice = _OF_BREAK if isinstance(parted.leaving, ast.Break) else where_to_call(parted)
                yield self.finding(module, node, text, evidence=chain(parted), reason=advice)
                lines.add(getattr(parted.leaving, "lineno", 0))
        decided = _decided(project, module)
        for exit_ in exits_of_rank_zero(project, module):
            if exit_.leaving.lineno not in lines | decided and not exits & {exit_.test.lineno, exit_.leaving.lineno}:
                yield self._alone(module, exit_)
        for found_late in asked_meanwhile(project, module):
            yield self._late(module, found_late)

    def _late(self, module: SourceModule, found: AskedMeanwhile) -> Finding:
        path = short(module, found.asked.path)
        removes = found.change.act is Act.REMOVES
        does, sees = ("removes", "no longer finds it") if removes else ("makes", "finds it")
        change, wait = (_place(module, s.module, s.call) for s in (found.change, found.wait))
        return self.finding(
            module, found.test,
            f"every rank asks here whether `{path}` is there, and rank 0 {does} it ({change}): a rank that asks after that "
            f"{sees}, does not come to the wait in {wait}, and the others stand there until the time-out",
            evidence=[
                Evidence("static", f"rank 0 alone {does} it", found.change.module.path, line_of(found.change.call)),
                Evidence("static", "the ranks that ask in time wait here", found.wait.module.path, line_of(found.wait.call)),
            ],
            reason="let every rank come to the wait: put it behind the `if`, or ask on rank 0 alone",
        )  # fmt: skip

    def _alone(self, module: SourceModule, found: ExitOfZero) -> Finding:
        shown = [
            Evidence("static", "rank 0 alone goes on behind this test", module.path, found.test.lineno),
            Evidence("static", "the others come to this", module.path, found.line),
        ]
        return self.finding(
            module, found.leaving,
            f"rank 0 alone can leave here (by the test in line {found.test.lineno}): the others go on to {found.text} in line "
            f"{found.line}, and wait for it until the time-out",
            evidence=shown, reason=_OF_RETURN,
        )  # fmt: skip

    def _told(self, module: SourceModule, node: ast.AST, text: str, made: Repair, shown: Iterator) -> Finding:  # type: ignore[type-arg]
        level = made.level if made.edits else Applicability.DISPLAY
        return self.finding(module, node, text, level=level, edits=made.edits, evidence=list(shown), reason=reason(made))


def _decided(project: Project, module: SourceModule) -> set[int]:
    """The lines of the tests and exits by which one rank leaves on a decision of its own."""
    exits = [d.node for d in decisions(project, module)]
    return {n.lineno for e in exits for n in (e, *module.ancestors(e)) if isinstance(n, (ast.If, ast.Break))}


def _place(here: SourceModule, module: SourceModule, node: ast.AST) -> str:
    return f"line {line_of(node)}" if module is here else f"{module.path}:{line_of(node)}"


def _lines(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
