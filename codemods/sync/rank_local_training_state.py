"""DDP308: training state that one rank restores or changes, and the others do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.guards.no_group_at import no_group_at
from codemods.analysis.names import dotted
from codemods.analysis.ranks.asked_by_callers import asked_by_callers
from codemods.analysis.ranks.started_groups import is_of_lone_scripts
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.short_texts import short
from codemods.analysis.wrapped.behind_training import is_behind_training
from codemods.analysis.wrapped.left_in_eval import LeftInEval, left_in_eval
from codemods.analysis.wrapped.left_modes import LeftMode, left_modes
from codemods.analysis.wrapped.own_files import restored_from_own_files
from codemods.analysis.wrapped.restore_repairs import Repair, on_every_rank
from codemods.analysis.wrapped.restored_paths import OwnPath, restored_from_own_paths
from codemods.analysis.wrapped.taken_off_by_one import TakenOff, taken_off
from codemods.analysis.wrapped.training_state import Change, What, changes
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.data.rank_words import PROCESSES
from codemods.files.sites import Site
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project

_STATE = (
    b"load_state", b"register_buffer", b"copy_to", b"apply_shadow", b"copy_params_to", b".step(", b"epoch", b"param_groups",
    b"start", b".train(", b".eval()", b"ckpt_path", b"resum", b"restor", b"unwrap_model(",
)  # fmt: skip
_EFFECT = {
    What.OPTIMIZER: "the others begin with empty moments, and the same gradients give other weights on each rank",
    What.SCHEDULER: "the others have another learning rate, and the weights of the ranks drift apart",
    What.SCALER: "the others scale their gradients by another number before DDP averages them",
    What.WEIGHTS: "DDP sent rank 0's weights when it was made, and does not again: the others train on with theirs",
    What.BUFFER: "DDP sends what both sides have: this buffer is rank 0's alone",
    What.ALL: "the others begin anew: weights, moments and steps differ from there on",
    What.COUNT: "the others begin at another place and go round the loop more or less often: where the ranks meet in each round, "
                "those with more rounds wait in the end",
    What.RATE: "the others go on with theirs, and the weights of the ranks drift apart",
}
# Under FSDP each rank holds its own part of the weights: there are no copies to drift apart.
_OF_SHARDS = {
    What.SCHEDULER: "the others have another learning rate, and move their shards of the weights by it",
    What.RATE: "the others go on with theirs, and move their shards of the weights by it",
}
_SHARDING = (b"FullyShardedDataParallel", b"fully_shard(")
_APART = {
    What.OPTIMIZER: "the same gradients give other weights on each rank from there on",
    What.SCHEDULER: "the ranks go on with different learning rates",
    What.SCALER: "the ranks scale their gradients by different numbers",
    What.WEIGHTS: "the ranks go on with different weights",
    What.ALL: "the ranks go on from different states: weights, moments and steps differ, and so do the rounds that are left",
}
_PUT_BACK = (
    "keep the weights of the training first (`ema.store(net.parameters())`) and put them back behind what rank 0 does with the "
    "average (`ema.restore(net.parameters())`), or copy the average into a second model"
)


class RankLocalTrainingState(DdpCodemod):
    """Training state that one rank restores or changes, and the others do not.

    ## What it does
    Finds the state of an optimizer, a scheduler or a gradient scaler that is restored under a test for rank 0, the epoch or step
    that training goes on from, `accelerator.load_state`, and weights that are loaded behind the DDP wrap. Where rank 0 does
    nothing else there than to read, to restore and to say so, the rank test goes, a load is given a `map_location`, and what is
    printed stays on rank 0. Reports a learning rate or a schedule that rank 0 alone moves on, of a new buffer that it registers
    behind the wrap, of an average of the weights (EMA) that it copies into the model in training and leaves there, of a
    restore from each rank's own file whose error is swallowed, of a model that it takes out of its wrapper under the same name
    in the training loop (`model = accelerator.unwrap_model(model)`), of one that it leaves in eval mode there, and of a
    checkpoint that every rank restores from a path which rank 0 alone has worked out (the folder of this run, the best epoch).

    ## Why it matters
    DDP averages gradients and nothing else. From the same gradients two optimizers with other moments make other weights: the
    ranks drift apart, without an error, and what rank 0 saves is not what the others trained. With another first epoch they hang.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def resume(path, optimizer):
        if dist.get_rank() == 0:
            state = torch.load(path)
            optimizer.load_state_dict(state["optimizer"])
            print("resumed")
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def resume(path, optimizer):
        state = torch.load(path, map_location="cpu")
        optimizer.load_state_dict(state["optimizer"])
        if dist.get_rank() == 0:
            print("resumed")
    ```

    ## Safety
    Unsafe: every rank has to be able to read the file. One process alone restores as before; `map_location` moves nothing for
    good, as `load_state_dict` copies to where the parameters are.

    ## Refuses
    - Says nothing where a broadcast stands further down, in the function or behind its calls.
    - Says nothing of weights that rank 0 loads in front of the DDP wrap, which sends them to the others, nor of a buffer that
      is filled, or registered anew, under its old name: DDP sends it with the next forward.
    - Says nothing of weights that rank 0 restores behind the last step of the training, for a test.
    - Says nothing of a test on a parameter that the callers give a number, or nothing.
    - Says nothing of an average that is copied into the model behind the training, or with a `store` or `restore` beside it.
    - Says nothing of `model.train()` where all ranks call it in the same round of the loop, or no loop round it trains.
    - Says nothing of `model.eval()` on rank 0 where anything in the loop may put a model into train mode, where the training ends
      with it, and where no file of the project speaks of dropout or BatchNorm.
    - Says nothing of what averages of the weights (EMA) restore, of loggers, meters, and of an optimizer that rank 0 alone has
      or steps.
    - Says nothing where the other arm of the test does the like.
    - Says nothing of a wrapper that is taken off in what may be the last round, or where the loop binds the name anew.
    - Says nothing of a path with the rank in it, and of weights that are restored in front of the wrap from whatever path.
    - Reports a block in which rank 0 does something else, too, a test with an `else`, and a test that stands in a caller.
    - Reports a buffer, a learning rate and a schedule: these have to be the same on every rank in the first place.
    - A repository's own tests.

    ## References
    Runs on two processes with torch 2.13 and Accelerate 1.15: weights differ after the first step behind an optimizer that was
    restored on rank 0, and behind weights that were loaded after the wrap.
    """

    code = "DDP308"
    severity = "data"
    subject = "Restore the training state on every rank"
    must_show = "A training that is resumed on two processes has the same weights on both after some steps."
    printed = ("Timed out waiting …ms for recv operation to complete", "FileNotFoundError")
    TRIGGERS = (
        # a class that changes the learning rate need not know of ranks: its callers do
        (b"rank", b"main_process", b"process_index", b"process_zero", b"global_zero", b"is_ma", b"param_groups"),
        (*PROCESSES, b"param_groups"),
        _STATE,
    )
    SITES = (
        Site(rb"load_state|register_buffer|sched\w*\.step|param_groups|load\w*\(|\.(?:copy_to|copy_params_to|apply_shadow)\("
             rb"|\.(?:train\(|eval\(\))|ckpt_path\s*=|(?:restor|resum|restart)\w*[(=]|=[ ]*[\w.]+(?:\.unwrap_model\(|\.module\b)",
             b"load", b"register_buffer", b"sched", b"param_groups", b"copy_to", b"copy_params_to", b"apply_shadow", b".train(",
             b".eval()", b"ckpt_path", b"restor", b"resum", b"restart", b"unwrap_model", b".module"),
    )  # fmt: skip
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if ranks_in_file(project, module) is None and ranks_in_importers(project, module) is None:
            return
        by_guard: dict[int, list[Change]] = {}
        for change in changes(project, module):
            if not (change.restores and change.what is What.WEIGHTS and is_behind_training(project, module, change.node)):
                if not no_group_at(project, module, change.node):
                    by_guard.setdefault(id(_place(module, change)), []).append(change)
        if by_guard and is_of_lone_scripts(project, module.path):
            return
        for found in by_guard.values():
            yield self._tell(module, project, sorted(found, key=lambda c: c.node.lineno))
        for mode in left_modes(project, module):
            yield self._mode(module, mode)
        for left in left_in_eval(project, module):
            yield self._left_in_eval(module, left)
        for call in restored_from_own_files(project, module):
            yield self.finding(
                module,
                call,
                "each rank restores from a file of its own, and one that cannot goes on without a word: from there on its "
                "optimizer makes other weights of the same gradients",
                reason="agree first on whether all of them could (an all_reduce with MIN of 0 or 1), or restore from one file",
            )

        for off in taken_off(project, module):
            yield self._off(module, off)
        for found_path in restored_from_own_paths(project, module):
            yield self._path(module, found_path)

    def _off(self, module: SourceModule, found: TakenOff) -> Finding:
        return self.finding(
            module,
            found.node,
            f"rank 0 alone binds `{found.name}` to the bare model, and trains that in the next round, from line "
            f"{found.trains.lineno} on: it averages no gradients any more, and the others wait for it in theirs",
            evidence=[Evidence("static", "only rank 0 passes the test", module.path, found.guard.line)],
            reason=f"give the bare model a name of its own: `bare = {module.text_of(found.node.value)}`",
            severity="hang",
        )

    def _path(self, module: SourceModule, found: OwnPath) -> Finding:
        where = f"line {found.made.lineno}" if found.module is module else f"{found.module.path}:{found.made.lineno}"
        return self.finding(
            module,
            found.call,
            f"every rank restores {found.what.value} from `{short(module, found.path)}`, for which rank 0 alone sets "
            f"`{dotted(found.made.targets[0])}` in {where}: the others read another file, or find none, and {_APART[found.what]}",
            evidence=[Evidence("way", x.text, x.path, x.line, "strong") for x in found.value.chain],
            reason="set it on every rank from what all of them have, or send rank 0's to the others first "
            "(`dist.broadcast_object_list`)",
        )

    def _mode(self, module: SourceModule, found: LeftMode) -> Finding:
        reason = "assumes that all ranks are to train on with it" if found.edits else "call it on every rank, behind the test"
        return self.finding(
            module, found.node,
            f"every rank puts `{found.name}` into eval mode in line {found.evaluates.lineno}, and rank 0 alone back: the others "
            "train on without dropout and with frozen statistics of BatchNorm",
            level=Applicability.UNSAFE if found.edits else Applicability.DISPLAY,
            edits=list(found.edits),
            evidence=[
                Evidence("static", "only rank 0 passes the test", module.path, found.test.lineno),
                Evidence("static", "every rank does this", module.path, found.evaluates.lineno),
            ],
            reason=reason,
        )  # fmt: skip

    def _left_in_eval(self, module: SourceModule, found: LeftInEval) -> Finding:
        return self.finding(
            module, found.call,
            f"rank 0 alone puts `{found.name}` into eval mode here, and nothing in the loop puts it back: in line "
            f"{found.forward.lineno} it trains on {found.effect}, and the others as before",
            evidence=[
                Evidence("static", "only rank 0 passes the test", module.path, line_of(found.test)),
                Evidence("static", "this puts it into eval mode", found.path, found.line),
                Evidence("static", "every rank trains with it here", module.path, found.forward.lineno),
            ],
            reason=f"write `{found.name}.train()` behind it, under the same test",
        )  # fmt: skip

    def _tell(self, module: SourceModule, project: Project, found: list[Change]) -> Finding:
        first = found[0]
        names = " and ".join(dict.fromkeys(c.what.value for c in found))
        verb = "restores" if first.restores else "sets" if first.what is What.BUFFER else "changes"
        effects = {**_EFFECT, **_OF_SHARDS} if any(module.holds(word) for word in _SHARDING) else _EFFECT
        message = f"rank 0 alone {verb} {names} (`{first.name}`): {effects[first.what]}"
        repair = _repair(module, project, found)
        shown = [Evidence("static", f"`{short(module, c.node)}`", module.path, c.node.lineno) for c in found]
        if first.guard is not None:
            shown.insert(0, Evidence("static", "only rank 0 passes the test", module.path, first.guard.line))
        elif (there := asked_by_callers(project, module, first.node)) is not None:
            shown.insert(0, Evidence("static", "only rank 0 passes the test in front of this call", *there))
        return self.finding(
            module,
            first.node,
            message,
            level=Applicability.UNSAFE if repair.edits else Applicability.DISPLAY,
            edits=repair.edits,
            evidence=shown,
            reason=repair.refused or "assumes that every rank can read the file",
        )


def _place(module: SourceModule, change: Change) -> ast.AST:
    """What is told once: the test, or the function whose callers ask for the rank."""
    return change.guard.node if change.guard is not None else module.function_of(change.node) or change.node


def _repair(module: SourceModule, project: Project, found: list[Change]) -> Repair:
    whats = {c.what for c in found}
    if What.BUFFER in whats:
        return Repair(refused="register it in front of the wrap, or copy into the buffer that is there, which DDP sends to all")
    if not any(c.restores for c in found) and whats == {What.WEIGHTS}:
        return Repair(refused=_PUT_BACK)
    if not all(c.restores for c in found):
        return Repair(refused="let every rank do it; what it is decided by has to be the same on all of them: reduce that first")
    repair = on_every_rank(project, module, found[0].guard)
    if repair.refused and whats == {What.WEIGHTS}:
        return Repair(refused="load them in front of the wrap, which sends rank 0's weights to all, or on every rank")
    return repair
