"""DDP106: numbers of one rank that rank 0 shows as everybody's."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told

RULE = UnreducedNumber
HEAD = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
WHY = "reduce sums and counts over the ranks first"
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data))"


def evaluate(end: str, *, loader: str = SHARED, step: str = "total += loss_of(model(batch)).item()") -> str:
    lines = "".join(f"    {line}\n" for line in end.splitlines())
    return (
        f"{HEAD}def evaluate(model, data, loss_of, writer, best=9.0):\n    loader = {loader}\n    total = 0.0\n"
        f"    for batch in loader:\n        {step}\n{lines}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "end",
    ["loss = total / len(loader)\nif dist.get_rank() == 0:\n    print(f'loss {loss:.3f}')",
     "loss = total / len(loader)\nrank = dist.get_rank()\nif rank == 0:\n    writer.add_scalar('loss', loss, 1)",
     "val_loss = total / len(loader)\nif dist.get_rank() != 0:\n    return\nprint('loss', val_loss)",
     "score = total / len(loader)\nif dist.get_rank() == 0 and score < best:\n    torch.save(model, 'best.pt')"],
)  # fmt: skip
def test_a_mean_over_the_own_share(end: str) -> None:
    check_told(RULE, evaluate(end), reason=WHY)


def test_a_meter_and_a_return_in_between() -> None:
    source = (
        f"{HEAD}class Meter:\n    def __init__(self):\n        self.sum, self.n = 0.0, 0\n\n"
        "    def update(self, value):\n        self.sum += value\n        self.n += 1\n\n"
        "    @property\n    def avg(self):\n        return self.sum / self.n\n\n\n"
        "def evaluate(model, loader, loss_of):\n    meter = Meter()\n    for batch in loader:\n"
        "        meter.update(loss_of(model(batch)).item())\n    return meter.avg\n\n\n"
        f"def main(model, data, loss_of):\n    loader = {SHARED}\n    val_loss = evaluate(model, loader, loss_of)\n"
        "    if dist.get_rank() == 0:\n        print(val_loss)\n"
    )
    check_told(RULE, source, reason=WHY)


def test_the_loss_of_one_step() -> None:
    step = "loss = loss_of(model(batch))\n        loss.backward()\n        if dist.get_rank() == 0:\n            writer.add_scalar('loss', loss.item(), 1)"
    check_told(RULE, evaluate("pass", step=step), reason=WHY)


def test_what_accelerate_prints_on_the_main_process() -> None:
    source = (
        "from accelerate import Accelerator\n\n\ndef main(model, loader, loss_of):\n    accelerator = Accelerator()\n"
        "    model, loader = accelerator.prepare(model, loader)\n    losses = []\n    for batch in loader:\n"
        "        losses.append(loss_of(model(batch)).item())\n    loss = sum(losses) / len(losses)\n"
        "    accelerator.print(f'loss {loss}')\n"
    )
    check_told(RULE, source, reason=WHY)


# Right


@pytest.mark.parametrize(
    "end",
    ["t = torch.tensor([total, len(loader)])\ndist.all_reduce(t)\n"
     "if dist.get_rank() == 0:\n    print('loss', (t[0] / t[1]).item())",
     "loss = reduce_mean(total / len(loader))\nif dist.get_rank() == 0:\n    print('loss', loss)",
     "parts = [None] * dist.get_world_size()\ndist.all_gather_object(parts, total)\nloss = sum(parts)\n"
     "if dist.get_rank() == 0:\n    print('loss', loss)",
     "loss = total / len(loader)\nprint('loss', loss)",
     "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('rank', dist.get_rank(), 'loss', loss)",
     "if dist.get_rank() == 0:\n    print('batches', len(loader))"],
)  # fmt: skip
def test_numbers_that_are_reduced_or_named(end: str) -> None:
    check_nothing(RULE, evaluate(end))


def test_a_loader_that_gives_every_rank_the_whole() -> None:
    end = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_nothing(RULE, evaluate(end, loader="DataLoader(data, 8)"))


def test_the_metric_of_torchmetrics() -> None:
    source = (
        f"{HEAD}from torchmetrics.classification import BinaryAccuracy\n\n\ndef evaluate(model, data):\n    loader = {SHARED}\n"
        "    accuracy = BinaryAccuracy()\n    for batch, labels in loader:\n        accuracy.update(model(batch), labels)\n"
        "    acc = accuracy.compute()\n    if dist.get_rank() == 0:\n        print('acc', acc.item())\n"
    )
    check_nothing(RULE, source)


def test_a_file_that_one_process_runs() -> None:
    loop = "def f(loader, model, rank):\n    for x in loader:\n        loss = model(x)\n"
    check_nothing(RULE, loop + "    if rank == 0:\n        print(loss)\n")


def test_a_test_of_the_repository() -> None:
    end = "loss = total / len(loader)\nif dist.get_rank() == 0:\n    print('loss', loss)"
    check_nothing(RULE, evaluate(end), path="tests/test_train.py")
