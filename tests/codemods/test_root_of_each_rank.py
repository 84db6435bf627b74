from __future__ import annotations

import pytest

from codemods.sync.root_of_each_rank import RootOfEachRank
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = """
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

"""


def script(*lines: str, head: str = HEAD, parameters: str = "x, out, rows") -> str:
    return f"{head}def work({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("page", ["Example"])
def test_example_of_the_page(page: str) -> None:
    sections = RootOfEachRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in (page, "Use instead"))
    check_transformed(RootOfEachRank, before, after, unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.broadcast(x, src=dist.get_rank())",),
        ("rank = dist.get_rank()", "dist.broadcast(x, rank)"),
        ('rank = int(os.environ["RANK"])', "dist.broadcast_object_list(rows, src=rank)"),
        ('local_rank = int(os.environ["LOCAL_RANK"])', "dist.broadcast(x, local_rank)"),
        ("rank = dist.get_rank()", "dist.scatter(x, rows, src=rank)"),
    ],
)
def test_every_rank_sends(lines: tuple[str, ...]) -> None:
    assert "every rank sends" in check_told(RootOfEachRank, script(*lines), reason="name one root").message


@pytest.mark.parametrize(
    ("lines", "instead"),
    [
        (("rank = dist.get_rank()", "dist.reduce(x, rank)"), "all_reduce"),
        (("rank = dist.get_rank()", "dist.gather(x, rows, dst=rank)"), "all_gather"),
        (("rank = dist.get_rank()", "torch.distributed.gather_object(x, rows, dst=rank)"), "all_gather_object"),
    ],
)
def test_every_rank_waits(lines: tuple[str, ...], instead: str) -> None:
    assert "waits to be sent" in check_told(RootOfEachRank, script(*lines), reason=f"call `{instead}`").message


def test_the_number_that_spawn_gives() -> None:
    source = script("dist.broadcast(x, src=rank)", parameters="rank, x") + "\n\nmp.spawn(work, nprocs=2, args=(None,))\n"
    check_told(RootOfEachRank, source, reason="name one root")


def test_a_parameter_counts_as_what_the_callers_hand_over() -> None:
    source = script("dist.broadcast(x, src=rank)", parameters="x, rank") + "\n\ndef main(x):\n    work(x, {0})\n"
    check_told(RootOfEachRank, source.format("dist.get_rank()"), reason="name one root")
    check_nothing(RootOfEachRank, source.format("0"))
    check_nothing(RootOfEachRank, source.format("x.owner"))
    check_nothing(RootOfEachRank, source.split("def main")[0])


def test_a_state_that_every_rank_asks_for_is_told() -> None:
    lines = ("rank = dist.get_rank()", "out.consolidate_state_dict(to=rank)", "torch.save(out.state_dict(), f'{rank}.pt')")
    check_told(RootOfEachRank, script(*lines), reason="let that rank alone call")
    check_told(RootOfEachRank, script(*lines[:2]), reason="let that rank alone call")


def test_fields_of_a_trainer() -> None:
    before = (
        f"{HEAD}class Loop:\n    def __init__(self, optimizer):\n        self.rank = dist.get_rank()\n"
        "        self.optimizer = optimizer\n\n    def save(self, path):\n"
        "        self.optimizer.consolidate_state_dict(to=self.rank)\n        if self.rank == 0:\n"
        "            torch.save(self.optimizer.state_dict(), path)\n"
    )
    check_transformed(RootOfEachRank, before, before.replace("to=self.rank", "to=0"), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.broadcast(x, src=0)",),
        ("dist.broadcast(x, 0)", "rank = dist.get_rank()"),
        ("for rank in range(dist.get_world_size()):", "    dist.broadcast(x, src=rank)"),
        ("rank = dist.get_rank()", "dist.broadcast(x, src=rank, group=rows)"),
        ("rank = dist.get_rank()", "dist.broadcast(x, rank, rows)"),
        ("rank = dist.get_rank()", "if rank == 0:", "    dist.broadcast(x, src=rank)", "else:", "    dist.broadcast(x, src=0)"),
        ("rank = dist.get_rank()", "for owner in range(dist.get_world_size()):", "    if owner == rank:",
         "        dist.broadcast(x, src=rank)", "    else:", "        dist.broadcast(x, src=owner)"),
        ("rank = dist.get_rank()", "dist.send(x, dst=1 - rank)"),
        ("rank = dist.get_rank()", "root = out.owner(rank)", "dist.broadcast(x, src=root)"),
        ("rank = dist.get_rank()", "dist.all_reduce(x)", "out.reduce(x, rank)"),
        ("rank = dist.get_rank()", "out.consolidate_state_dict()"),
        ("rank = torch.tensor(dist.get_rank())", "dist.broadcast(rank, src=0)"),
        ("rank = torch.linalg.matrix_rank(x)", "dist.broadcast(x, src=rank)"),
    ],
)  # fmt: skip
def test_one_root(lines: tuple[str, ...]) -> None:
    check_nothing(RootOfEachRank, script(*lines))


def test_a_method_of_that_name_in_the_project() -> None:
    own = "class Table:\n    def consolidate_state_dict(self, to):\n        return to\n"
    check_nothing(RootOfEachRank, script("out.consolidate_state_dict(to=dist.get_rank())"), files={"table.py": own})
    check_nothing(RootOfEachRank, script("dist.broadcast(x, src=dist.get_rank())"), path="tests/test_work.py")
