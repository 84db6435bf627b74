"""DDP509: `accelerator.save_state` that rank 0 alone calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.distribution import is_test_file
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at
from codemods.analysis.ranks.uses import uses_of
from codemods.codemod import DdpCodemod
from codemods.findings import Evidence, Finding
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule

_DEPTH = 3  # functions between the test of the rank and the call that saves
_MOST = 8  # calls of one of them
_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_MESSAGE = (
    "rank 0 alone saves the state: the random states of the other ranks are not in the checkpoint, and under FSDP, DeepSpeed or "
    "automatic checkpoint naming rank 0 waits in it for the others"
)
_REASON = (
    "let every rank call `save_state`, which writes what is common on the main process only; keep the cleaning up and the "
    "message under the test, and decide over the step by what all ranks have"
)


@record
class _Place:
    """A call under a test of the rank, and the `save_state` that it comes to."""

    module: SourceModule
    call: ast.Call
    saves: Evidence


class StateSavedByOneRank(DdpCodemod):
    """`accelerator.save_state` that rank 0 alone calls.

    ## What it does
    Finds `accelerator.save_state(...)`, and calls of functions that come to it, under a test for the main process.

    ## Why it matters
    Each rank writes its own random states in it. Where the others do not come, a resumed run draws other dropout masks, noise and
    augmentations on them than the run that was interrupted, and Accelerate says so in a line of the log only. Under FSDP and
    DeepSpeed, and with automatic checkpoint naming, the call waits for all ranks: the run hangs at its first checkpoint.

    ## Example
    ```python
    from accelerate import Accelerator


    def train(accelerator: Accelerator, model, loader):
        for step, batch in enumerate(loader):
            accelerator.backward(model(batch))
            if step % 100 == 0 and accelerator.is_main_process:
                accelerator.save_state(f"checkpoint-{step}")
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator


    def train(accelerator: Accelerator, model, loader):
        for step, batch in enumerate(loader):
            accelerator.backward(model(batch))
            if step % 100 == 0:
                accelerator.save_state(f"checkpoint-{step}")
    ```

    ## Safety
    There is no fix: the name of the folder and the cleaning up often stand under the same test, and every rank has to know the
    name.

    ## Refuses
    - Says nothing where a test lets all ranks in for DeepSpeed or FSDP (`is_main_process or distributed_type == ...`).
    - Says nothing of `trainer.save_state()` and of objects that are not shown to be an Accelerator.
    - Says nothing where a caller is not seen to stand under a test of the rank.
    - A repository's own tests.

    ## References
    Accelerate 1.15: `save_accelerator_state` writes `random_states_{process_index}.pkl`, `load_accelerator_state` passes over a
    missing one; `save_state` calls `wait_for_everyone` under `automatic_checkpoint_naming`. Runs on two processes.
    """

    code = "DDP509"
    TRIGGERS = ((b"main_process", b"rank", b"process_index"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        files = project.files_containing(b".save_state(")
        return bool(files) and (path in files or _names_a_saver(path, project, files))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for place in project.memo("states saved by one rank", lambda: tuple(_places(project))):
            if place.module is module:
                shown = [Evidence("static", "only the main process passes", module.path, _guard(project, place))]
                own = place.saves.path == module.path and place.saves.line == place.call.lineno
                yield self.finding(
                    module, place.call, _MESSAGE, evidence=shown if own else [*shown, place.saves], reason=_REASON
                )


def _names_a_saver(path: str, project: Project, files: tuple[str, ...]) -> bool:
    """True where the file may call a function of a file that saves: it imports that file, or names its object's method."""
    stems = {f.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2] for f in files}
    return any(path in project.files_importing(stem) for stem in stems)


def _guard(project: Project, place: _Place) -> int:
    guards = guards_over(place.module, place.call, project=project)
    return next((g.line for g in guards if g.ranks in _ZERO), place.call.lineno)


def _places(project: Project) -> Iterator[_Place]:
    for path in project.files_containing(b".save_state("):
        module = project.module(path) if not is_test_file(path) else None
        if module is None:
            continue
        for call in module.calls_named("save_state"):
            if isinstance(call.func, ast.Attribute) and is_accelerator(project, module, call.func.value):
                saves = Evidence("static", "saves the state", path, call.lineno)
                yield from _climb(project, module, call, saves, 0)


def _climb(project: Project, module: SourceModule, call: ast.Call, saves: Evidence, depth: int) -> Iterator[_Place]:
    ranks = ranks_at(module, call, project=project)
    if ranks in _ZERO:
        yield _Place(module, call, saves)
    function = module.function_of(call)
    if ranks.some or function is None or depth >= _DEPTH:
        return
    uses = uses_of(project, module, function).outside_tests()
    for site in uses.calls[:_MOST] if not uses.more else ():
        if not is_test_file(site.module.path):
            yield from _climb(project, site.module, site.call, saves, depth + 1)
