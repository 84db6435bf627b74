"""DDP301: a collective that only some ranks reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.guard_repairs import repair
from codemods.analysis.guards.told_collectives import cure, grouped, guarded_here, message, message_of_unmatched, paths, reason
from codemods.analysis.guards.unmatched_collectives import both_ways, unmatched_collectives
from codemods.analysis.ranks.forwards_behind_guards import AloneForward, calls_told_behind, forwards_behind_guards
from codemods.analysis.ranks.uneven_collectives import uneven_collectives
from codemods.analysis.ranks.unwrapped_there import unwrapped_there
from codemods.analysis.variance.mismatches import Form as Parting
from codemods.analysis.variance.mismatches import under_rank_tests
from codemods.analysis.variance.wording import chain, head, where_to_call
from codemods.analysis.variance.wording import message as parting_message
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.data.rank_words import GUARDS, PROCESSES, RANK_GUARDS
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project

# Also a share of a rank (`files[rank::world]`, `range(rank, …)`), and blocks that the ranks enter one after the other.
_PARTS = rb"rank[\w()]*[ \t]*::|range\([\w.()]*rank[\w()]*,|islice\([^\n]*rank|process_first\(|rank_zero_first\("



class CollectiveUnderRankGuard(DdpCodemod):
    """A collective under a rank guard: the other ranks never come to it.

    ## What it does
    Finds collectives that a rank test keeps from some ranks: `torch.distributed`, Lightning's strategy and Fabric, Accelerate,
    the HF Trainer, and the hidden ones (`trainer.save_checkpoint` since Lightning 2.1.0, `trainer.callback_metrics`,
    `trainer.log_dir`, `self.log(..., sync_dist=True)`, `Metric.compute()`), and those that put a state together of which each
    rank holds a part (FSDP's full `state_dict()`, `FSDP.optim_state_dict`, `summon_full_params`, `consolidate_state_dict`,
    `save_checkpoint` of what `deepspeed.initialize` gives), also where a project function reaches one, through any number of
    calls and files, and where a setting chooses that function (`save = save_parts if args.sharded else save_whole`). Lays the way
    of rank 0 through a function beside that of the other ranks, through loops, `try`, `match`, contexts and conditional
    expressions, and reports the collective that has no partner, with both ways. Takes
    the guard off where nothing else stands under it, moves collectives at the head or the end of the guarded block out of it, and
    moves reads of Trainer properties above it. A model that rank 0 runs alone without gradients is run without its DDP wrapper.
    Reports the forward of a wrapper on some ranks where the model has buffers, or is not seen: a field that an heir fills, a
    dictionary of prepared models, a backend's method that wraps, `torch.compile`, also through calls and other files, and down
    to the method of an heir, or the helper, in which rank 0 runs it.

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
    not hang), `trainer.save_checkpoint` without a pinned version, exits above the guard that not every rank may take, reads under
    further conditions, `torch.distributed` where a single process may have no group and the guard kept it away, the module taken
    out of the wrapper above a forward of rank 0 alone (without gradients, where nothing below needs the wrapper), and
    `rank_zero_only=True` for `sync_dist=True` on a log of what only rank 0 has.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where the other ranks have a collective of their own: zero-first pairs, `gather` with different arguments,
      barriers at both exits, a half that stands in the caller.
    - Says nothing of groups of ranks (`group=`), of `is_initialized()` tests and of `rank == src`, whose ranks are not shown.
    - Says nothing of a function that a setting chooses where a test over the call may ask for the same setting.
    - Says nothing where the function round this one has the other half (the others answer in a loop).
    - Says nothing of the `else` of `hasattr(model, "module")`, to which no wrapper comes.
    - Says nothing where the other branch makes calls, or another rank has the same call: it may be the other half of a
      protocol.
    - Says nothing of a sharded or a local `state_dict()` of FSDP, nor, outside of `FSDP.state_dict_type(...)`, where the file
      does not wrap layer by layer (`auto_wrap_policy`) by `FULL_SHARD`: rank 0 may hold the whole weights after an evaluation.
    - Says nothing of `torch.save`, `state_dict()`, `save_pretrained`, `accelerator.save`: no collectives under plain DDP.
    - Says nothing of `trainer.save_checkpoint` where every allowed Lightning is older than 2.1.0.
    - Says nothing of the forward of a wrapper round a model that is seen to have no buffers, that was asked not to send
      them, or that is apex's: it sends none. Nor of a model that is wholly frozen before `accelerator.prepare`,
      which gets no wrapper.
    - Says nothing of metrics that are read under a guard behind the evaluation, where no collective follows.
    - Says nothing of metrics that are read below `trainer.fit(...)`, also by a function that is only called there, and with a
      Lightning that is pinned below 1.2, where they are a plain dict.
    - Reports a project function that reaches a collective: the rest of the function would run on every rank too.
    - Reports `accelerator.save_state` where Accelerate may be older than 0.23 and the project has it name its checkpoints: a call
      on every rank removes checkpoints twice, or raises.
    - Says nothing of `accelerator.save_state` on rank 0 alone where only the random state of the others is lost: Accelerate is
      older than 0.23, no configuration, plug-in, option or command of the project names DeepSpeed or FSDP, or all their
      processes have a call of their own.
    - Reports `trainer.fit`, `test`, `evaluate` and the like: whether all ranks should run them is a decision.
    - Reports a collective in the middle of the guarded block, and one that needs a name or an attribute made inside.
    - Reports a read of a Trainer property in a function that is no hook, and whatever stands in `prepare_data`.
    - Reports a guarded block that can be left before its last collective, or that ends in a comment.
    - Reports a result, or a tensor reduced in place, that is used outside the guard, and names that other ranks may not have.
    - Reports whatever stands in an exception handler, or under a test that is not shown to come out the same on every rank.
    - Reports a test with more operands that cannot be taken apart, an `else` that does something, an `elif`, two guards, a
      conditional expression.
    - Reports a decorated function, and a function that is called under a guard itself.
    - Reports a collective in a loop over, or under a test of, what only rank 0 set; it is silent where that is broadcast first.
    - Reports a collective for each item of a rank's own share, one in a block that the ranks enter one after the other, and two
      that are taken for each other.
    - Reports a model that rank 0 runs through the DDP wrapper before it unwraps it, and one that is wrapped on a condition, whose
      gradients may be wanted, or that a function uses in other ways than running it.
    - Says nothing of an epoch-level log of a test on one rank where no pin keeps Lightning below 1.7: nothing monitors it.
    - Offers `rank_zero_only=True` only as unsafe for an epoch-level log on one rank where Lightning 1.7 is not shown; older ones
      reduce it all the same.

    ## References
    Lightning issues #18148 and #19045; runs on two gloo processes with torch 2.13, Lightning 2.6.6 and 1.9.5, Accelerate 1.15.
    """

    code = "DDP301"
    severity = "hang"
    subject = "Let every rank reach the collective calls"
    must_show = "Both processes get past the call."
    printed = (*WAITING, "Detected mismatch between collectives on ranks")
    TRIGGERS = (GUARDS, PROCESSES)
    SITES = (*RANK_GUARDS, Site(_PARTS, b"rank", b"process_first("))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        told_nodes: list[ast.AST] = []
        for sites in grouped([s for s in guarded_here(project, module) if s.guard.kind != "exit"]):
            made = repair(project, module, sites)
            first = sites[0]
            told |= {id(s.node) for s in sites}
            told_nodes += [n for s in sites for n in (s.node, s.guard.node)]
            yield self.finding(
                module,
                first.node,
                message(project, module, sites),
                level=made.level if made.edits else Applicability.DISPLAY,
                edits=made.edits,
                evidence=list(paths(project, module, first)),
                reason=reason(made),
                severity="risk" if first.collective.writes_its_part else "",  # DDP itself goes on; a sharded model would hang
            )
        yield from self._uneven(module, project, told, told_nodes)
        for found in unmatched_collectives(project, module):
            if not found.by_exit and id(found.node) not in told:
                told.add(id(found.node))
                told_nodes.append(found.node)
                shown = list(both_ways(module, found))
                yield self.finding(module, found.node, message_of_unmatched(found), evidence=shown, reason=cure(found))
        lines = {line for site in told_nodes for line in _lines(site)}
        behind = calls_told_behind(project, module)
        for forward in forwards_behind_guards(project, module):
            if forward.span.line not in lines:
                yield self._forward(project, module, forward)
        for node, parted in under_rank_tests(project, module, lines):
            if parted.meeting is not None and parted.meeting.name == "forward" and parted.meeting.steps[0].line in behind:
                continue
            if parted.form is Parting.DECIDES:
                text = parting_message(parted, head(module, parted.node))
                yield self.finding(module, node, text, evidence=chain(parted), reason=where_to_call(parted))

    def _uneven(
        self, module: SourceModule, project: Project, told: set[int], told_nodes: list[ast.AST]
    ) -> Iterator[Finding]:
        for found in uneven_collectives(project, module):
            if id(found.node) in told:
                continue
            line, text = found.why
            shown = [Evidence("static", text, module.path, line)]
            made = Applicability.UNSAFE if found.reason else Applicability.SAFE
            level = made if found.edits else Applicability.DISPLAY
            told.add(id(found.node))
            told_nodes += [found.node, module.statement_of(found.node)]
            yield self.finding(
                module, found.node, found.message, level=level, edits=found.edits, evidence=shown, reason=found.reason
            )

    def _forward(self, project: Project, module: SourceModule, found: AloneForward) -> Finding:
        """The forward of a wrapper that is come to from a test of the rank, through calls, methods and heirs."""
        test = Evidence("static", "only rank 0 goes on behind this test", found.home, found.line)
        place = f"line {found.line}" if found.home == module.path else f"{found.home}:{found.line}"
        also = f", also in line {', '.join(map(str, found.also))}" if found.also else ""
        edits = unwrapped_there(project, module, found) if found.home == module.path else ()
        decide = "run the module inside (`model.module`, `accelerator.unwrap_model(model)`) on rank 0, or run it on all ranks"
        assumes = f"assumes that only a wrapper round `{found.text}` has a `module`, and that one process wraps nothing"
        return self.finding(
            module, found.span,
            f"{found.text}(...) runs the DDP wrapper on rank 0 alone (by the test in {place}{also}): where the model has buffers "
            "(BatchNorm, position ids, masks) its forward is a broadcast that the other ranks do not make; rank 0 is out of step "
            "with them, or hangs",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY, edits=edits,
            evidence=[test, *found.way], reason=assumes if edits else decide,
        )  # fmt: skip


def _lines(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
