"""DDP411: shares of which some are one row longer, and how they come to the loader."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import check_nothing, check_told

RULE = UnevenSteps
WHY = "give every rank as many rounds"
HEAD = (
    "import numpy as np\nimport torch\nimport torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom torch.utils.data import DataLoader, Dataset\n\n\n"
    "class Rows(Dataset):\n    def __init__(self, rows):\n        self.rows = rows\n\n"
    "    def __len__(self):\n        return len(self.rows)\n\n"
    "    def __getitem__(self, index):\n        return self.rows[index]\n\n\n"
)
TRAIN = (
    "\n\ndef train(net, rows, loss_of):\n    rank, world_size = dist.get_rank(), dist.get_world_size()\n    model = DDP(net)\n"
    "{}    for batch in DataLoader(Rows(mine), batch_size=4, drop_last=True):\n        loss_of(model(batch)).backward()\n"
)


def by_function(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}def share(rows, rank, world_size):\n{body}" + TRAIN.format("    mine = share(rows, rank, world_size)\n")


def in_place(*lines: str) -> str:
    return HEAD + TRAIN.format("".join(f"    {line}\n" for line in lines))


BASE = "base = len(rows) // world_size"
REST = "rest = len(rows) % world_size"
FIRST = "first = rank * base + min(rank, rest)"


@pytest.mark.parametrize(
    "lines",
    [
        (BASE, REST, FIRST, "return rows[first:first + base + (1 if rank < rest else 0)]"),
        ("base, rest = divmod(len(rows), world_size)", FIRST, "end = first + base + int(rank < rest)", "return rows[first:end]"),
        (BASE, REST, FIRST, "count = base", "if rank < rest:", "    count += 1", "return rows[first:first + count]"),
        (BASE, REST, FIRST, "end = (rank + 1) * base + min(rank + 1, rest)", "return rows[first:end]"),
        ("parts = np.array_split(rows, world_size)", "return parts[rank]"),
        ("return torch.tensor_split(rows, world_size)[rank]",),
    ],
)  # fmt: skip
def test_the_first_ranks_get_one_more(lines: tuple[str, ...]) -> None:
    check_told(RULE, by_function(*lines), reason=WHY)


def test_parts_that_are_cut_beside_the_loop() -> None:
    check_told(RULE, in_place("chunks = np.array_split(rows, world_size)", "mine = chunks[rank]"), reason=WHY)
    check_told(RULE, in_place("mine = rows.tensor_split(world_size, dim=0)[rank]"), reason=WHY)


@pytest.mark.parametrize(
    "lines",
    [
        (BASE, "first = rank * base", "return rows[first:first + base]"),  # the rest is left out
        ("rows = rows[:len(rows) // world_size * world_size]", REST, "base = len(rows) // world_size", FIRST,
         "return rows[first:first + base + (1 if rank < rest else 0)]"),  # there is no rest
        ("even = len(rows) // world_size * world_size", "return np.array_split(rows[:even], world_size)[rank]"),
        ("assert len(rows) % world_size == 0", "return np.array_split(rows, world_size)[rank]"),
        ("return rows.tensor_split(world_size, dim=1)[rank]",),  # the columns: every rank has all the rows
        ("return np.array_split(rows, [100, 200])[rank]",),  # where to cut is given
        ("return np.array_split(rows, world_size)[0]",),  # the same part on all ranks
    ],
)  # fmt: skip
def test_parts_of_one_length(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, by_function(*lines))


def test_a_place_for_each_rank_is_no_part() -> None:
    lines = ("parts = [rows for _ in range(world_size)]", "mine = parts[rank]")
    check_nothing(RULE, in_place(*lines))


def trainer(rows: str) -> str:
    return (
        f"{HEAD}class Trainer:\n    def __init__(self, net, rows):\n        self.rank = dist.get_rank()\n"
        f"        self.world_size = dist.get_world_size()\n        self.rows = {rows}\n        self.model = DDP(net)\n"
        "        self.loader = self.batches()\n\n"
        "    def batches(self):\n        return DataLoader(Rows(self.rows), batch_size=4, shuffle=True)\n\n"
        "    def train(self, loss_of):\n        for batch in self.loader:\n            loss_of(self.model(batch)).backward()\n"
    )


def test_a_loader_of_the_own_rows_that_a_method_makes_for_the_constructor() -> None:
    check_told(RULE, trainer("[r for i, r in enumerate(rows) if i % self.world_size == self.rank]"), reason=WHY)
    check_nothing(RULE, trainer("[r for i, r in enumerate(rows) if i % 2 == 0]"))
    check_nothing(RULE, trainer("[(self.rank, r) for r in rows]"))
