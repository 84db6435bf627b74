"""DDP311: parameters and codebooks that each rank sets from its own batches."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file, is_test_module, ranks_at
from codemods.analysis.files.loose_ends import brought_in_by, by_a_setting
from codemods.analysis.loading.same_program import reached
from codemods.analysis.logged.epoch_numbers import is_kept_to_one_device
from codemods.analysis.names import last, qualified
from codemods.analysis.wrapped.followed_batches import followed_states
from codemods.analysis.wrapped.own_batches import WORDS, OwnState, own_states
from codemods.analysis.wrapped.replica_norms import MARK, ReplicaNorm, replica_norms
from codemods.analysis.wrapped.surely_made import is_made
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HOPS = 5
_FILES = 40
_TRAINS = (b"backward(", b"training_step")
# A program that brings parameters and buffers together by hand.
_BY_HAND = (b"average_params", b"broadcast_params", b"sync_params", b"sync_model", b"average_buffers", b"sync_buffers")
_SENT_ANEW = (b"broadcast(p.", b"broadcast(p,", b"broadcast(param", b"broadcast(v.", b"broadcast(v,")
_BROUGHT = (
    "sum what the ranks saw first (`dist.all_reduce` of counts and sums), as SyncBatchNorm does; every rank has to come there"
)

_SENT = "let rank 0 choose for all (`dist.broadcast(values, src=0)` on every rank), or gather the batches first"
_CONVERT = "convert the model in front of the wrap: `torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)`"
_WRITES = lazy(rb"self\.\w+(?:\.data)?\[[^\]\n]*\]\s*=[^=]|\.data\s*=[^=]|(?:copy_|scatter_)\(")


class StateOfOwnBatches(DdpCodemod):
    """Parameters and codebooks that each rank sets from its own batches.

    ## What it does
    Finds modules whose `forward`, itself or by its methods, writes into a parameter of theirs what it makes of the batch (an
    initialization by the first batch, statistics that are kept as a parameter), or moves a codebook on by the mean of the batch
    (vector quantization), without any reduction, gather or broadcast in the class. Beside such ones, and in methods that the
    training calls by itself, finds what is followed to the batch and put into a parameter: codes that are not used and begin
    anew at rows of the own batch. Finds BatchNorm that joins its statistics over the replicas of DataParallel
    (`SynchronizedBatchNorm2d`, `convert_model`) in a program that wraps its model in DDP.

    ## Why it matters
    DDP sends the parameters once, when it is made, and averages gradients from then on. What a forward writes into a parameter is
    that of each rank's own batch: the ranks train different weights from there on, and rank 0's are saved. Buffers are sent from
    rank 0 before each forward: a codebook learns from rank 0's share alone, and what the others add to it is lost.

    ## Example
    ```python
    import torch
    from torch import nn


    class Codebook(nn.Module):
        def __init__(self, codes, width):
            super().__init__()
            self.register_buffer("codebook", torch.randn(codes, width))

        def forward(self, x):
            index = torch.cdist(x, self.codebook).argmin(1)
            hits = nn.functional.one_hot(index, len(self.codebook)).to(x)
            means = hits.t() @ x / hits.sum(0).clamp(min=1)[:, None]
            self.codebook.mul_(0.99).add_(means, alpha=0.01)
            return self.codebook[index] - x


    def train(loader):
        model = nn.parallel.DistributedDataParallel(Codebook(8, 3))
        for x in loader:
            model(x).square().mean().backward()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch import nn


    class Codebook(nn.Module):
        def __init__(self, codes, width):
            super().__init__()
            self.register_buffer("codebook", torch.randn(codes, width))

        def forward(self, x):
            index = torch.cdist(x, self.codebook).argmin(1)
            hits = nn.functional.one_hot(index, len(self.codebook)).to(x)
            sums, counts = hits.t() @ x, hits.sum(0)
            dist.all_reduce(sums)
            dist.all_reduce(counts)
            means = sums / counts.clamp(min=1)[:, None]
            self.codebook.mul_(0.99).add_(means, alpha=0.01)
            return self.codebook[index] - x


    def train(loader):
        model = nn.parallel.DistributedDataParallel(Codebook(8, 3))
        for x in loader:
            model(x).square().mean().backward()
    ```

    ## Safety
    There is no fix: what is to be summed (sums and counts, or one rank's batch for all), and whether each rank comes there in
    each forward, is a decision.

    ## Refuses
    - Says nothing where the class reduces, gathers, broadcasts or synchronizes anything, unless what goes into the parameter is
      followed past that, and where the project brings parameters or buffers together by hand (`average_params`, a broadcast of
      each parameter).
    - Says nothing of queues, banks, caches and hidden states that are kept as parameters.
    - Where each wrap of the script has `broadcast_buffers=False`, it says that the buffers of the ranks drift apart.
    - Says nothing of running means and variances, as BatchNorm keeps them, of counters, masks and queues.
    - Says nothing of what `forward` does not come to, and of what is made of the shape of the batch alone.
    - Says nothing of BatchNorm of replicas where the program converts it (`convert_sync_batchnorm`), has that DataParallel, too,
      or makes it under a test.
    - Says nothing of a class that nobody makes, or that is only made under a test: an option may leave it out.
    - Says nothing where no file that brings the module in shows several processes and trains, and of a Trainer of one device.
    - A repository's own tests.

    ## References
    torch 2.13, `DistributedDataParallel`: "Parameters are never broadcast between processes"; buffers are, from rank 0. Runs on
    two processes.
    """

    code = "DDP311"
    severity = "data"
    subject = "Put together what the ranks saw of their batches"
    must_show = "After some steps on two processes the parameters and codebooks are the same on both, and those of all data."
    printed = ()
    TRIGGERS = (
        (b"Parameter(", b"register_parameter", b"register_buffer", b"DistributedDataParallel"),
        (b"copy_(", b".data", b"mul_(", b"lerp_(", b"ema", b"[...]", b"* self.", b"] = ", b"DistributedDataParallel"),
    )
    SITES = (
        Site(
            rb"\.data\b[^\n]*(?:copy_\(|mul_\(|add_\(|=)|\.(?:copy_|mul_|lerp_)\(|\w*(?:ema|moving|average)\w*\(|self\.\w+\[[^\]\n]*\]\s*=[^=]"
            rb"|self\.(\w+)\s*=[^\n=]*\*\s*self\.\1\b|self\.(\w+)\s*=\s*self\.\w+\s*\*\s*self\.\2\b",
            b".data", b"copy_(", b"mul_(", b"lerp_(", b"ema", b"moving", b"average", b"[...]", b"self.",
        ),
        Site(rb"\bDistributedDataParallel\b", b"DistributedDataParallel"),
    )  # fmt: skip
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        if b"DistributedDataParallel" in data and project.files_containing(MARK):
            return True
        if b"def forward" not in data or any(project.files_containing(word) for word in (*_BY_HAND, *_SENT_ANEW)):
            return False
        return _several(project, path) is not None

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if module.holds(b"DistributedDataParallel") and project.files_containing(MARK):
            yield from (self._of_replicas(module, found) for found in replica_norms(project, module))
        if not any(module.holds(word) for word in WORDS) or not module.holds(b"def forward"):
            return
        if any(project.files_containing(word) for word in (*_BY_HAND, *_SENT_ANEW)):
            return
        told: set[str] = set()
        for found in own_states(project, module):
            shown = _several(project, module.path)
            if shown is None or is_kept_to_one_device(project) or not is_made(project, module, found.owner):
                continue
            told.add(found.owner.name)
            others = "".join(f", `{name}`" for name in found.others[:3])
            text = _message(project, found, others, shown.path)
            yield self.finding(module, found.node, text, evidence=[shown], reason=_BROUGHT)
        if _WRITES.search(module.data):
            yield from self._followed(project, module, told)

    def _of_replicas(self, module: SourceModule, found: ReplicaNorm) -> Finding:
        """BatchNorm that is made for DataParallel, under DDP."""
        text = (
            f"`{found.used}` makes BatchNorm that joins its statistics over the replicas of DataParallel: under "
            "DistributedDataParallel there are none, and each rank normalizes by its own share of the batch"
        )
        shown = [Evidence("static", f"`{found.used}` is used in the model", found.path, found.line)]
        return self.finding(module, found.node, text, evidence=shown, reason=_CONVERT)

    def _followed(self, project: Project, module: SourceModule, told: set[str]) -> Iterator[Finding]:
        """What a method that the training calls puts into a parameter, if it comes from the rank's own batch."""
        for found in followed_states(project, module):
            if found.owner.name in told or is_kept_to_one_device(project):
                continue
            if _several(project, module.path) is None or not is_made(project, module, found.owner):
                continue
            way = [Evidence("way", link.text, link.path, link.line) for link in found.way]
            text = (
                f"each rank sets the parameter `{found.name}` of {found.owner.name} from its own batch: DDP sends parameters "
                "only when it is made, so the ranks go on with different ones, and rank 0's are saved"
            )
            yield self.finding(module, found.node, text, evidence=way, reason=_SENT)


def _message(project: Project, found: OwnState, others: str, script: str) -> str:
    if found.parameter:
        return (
            f"each rank sets the parameter `{found.name}`{others} of {found.owner.name} from its own batch: DDP sends parameters "
            "only when it is made, so the ranks go on with different ones, and rank 0's are saved"
        )
    if _sends_no_buffers(project, script):
        return (
            f"`{found.name}`{others} of {found.owner.name} moves on by the rank's own batch: DDP puts no such numbers together, "
            "and with broadcast_buffers=False it sends none: the ranks go on with different ones, and rank 0's are saved"
        )
    return (
        f"`{found.name}`{others} of {found.owner.name} moves on by the rank's own batch: DDP puts no such numbers together, it "
        "sends rank 0's buffers to all before each forward, so what the other ranks saw is lost"
    )


def _sends_no_buffers(project: Project, script: str) -> bool:
    """True where each wrap of the script, or of the project where it makes none, is told to leave buffers alone."""
    wraps = _wraps(project, script)
    for path in () if wraps else project.files_containing(b"DistributedDataParallel"):
        wraps += [] if is_test_file(path) else _wraps(project, path)
    return bool(wraps) and all(any(_is_off(k) for k in call.keywords) for call in wraps)


def _wraps(project: Project, path: str) -> list[ast.Call]:
    module = project.module(path)
    calls = module.nodes(ast.Call) if module is not None and module.holds(b"DistributedDataParallel") else ()
    return [c for c in calls if module is not None and last(qualified(module, c.func)) == "DistributedDataParallel"]


def _is_off(keyword: ast.keyword) -> bool:
    return keyword.arg == "broadcast_buffers" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False


def _several(project: Project, path: str) -> Evidence | None:
    """What shows several processes in a program that trains with this file, over any number of imports."""
    return project.keep(("trained by ranks", path), lambda: _find_several(project, path))


def _find_several(project: Project, trained: str) -> Evidence | None:
    for path in brought_in_by(project, trained, hops=_HOPS, most=_FILES):
        if (shown := _trained_beside(project, path) or _named_by_a_setting(project, path)) is not None:
            return shown
    return None


def _trained_beside(project: Project, path: str) -> Evidence | None:
    """A file that makes backward passes on several processes, which this one is or brings in."""
    for other in sorted(reached(project, path) & _training_files(project)):
        if (shown := ranks_at(project, other)) is not None:
            return Evidence("static", f"{other} trains with it on several processes: {shown.text}", shown.path, shown.line)
    return None


def _training_files(project: Project) -> frozenset[str]:
    def build() -> frozenset[str]:
        return frozenset(p for word in _TRAINS for p in project.files_containing(word) if not is_test_file(p))

    return project.keep("training files", build)


def _named_by_a_setting(project: Project, path: str) -> Evidence | None:
    """The script of several processes that makes a class of the file by its name in a YAML file."""
    stem = path.removesuffix(".py").rpartition("/")[2]
    if not project.files_containing(os.fsencode(f"{stem}."), kinds=(".yaml", ".yml")):
        return None
    module = project.module(path)
    for owner in module.nodes(ast.ClassDef) if module is not None else ():
        if module is not None and (found := by_a_setting(project, module, owner)) is not None:
            return found[1]
    return None
