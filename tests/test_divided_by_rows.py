"""A sum over the rank's share that is divided by the rows of the whole set."""

from __future__ import annotations

import pytest

from codemods.metrics.wrong_average import WrongAverage
from ddpfix.testing import check_nothing, findings_of

ADD = "total += loss.item() * x.size(0)"
SHOW = 'accelerator.log({"train loss": total / len(loader.dataset)})'


def prepared(add: str = ADD, show: str = SHOW, over: str = "tqdm(loader)", names: str = "model, loader") -> str:
    return (
        "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\nfrom tqdm import tqdm\n\n\n"
        f"def train(model, loader, other, optimizer):\n    accelerator = Accelerator()\n"
        f"    {names} = accelerator.prepare({names})\n"
        f"    for epoch in range(9):\n        total = 0.0\n        for x, y in {over}:\n            loss = model(x, y)\n"
        f"            accelerator.backward(loss)\n            {add}\n        {show}\n"
    )


SAMPLER = "DistributedSampler(rows) if dist.is_initialized() else None"


def sampled(sampler: str = SAMPLER, then: str = "pass") -> str:
    return (
        "import torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n\n"
        "def evaluate(model, loader):\n    total = 0.0\n    for x, y in loader:\n        loss = model(x, y)\n"
        f"        {ADD}\n    {then}\n    size = len(loader.dataset)\n    loss = total / size\n"
        '    if dist.get_rank() == 0:\n        print(f"loss {loss:.3f}")\n    return loss\n\n\n'
        f"def main(model, rows):\n    dist.init_process_group()\n    sampler = {sampler}\n"
        "    evaluate(model, DataLoader(rows, 4, sampler=sampler))\n"
    )


@pytest.mark.parametrize("source", [prepared(), prepared(over="loader"), sampled(), sampled("DistributedSampler(rows)")])
def test_a_share_over_the_rows_of_the_whole_set(source: str) -> None:
    (found,) = [f for f in findings_of(WrongAverage, source) if "too small" in f.message]
    assert "rows of the whole set" in found.message


@pytest.mark.parametrize(
    "source",
    [
        prepared(names="model, other"),  # every rank goes through all of it
        prepared(show='total = accelerator.reduce(total)\n        ' + SHOW),  # that of all ranks
        prepared(over="other"),  # another loader is counted
        prepared(show="scale = total / len(loader.dataset)"),  # nobody sees it
        prepared("total = loss.item()"),  # the last batch alone
        sampled("None"),
        sampled(then="total = reduce_all(total)"),
        sampled("PartOf(rows)"),  # what it deals out is not seen
    ],
)
def test_sums_that_are_left_alone(source: str) -> None:
    check_nothing(WrongAverage, source)
