"""DDP106: the loss of a training epoch beside a validation loss that is reduced over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told, findings_of

PROGRAM = """\
import torch
import torch.distributed as dist
import wandb
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def validate(model, loader, loss_of):
    total = torch.zeros(2)
    for batch in loader:
        total += torch.stack([loss_of(model(batch)), torch.ones(())])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def fit(model, data, held_out, loss_of, optimizer, writer):
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    val_loader = DataLoader(held_out, 8, sampler=DistributedSampler(held_out))
    for epoch in range(3):
        total = 0.0
        for batch in loader:
            loss = loss_of(model(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        {end}
"""
CALLED = "val_loss = validate(model, val_loader, loss_of)"
IN_PLACE = "val_loss = loss_of(model(data))\ndist.all_reduce(val_loss)\nval_loss = val_loss.item() / dist.get_world_size()"
ZERO = "if dist.get_rank() == 0:"
BOTH = "    wandb.log({'val_loss': val_loss, 'train_loss': total / len(loader)})"
APART = "    wandb.log({'val_loss': val_loss})\n    wandb.log({'train_loss': total / len(loader)})"
TEXT = "    loss = total / len(loader)\n    print(f'{loss:.3f}, on the held-out part {val_loss:.3f}')"
DRAWN = "    writer.add_scalar('train/loss', total / len(loader), 1)\n    writer.add_scalar('val/loss', val_loss, 1)"


def program(*lines: str) -> str:
    return PROGRAM.replace("{end}", "\n".join(lines).replace("\n", "\n        "))


@pytest.mark.parametrize("made", [CALLED, IN_PLACE])
@pytest.mark.parametrize("shown", [BOTH, APART, TEXT, DRAWN])
def test_a_mean_of_the_training_beside_a_reduced_one(made: str, shown: str) -> None:
    told = check_told(UnreducedNumber, program(made, ZERO, shown), reason="reduce sums and counts over the ranks first")
    assert "by the side of `val_loss`" in told.message


@pytest.mark.parametrize(
    "lines",
    [
        ("", ZERO, "    wandb.log({'train_loss': total / len(loader)})"),  # a curve that stands alone
        (CALLED, ZERO, "    wandb.log({'val_loss': val_loss, 'train_loss': loss.item()})"),  # that of the last batch
        (CALLED, ZERO, "    print(f'{val_loss:.3f}')\n    wandb.log({'train_loss': total / len(loader)})"),  # shown elsewhere
        ("val_acc = validate(model, val_loader, loss_of)", ZERO,
         "    wandb.log({'val_acc': val_acc, 'train_loss': total / len(loader)})"),  # a number of another kind
        ("val_loss = loss_of(model(data)).item()", ZERO, BOTH),  # the whole set on every rank, nothing is reduced
        (CALLED, "sums = torch.tensor([total, len(loader)])", "dist.all_reduce(sums)", "total = sums[0] / sums[1]", ZERO,
         "    wandb.log({'val_loss': val_loss, 'train_loss': total})"),  # both are reduced
    ],
)  # fmt: skip
def test_curves_that_are_left_alone(lines: tuple[str, ...]) -> None:
    check_nothing(UnreducedNumber, program(*lines))


OTHER_SUM = """\
def validate(model, loader, loss_of):
    total, parts = torch.zeros(2), torch.zeros(3)
    for batch in loader:
        total += torch.stack([loss_of(model(batch)), torch.ones(())])
        parts += loss_of(model(batch))
    dist.all_reduce(RE)
    return parts / len(loader)
"""
ENTRY = "    loss = total / len(loader)\n    print(f'{loss:.3f}')\n    print('held out: {:.3f}'.format(val_loss[0]))"


def by_entries(reduced: str) -> str:
    start, end = PROGRAM.index("def validate"), PROGRAM.index("\n\ndef fit")
    return program(CALLED, ZERO, ENTRY).replace(PROGRAM[start:end], OTHER_SUM.replace("RE", reduced))


def test_an_entry_of_what_is_reduced_or_not() -> None:
    told = [f.message for f in findings_of(UnreducedNumber, by_entries("total"))]
    assert told and not any("by the side of" in message for message in told)
    assert any("by the side of `val_loss`" in f.message for f in findings_of(UnreducedNumber, by_entries("parts")))
