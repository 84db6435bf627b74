"""DDP106: what a test for several processes puts a gathered value in the place of is everybody's."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told

SOURCE = (
    "import accelerate\nimport torch.distributed as dist\nfrom accelerate import Accelerator\n{more}"
    "from torch.utils.data import DataLoader\nfrom torch.utils.data.distributed import DistributedSampler\n\n\n"
    "def evaluate(accelerator, model, data, loss_of, config):\n"
    "    loader = DataLoader(data, 8, sampler=DistributedSampler(data))\n"
    "    losses = []\n    for batch in loader:\n        losses.append(loss_of(model(batch)).item())\n    {test}\n"
    "    loss = sum(losses) / len(losses)\n    if dist.get_rank() == 0:\n        print(f'loss {{loss:.3f}}')\n"
)


@pytest.mark.parametrize(("more", "gather"), [
    ("", "accelerate.utils.gather_object"),
    ("from accelerate.utils import gather_object\n", "gather_object"),
    ("from accelerate.utils import gather_object as everybodys\n", "everybodys"),
    ("from accelerate import utils\n", "utils.gather_object"),
    ("import accelerate.utils as au\n", "au.gather_object"),
    ("", "accelerator.gather_for_metrics"),
])  # fmt: skip
@pytest.mark.parametrize("test", ["{}", "if config:\n        {}", "if config:\n        {}\n    else:\n        print(losses)"])
def test_a_list_that_is_gathered(more: str, gather: str, test: str) -> None:
    check_nothing(UnreducedNumber, SOURCE.format(more=more, test=test.format(f"losses = {gather}(losses)")))


@pytest.mark.parametrize("test", [
    "pass",  # nobody gathers
    "if config:\n        every = accelerate.utils.gather_object(losses)",  # under another name, and the own is shown
    "if config:\n        losses = losses[1:]",  # no collective
])  # fmt: skip
def test_a_list_of_the_own_share(test: str) -> None:
    check_told(UnreducedNumber, SOURCE.format(more="", test=test), reason="reduce sums and counts")
