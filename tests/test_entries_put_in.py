"""A dict of numbers that rank 0 shows as a whole, and into which the number of its own share was put above."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, findings_of

PUT = 'row["val_loss"] = np.mean(losses)'
LOG = "wandb.log(row, step=epoch)"


def logged(put: str = PUT, *, show: str = LOG, then: str = "pass", start: str = "row = {}", sampler: str = "own") -> str:
    return (
        "import numpy as np\nimport torch\nimport torch.distributed as dist\nimport wandb\n"
        "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
        "def reduced(rows):\n    for key in rows:\n        dist.all_reduce(rows[key])\n    return rows\n\n\n"
        "def run(model, rows):\n    own = DistributedSampler(rows, shuffle=False)\n"
        f"    loader = DataLoader(rows, 4, sampler={sampler})\n    for epoch in range(9):\n        {start}\n        losses = []\n"
        "        with torch.no_grad():\n            for batch in loader:\n                losses.append(model(batch).item())\n"
        f"        {put}\n        {then}\n        if dist.get_rank() == 0:\n            {show}\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        logged(),
        logged('row.update({"val_loss": np.mean(losses)})'),
        logged(start='row = {"epoch": epoch}'),
        logged(start="row = dict()"),
        logged(show="wandb.log(row, step=epoch, commit=True)"),
        logged(then="row.update(model.settings())"),
    ],
)
def test_an_entry_of_the_rank_s_own_share(source: str) -> None:
    (found,) = findings_of(UnreducedNumber, source)
    assert "own share" in found.message


@pytest.mark.parametrize(
    "source",
    [
        logged(sampler="None"),  # every rank goes through all of it
        logged(then="row = reduced(row)"),  # all entries of all ranks
        logged(then="reduced(row)"),
        logged(then='for key in row:\n            row[key] = float(row[key])'),  # each may be another since
        logged(then='row["val_loss"] = dist.broadcast(torch.zeros(()), 0)'),  # put in anew
        logged(then="row.update(all_losses(losses))"),  # may hold that of all
        logged('row["picture"] = wandb.Image(batch)'),
        logged(show='wandb.log({"epoch": epoch})'),  # another dict is shown
        logged(start="row = model.settings()"),  # what else it is, is not seen
    ],
)
def test_dicts_that_show_no_own_number(source: str) -> None:
    check_nothing(UnreducedNumber, source)
