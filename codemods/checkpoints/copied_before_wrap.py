"""DDP510: a copy of a network that is made before DDP gives all ranks the same weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.short_texts import short
from codemods.analysis.wrapped.copy_runs import Run, run_on_every_rank
from codemods.analysis.wrapped.drawn_weights import Drawn, drawn_by_each_rank
from codemods.analysis.wrapped.early_copies import EarlyCopy, early_copies
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class CopiedBeforeWrap(DdpCodemod):
    """A copy of a network that is made before DDP gives all ranks the same weights.

    ## What it does
    Finds a network whose weights each rank draws for itself: below a seed with the rank in it (`torch.manual_seed(seed + rank)`),
    or where nothing is seeded at all. Reports a copy of it that stands above the wrap and that every rank runs later: a teacher,
    a momentum encoder, an average of the weights (EMA), made by `deepcopy`, timm's `ModelEma`, a class of the project that makes
    a deep copy, `load_state_dict(model.state_dict())`, or a loop of `copy_`.

    ## Why it matters
    The wrap sends rank 0's weights of the network to all ranks, and knows nothing of the copy: rank 0's is a copy of what is
    trained, that of each other rank is another random network. A teacher then gives the ranks targets of different networks until
    the average has forgotten how it began, or for ever where it is never updated. Validation with an average mixes the numbers of
    as many networks as there are ranks, and the checkpoint of rank 0 holds the only right one. Nothing fails.

    ## Example
    ```python
    import copy

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def main(loader, optimizer, seed):
        dist.init_process_group("nccl")
        torch.manual_seed(seed + dist.get_rank())
        student = nn.Linear(4, 4).cuda()
        teacher = copy.deepcopy(student).requires_grad_(False)
        student = DDP(student)
        for x in loader:
            nn.functional.mse_loss(student(x), teacher(x)).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import copy

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def main(loader, optimizer, seed):
        dist.init_process_group("nccl")
        torch.manual_seed(seed + dist.get_rank())
        student = nn.Linear(4, 4).cuda()
        student = DDP(student)
        teacher = copy.deepcopy(student.module).requires_grad_(False)
        for x in loader:
            nn.functional.mse_loss(student(x), teacher(x)).backward()
            optimizer.step()
    ```

    ## Safety
    There is no fix: what stands between the copy and the wrap may need the copy, and where one process makes no wrap, `.module`
    is not there.

    ## Refuses
    - Says nothing where the last seed above the network is the same on all ranks, and where a seed is not followed.
    - Says nothing of a network that is always filled from a file before it is copied, that is handed weights, or whose class
      loads some. One that only some runs fill (`if args.resume`) is reported.
    - Says nothing where the copy is wrapped or prepared as well, is sent to all ranks, is filled or made anew behind the wrap, or
      is handed to something together with the network once before the training.
    - Says nothing of an average whose first steps take the weights over as they are: one that counts its steps, or whose rate
      begins at nothing (`min(1 - 1 / (step + 1), rate)`), timm's `ModelEmaV3`, torch's `AveragedModel`.
    - Says nothing where no run of the copy on every rank is seen: what is only updated and saved by rank 0 is right.
    - Says nothing of copies inside a module that is wrapped as a whole, and of Lightning, which wraps the whole module.
    - A repository's own tests.

    ## References
    The notes on DistributedDataParallel ("broadcasts state_dict() from the process with rank 0 to all other processes" at
    construction); two processes with torch 2.13: the weights of the wrapped network agree, those of a copy made above differ.
    """

    code = "DDP510"
    severity = "data"
    TRIGGERS = (
        (b"DistributedDataParallel", b"DDP("),
        (b"deepcopy(", b"ModelE", b"EMA(", b"Ema(", b"verag", b".state_dict())", b"copy_("),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for copy in early_copies(project, module):
            drawn = drawn_by_each_rank(project, copy)
            if drawn is None or ranks_reaching(project, module, copy.made).some:
                continue
            run = run_on_every_rank(project, copy)
            if run is not None and not is_run_by_nobody(project, module, copy.made):
                yield self._tell(module, copy, drawn, run)

    def _tell(self, module: SourceModule, copy: EarlyCopy, drawn: Drawn, run: Run) -> Finding:
        name, model = copy.name, copy.model
        how = f"by the seed of `{short(drawn.home, drawn.seed)}`" if drawn.home is not None and drawn.seed else "without a seed"
        message = (
            f"`{name}` is copied from `{model}` above its wrap, with the weights that each rank draws for itself {how}: DDP "
            f"gives all ranks rank 0's weights of `{model}`, and every other rank begins with another random `{name}`"
        )
        evidence = [Evidence("static", "the weights are drawn here", drawn.module.path, drawn.made.lineno)]
        if drawn.home is not None and drawn.seed is not None:
            evidence.append(Evidence("static", "the last seed above: each rank's own", drawn.home.path, drawn.seed.lineno))
        sent, ran = f"the wrap sends rank 0's weights of `{model}` to all ranks", short(run.module, run.call)
        evidence += [
            Evidence("static", sent, module.path, copy.wrap.lineno),
            Evidence("static", f"every rank runs its own copy: `{ran}`", run.module.path, run.call.lineno),
        ]
        at = copy.made.iter if isinstance(copy.made, ast.For) else copy.made
        reason = (
            f"make the copy behind the wrap, of the module inside, or seed all ranks alike until `{model}` is made and add "
            "the rank behind the wrap"
        )
        return self.finding(module, at, message, evidence=evidence, reason=reason)
