"""DDP213: the number of a process on its node where its number among all processes is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.guards.entry_points import group_name, starts_group
from codemods.analysis.guards.global_rank_at import starts_always
from codemods.analysis.guards.group_above import has_group_above
from codemods.analysis.guards.group_may_be_missing import is_guarded
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.counted_among import Among, environment, is_lightning
from codemods.analysis.ranks.local_shares import LocalShare, Use, local_shares
from codemods.analysis.ranks.several_nodes import names_nodes
from codemods.analysis.ranks.worlds_as_nodes import WorldAsNode, only_multiplied, worlds_as_nodes
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_TAKEN = {
    Use.GROUP: "the process joins the group with it as its rank",
    Use.SAMPLER: "the sampler deals the data out by it",
    Use.SHARE: "the process takes its share of the data by it",
    Use.SLOT: "the process puts its own tensor in that place among those of all processes",
}


class RankFromLocalIndex(DdpCodemod):
    """The number of a process on its node is taken for its rank, or the number of all processes for that of one node.

    ## What it does
    Finds a local rank (`LOCAL_RANK`, `args.local_rank`, `accelerator.local_process_index`, a field `local_rank` of the
    settings that DeepSpeed's launcher fills in, the first argument of what `mp.spawn` starts) that is handed to
    `init_process_group`, to a distributed sampler or to a share of the data (`rows[i::n]`, `islice`, `shard`, `shard_id=`),
    beside a number of processes that counts all nodes, or that the same function hands over with the rank that it works out
    of both (`node * gpus + gpu`). Puts the global rank there (unsafe). Finds the own tensor that is put back among those of
    `all_gather` by the local rank, and takes the place of the global rank (safe). Finds `WORLD_SIZE` multiplied by a number
    of nodes: torchrun counts the nodes in it already; `LOCAL_WORLD_SIZE` is meant (unsafe).

    ## Why it matters
    On one node both numbers are the same, so the mistake shows on the second node. Two processes give the same rank to
    `init_process_group`, nobody gives the others, and all of them wait until the time-out. A sampler deals the first node's
    part to every node: they train on the same rows, and nobody ever sees the rest.

    ## Example
    ```python
    import os

    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler


    def loader_of(dataset):
        local_rank = int(os.environ["LOCAL_RANK"])
        sampler = DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=local_rank)
        return DataLoader(dataset, batch_size=8, sampler=sampler)
    ```

    ## Use instead
    ```python
    import os

    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler


    def loader_of(dataset):
        local_rank = int(os.environ["LOCAL_RANK"])
        sampler = DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank())
        return DataLoader(dataset, batch_size=8, sampler=sampler)
    ```

    ## Safety
    Safe: the place of the own tensor, for `all_gather` orders them by rank. Else unsafe: that the nodes read the same data is an
    assumption, for on a disk of its own each node may hold its own part; that the launcher sets `RANK` beside `LOCAL_RANK`, as
    torchrun does, is another.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where the number of processes beside it, in the same call, is that of one node (`torch.cuda.device_count()`),
      is not known, or is what `mp.spawn` starts at once.
    - Says nothing in a program that joins its processes at an address of its own machine, or that numbers all of them by their
      place on it: it is for one node. So is the whole project, where no other program is seen to make a group.
    - Says nothing where the project itself sets `LOCAL_RANK` or `WORLD_SIZE`.
    - Says nothing where the project has commands that start its programs, and none of them, nor a setting or a text, speaks of a
      second node; of an own tensor it does.
    - Says nothing of an own tensor in the list that a group of some of the processes has filled.
    - Says nothing of a rank that is worked out (`node_rank * gpus + local_rank`), also where the program adds to the number
      itself (`args.local_rank += node * gpus`), or that only bears the name of a local one.
    - Reports an own tensor in a place by a number of which the file works out another place (`local_rank * size`), too.
    - Reports the number that `mp.spawn` gives: how the number of this node is called has to be decided.
    - Reports `WORLD_SIZE` that is used for more than such a product, and places that no import of torch.distributed reaches.

    ## References
    torchrun's documentation: `LOCAL_RANK`, `RANK`, `WORLD_SIZE`, `LOCAL_WORLD_SIZE`; `torch.multiprocessing.spawn`: the first
    argument is the index of the process; two-process runs in which both ranks are 0: the store waits for the second.
    """

    code = "DDP213"
    severity = "crash"
    subject = "Count processes over all nodes"
    must_show = "On two nodes every process joins the group, and no two of them read the same rows."
    printed = ("Timed out after", "Address already in use", *WAITING)
    TRIGGERS = (
        (b"LOCAL_RANK", b"local_rank", b"LOCALID", b"local_process_index", b"spawn(", b"WORLD_SIZE"),
        (b"rank", b"RANK"),
        (b"torch", b"ccelerat", b"ightning"),
    )
    READS_TESTS = False

    @classmethod
    def nodes(cls, findings: Sequence[Finding]) -> int:
        """On one node the local rank is the global one."""
        del findings
        return 2

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        shares = list(local_shares(project, module))
        products = list(worlds_as_nodes(project, module))
        one_node = bool(shares or products) and not names_nodes(project) and bool(starts(project))
        for found in shares:
            if found.use is Use.SLOT or not one_node:
                yield self._share(project, module, found)
        for product in products if not one_node else ():
            yield self._product(module, product)

    def _share(self, project: Project, module: SourceModule, found: LocalShare) -> Finding:
        text = " ".join(module.text_of(found.index).split())
        edits, reason = _repaired(project, module, found)
        level = Applicability.SAFE if found.use is Use.SLOT else Applicability.UNSAFE
        evidence = [Evidence("static", f"here {_TAKEN[found.use]}", *found.place)]
        if found.size is not None and found.among is not None:
            evidence.append(Evidence("static", f"the number beside it counts {found.among.value}", *found.place))
        return self.finding(
            module, found.index, f"`{text}` is the number of a process on its node, and {_TAKEN[found.use]}: {_shown(found)}",
            level=level if edits else Applicability.DISPLAY, edits=edits, evidence=evidence,
            reason="" if edits and level is Applicability.SAFE else reason,
        )  # fmt: skip

    def _product(self, module: SourceModule, found: WorldAsNode) -> Finding:
        edits: list[Edit] = []
        reason = "read LOCAL_WORLD_SIZE for the processes of one node, or take dist.get_rank() and dist.get_world_size()"
        constant = _key(found.read) if found.read_in is module else None
        named = isinstance(found.size, ast.Name) and only_multiplied(module, found.size)
        if constant is not None and environment(module, found.read) == "WORLD_SIZE" and (named or found.size is found.read):
            edits = [ReplaceExpression(module.path, module.span(constant), '"LOCAL_WORLD_SIZE"')]
            reason = "assumes that torchrun starts the processes: it sets LOCAL_WORLD_SIZE beside WORLD_SIZE"
        message = (
            f"`{' '.join(module.text_of(found.product).split())}` counts the nodes twice: the number of processes holds those of "
            "all nodes already, and the group waits for processes that nobody starts"
        )
        place = found.read_in.path, found.read.lineno
        return self.finding(
            module, found.product, message, level=Applicability.UNSAFE if edits else Applicability.DISPLAY, edits=edits,
            evidence=[Evidence("static", "the launcher sets WORLD_SIZE to the number of all processes", *place)], reason=reason,
        )  # fmt: skip


def _shown(found: LocalShare) -> str:
    if found.use is Use.SLOT:
        return "all_gather puts them in the order of the ranks, so on a second node it takes the place of another's"
    if found.use is Use.GROUP:
        return "with a second node two processes claim each rank, and the others of the group never come"
    if found.among is Among.NODE:
        return "every node goes through all of the data, as if it trained alone"
    return "with a second node both take the same part, and nobody takes the rest"


def _repaired(project: Project, module: SourceModule, found: LocalShare) -> tuple[list[Edit], str]:
    span = module.span(found.index)
    if found.use is Use.SLOT and (line := _counted_again(module, found.index)):
        return [], f"line {line} finds its own part by the same number: give the global rank in both places, or the two part"
    if found.whole:
        return [ReplaceExpression(module.path, span, found.whole)], "assumes that the nodes read the same data"
    if isinstance(found.index, ast.Attribute) and last(dotted(found.index.value)) == "trainer" and is_lightning(module):
        holder = module.text_of(found.index.value)
        return [ReplaceExpression(module.path, span, f"{holder}.global_rank")], "assumes that the nodes read the same data"
    if isinstance(found.index, ast.Attribute) and found.index.attr == "local_process_index":
        holder = module.text_of(found.index.value)
        return [ReplaceExpression(module.path, span, f"{holder}.process_index")], "assumes that the nodes read the same data"
    if found.counted is Among.SPAWNED:
        return [], "work the rank out: the number of this node times the processes of a node, and this number added to it"
    if found.shared:
        return [], "the same variable is read for other things: give the global rank here alone, where each way to start knows it"
    if found.use is Use.GROUP:
        if (read := _environment_read(module, found.index)) is None:
            return [], 'give the global rank: `int(os.environ["RANK"])`, which torchrun sets'
        assumed = "assumes that the launcher sets RANK for each process, as torchrun does"
        return [ReplaceExpression(module.path, span, read)], assumed
    if environment(module, found.index) == "LOCAL_RANK" and (key := _key(found.index)) is not None:
        assumed = "assumes that the nodes read the same data, and that the launcher sets RANK for each process, as torchrun does"
        return [ReplaceExpression(module.path, module.span(key), '"RANK"')], assumed
    name = group_name(module, found.index)
    if not name:
        return [], "give the global rank: `torch.distributed.get_rank()`"
    alone = _may_be_alone(project, module, found)
    edits: list[Edit] = [ReplaceExpression(module.path, span, _asked(module, found.index, name, "get_rank", 0, alone=alone))]
    if found.among is Among.NODE and found.size is not None and found.place[0] == module.path:
        size = _asked(module, found.size, name, "get_world_size", 1, alone=alone)
        edits.append(ReplaceExpression(module.path, module.span(found.size), size))
    return edits, "assumes that the nodes read the same data, and that the process group has been started by then"


def _counted_again(module: SourceModule, index: ast.expr) -> int:
    """The line that multiplies the same number, for the place of the own part among those of all; 0 where none does."""
    text = ast.dump(index)
    products = (n for n in module.nodes(ast.BinOp) if isinstance(n.op, ast.Mult))
    return next((p.lineno for p in products if any(ast.dump(n) == text for n in walk(p))), 0)


def _may_be_alone(project: Project, module: SourceModule, found: LocalShare) -> bool:
    """True where the project starts its group under a condition, and a run without one may come to the place.

    What is given no number of processes asks the group for it, and raises without one as it stands.
    """
    if found.size is None or starts_always(project) or not any(_starts(project)):
        return False
    asked = found.index
    return not has_group_above(project, module, asked) and not is_guarded(project, module, asked, set())


def _starts(project: Project) -> Iterator[bool]:
    paths = (p for p in project.files_containing(b"init_process_group") if not is_test_file(p))
    for home in filter(None, map(project.module, paths)):
        yield from (True for call in home.calls_named("init_process_group") if starts_group(home, call))


def _asked(module: SourceModule, node: ast.expr, group: str, method: str, without: int, *, alone: bool) -> str:
    if not alone:
        return f"{group}.{method}()"
    text = f"{group}.{method}() if {group}.is_initialized() else {without}"
    return text if isinstance(module.parent(node), (ast.Call, ast.keyword, ast.Assign)) else f"({text})"


def _environment_read(module: SourceModule, index: ast.expr) -> str | None:
    """`int(os.environ["RANK"])`, where the file has `os`."""
    plain = any(i.dotted == "os" for i in module.imports.get("os", ()))
    return 'int(os.environ["RANK"])' if plain and isinstance(index, (ast.Name, ast.Call, ast.Attribute)) else None


def _key(read: ast.expr) -> ast.Constant | None:
    """The name of the variable in the expression that reads it."""
    key = read.slice if isinstance(read, ast.Subscript) else read.args[0] if isinstance(read, ast.Call) and read.args else None
    return key if isinstance(key, ast.Constant) else None
