"""DDP509: a network that is trained beside a wrapped one, and that nobody wraps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.wrapped.by_hand_averages import averages_by_hand
from codemods.analysis.wrapped.doubled_wraps import doubled_wraps
from codemods.analysis.wrapped.left_out import LeftOut, networks_left_out
from codemods.analysis.wrapped.never_wrapped import NeverWrapped, never_wrapped
from codemods.analysis.wrapped.one_device_parallel import OneDevice, one_device_parallel
from codemods.analysis.wrapped.wraps import is_prepare
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class NetworkLeftOut(DdpCodemod):
    """A network that an optimizer trains, and that is neither wrapped nor averaged.

    ## What it does
    Follows each network whose parameters go to an optimizer, from the call that makes it through names, fields, functions and
    returns. Where another network of the same program is wrapped in `DistributedDataParallel` or prepared by Accelerate, and this
    one is not, it reports that: a discriminator beside the generator, a head beside the encoder, a loss with weights of its own.

    Reports a network, too, that is trained in a `DataParallel` round the one device of each process (`device_ids=[local_rank]`),
    and the only wrap of a program under a name that is False in both arms of the test that asks for the launcher.

    ## Why it matters
    DDP averages the gradients of what it wraps. The network beside it steps by the gradients of each rank's own data: its weights
    part on the ranks without an error, the wrapped network is trained against as many versions of it as there are ranks, and the
    checkpoint holds that of rank 0, which has seen one share of the data.

    ## Example
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(loader, gpu):
        encoder = DDP(nn.Linear(4, 8).to(gpu))
        head = nn.Linear(8, 2).to(gpu)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(encoder(x)), y).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(loader, gpu):
        encoder = DDP(nn.Linear(4, 8).to(gpu))
        head = DDP(nn.Linear(8, 2).to(gpu))
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(encoder(x)), y).backward()
            optimizer.step()
    ```

    ## Safety
    There is no fix: the wrap changes what the names hold (`head.weight`, the keys of a checkpoint), a method other than forward
    goes past it, and two networks that are always run together are better put into one module that is wrapped once.

    ## Refuses
    - Says nothing where any use of the network is not understood: it is handed to a function that is not followed, put into a
      dictionary, or made by something that is not seen.
    - Says nothing of a network with a method that may wrap a part of it, by a function that it is handed (`net.spread(wrap)`).
    - Says nothing of a network that is part of another one, that is frozen or without parameters, or that no gradient goes
      through.
    - Says nothing where the project averages gradients itself, and of a network whose class asks for the rank or meets the other
      ranks: each may hold a part of the whole.
    - Says nothing of a `DataParallel` over several devices, and where a test on the way to it may keep it to one process.
    - Says nothing of a wrap that is switched off by one constant, or that another test may come to; of one where no command of
      the repository starts the program on several processes, and of a program that wraps or averages in another way as well.
    - Says nothing of what one rank trains alone, and of programs that run as one process.
    - A repository's own tests.

    ## References
    Two-process runs on torch 2.13: the weights of the wrapped network agree, those of the other one differ from the first step.
    """

    code = "DDP509"
    severity = "data"
    TRIGGERS = ((b"parameters(", b"DistributedDataParallel("), (b"optim", b"Adam", b"SGD", b"DataParallel("))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return any(project.files_containing(word) for word in (b"DistributedDataParallel", b".prepare(", b"DataParallel("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.holds(b"hvd.") or module.holds(b"deepspeed"):
            return
        together: dict[ast.Call, list[LeftOut]] = {}
        for found in networks_left_out(project, module):
            together.setdefault(found.optimizer, []).append(found)
        for optimizer, left in together.items():
            if averages_by_hand(project) or ranks_reaching(project, module, optimizer).some:
                continue
            if not is_run_by_nobody(project, module, optimizer):
                yield self._tell(module, project, left)
        for one in one_device_parallel(project, module):
            alone = ranks_reaching(project, module, one.wrap).some or is_run_by_nobody(project, module, one.wrap)
            if not alone and not averages_by_hand(project):
                yield self._tell_one_device(one)

        for off in never_wrapped(project, module):
            if not is_run_by_nobody(project, module, off.given):
                yield self._tell_never(module, off)

    def _tell_never(self, module: SourceModule, found: NeverWrapped) -> Finding:
        """A program that wraps nothing, however many processes it is."""
        command = found.command
        return self.finding(
            module,
            found.given,
            f"`{found.name}` is False on every way to line {found.test.lineno}, so that the model is never wrapped: "
            f"{command.path}:{command.line} starts several processes, each trains a model of its own, and the one that is kept "
            "has learned as on one GPU",
            evidence=[
                Evidence("static", "the wrap that no run comes to", module.path, found.wrap.lineno),
                Evidence("static", f"{command.launcher} starts {command.script}", command.path, command.line),
            ],
            reason=f"set `{found.name} = True` where the processes of a launcher come",
        )

    def _tell_one_device(self, one: OneDevice) -> Finding:
        source, line = one.source
        return self.finding(
            one.module,
            one.wrap,
            "`DataParallel` shares nothing between processes, and here it is put round the one device of each: no gradients are "
            "averaged, every rank trains a model of its own, and the one that is kept has learned from one rank's data",
            evidence=[
                Evidence("static", "the device is that of the process", source.path, line),
                Evidence("static", "an optimizer gets its parameters", one.module.path, one.read.lineno),
            ],
            reason="wrap it in `DistributedDataParallel` with the same `device_ids`, which averages the gradients of all ranks",
        )

    def _tell(self, module: SourceModule, project: Project, left: list[LeftOut]) -> Finding:
        first, names = left[0], list(dict.fromkeys(f"`{found.name}`" for found in left))
        other = f"`{first.wrapped}`" if first.wrapped and first.wrapped != first.name else "the wrapped network"
        prepared = is_prepare(first.beside, first.wrap)
        whose = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        are = "is" if len(names) == 1 else "are"
        message = (
            f"{whose} {are} trained here and never wrapped: the gradients of {other} are averaged, those of {whose} are each "
            "rank's own, and the weights part on the ranks without an error"
        )
        made = [Evidence("static", "it is made, and nothing on its way wraps it", f.module.path, f.made.lineno) for f in left]
        wraps = Evidence("static", f"{other} {'is prepared' if prepared else 'is wrapped'}", first.beside.path, first.wrap.lineno)
        how = "hand it to `accelerator.prepare` as well" if prepared else "wrap it as well"
        reason = f"{how}, or put both into one module and wrap that"
        again = doubled_wraps(project, first.beside)
        if again:
            line = again[0].again.lineno
            reason = f"line {line} wraps `{again[0].name}` a second time, and may be meant for {names[0]}: {reason}"
        twice = [Evidence("static", f"`{d.name}` is wrapped a second time", first.beside.path, d.again.lineno) for d in again]
        return self.finding(module, first.optimizer, message, reason=reason, evidence=[*made, wraps, *twice])
