"""DDP312: a collective whose root each rank takes for itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.ranks.own_roots import OwnRoot, own_roots
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule
from codemods.store.project import Project

_GETS = {"reduce": "all_reduce", "gather": "all_gather", "gather_object": "all_gather_object"}


class RootOfEachRank(DdpCodemod):
    """A collective with a root, and each rank names itself as the root.

    ## What it does
    Finds `broadcast`, `scatter`, `reduce` and `gather` of torch.distributed, and `consolidate_state_dict` of its ZeRO optimizer,
    that all ranks call with their own rank as `src`, `dst` or `to`. Where only rank 0 asks for the optimizer's state afterwards,
    the state is put together on rank 0.

    ## Why it matters
    Such a call has one root, and all ranks must name the same one. Where each names itself, every rank sends, or every rank waits
    to be sent something: the run hangs until the time-out of the process group.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def save(optimizer, path):
        rank = dist.get_rank()
        optimizer.consolidate_state_dict(to=rank)
        if rank == 0:
            torch.save(optimizer.state_dict(), path)
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def save(optimizer, path):
        rank = dist.get_rank()
        optimizer.consolidate_state_dict(to=0)
        if rank == 0:
            torch.save(optimizer.state_dict(), path)
    ```

    ## Safety
    Unsafe: it assumes that no code elsewhere asks another rank for the state.

    ## Refuses
    - Says nothing of a call in a group (`group=`), and of one that a test or a loop lets some ranks make.
    - Says nothing of a number that is not shown to be the rank of the process: a parameter called `rank` may be any root.
    - Reports a broadcast and the like: which rank has the value is the author's to say.
    - Reports a state that more than rank 0 asks for: the others get a RuntimeError.
    - A repository's own tests.

    ## References
    Two-process runs on torch 2.13 over gloo: each of these calls waits until the time-out.
    """

    code = "DDP312"
    severity = "hang"
    subject = "Name one root on all ranks"
    must_show = "Two processes get past the line, and rank 0 saves the state of the optimizer."
    printed = WAITING
    TRIGGERS = ((b"src", b"dst", b"consolidate_state_dict", b"broadcast", b"reduce"), (b"rank", b"RANK"))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        return b"torch.distributed" in data or b"consolidate_state_dict" in data or b"import distributed" in data

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in own_roots(project, module):
            if not is_run_by_nobody(project, module, found.call):
                yield self._tell(module, project, found)

    def _tell(self, module: SourceModule, project: Project, found: OwnRoot) -> Finding:
        text = " ".join(module.text_of(found.root).split())
        waits = "every rank waits to be sent" if found.name in (*_GETS, "consolidate_state_dict") else "every rank sends"
        message = f"`{text}` is another root on each rank: {waits}, and the run hangs in `{found.name}`"
        edits: list[Edit] = []
        level = Applicability.DISPLAY
        if found.name != "consolidate_state_dict":
            reason = "name one root on all ranks (`0`)"
            reason += f", or call `{_GETS[found.name]}` where every rank wants the result" if found.name in _GETS else ""
        elif _is_asked_by_zero(project, module, found.call):
            edits, level = [ReplaceExpression(module.path, module.span(found.root), "0")], Applicability.UNSAFE
            reason = "assumes that no other rank asks for the state"
        else:
            reason = "put the state together on one rank (`to=0`), and let that rank alone call `state_dict()`"
        evidence = [Evidence("static", f"every rank comes here with its own `{text}`", module.path, found.call.lineno)]
        return self.finding(module, found.root, message, level=level, edits=edits, evidence=evidence, reason=reason)


def _is_asked_by_zero(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the function asks this optimizer for its state, under a test for rank 0 only."""
    holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    function = module.function_of(call)
    asked = [
        c for c in module.calls_named("state_dict")
        if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == holder and module.function_of(c) is function
    ]  # fmt: skip
    return bool(holder and asked) and all(ranks_reaching(project, module, c) is Ranks.ZERO for c in asked)
