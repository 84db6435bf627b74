"""A list that each rank mixes by numbers of its own, and cuts into what it trains on and the rest."""

from __future__ import annotations

import pytest

from codemods.data_loading.unseeded_split import UnseededSplit
from ddpfix.testing import check_nothing, findings_of

BY_NUMBER = "train_rows = [rows[i] for i in order[:n]]\n    val_rows = [rows[i] for i in order[n:]]"
CUT = "train, val = rows[:n], rows[n:]"


def cut(parts: str = CUT, mix: str = "random.shuffle(rows)", name: str = "split", seed: str = "pass") -> str:
    return (
        "import random\n\nimport torch\nimport torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n\n\n"
        f"def {name}(rows, n):\n    {mix}\n    {parts}\n    return rows\n\n\n"
        f'def main(net, rows):\n    dist.init_process_group("nccl")\n    {seed}\n    {name}(rows, 90)\n'
        "    return DistributedDataParallel(net)\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        cut(),
        cut("train_rows = rows[:n]\n    val_rows = rows[n:]"),
        cut(BY_NUMBER, "order = torch.randperm(len(rows))"),
    ],
)
def test_each_rank_has_another_part(source: str) -> None:
    (found,) = findings_of(UnseededSplit, source)
    assert "divides the data in another way" in found.message


@pytest.mark.parametrize(
    "source",
    [
        cut(seed="random.seed(0)\n    torch.manual_seed(0)"),  # all ranks mix alike
        cut("train = rows[n:] + rows[:n]"),  # the list is turned
        cut("train, val = rows[:n], rows[n + 1 :]"),  # they do not meet
        cut("first, second = rows[:n], rows[n:]"),  # what they are for is not said
        cut("train = rows[:n]"),  # a sample, of which there is no rest
        cut(name="augment"),  # for each sample
        cut(mix="random.Random(0).shuffle(rows)"),
    ],
)
def test_cuts_that_are_left_alone(source: str) -> None:
    check_nothing(UnseededSplit, source)
