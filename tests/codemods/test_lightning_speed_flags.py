"""DDP903: speed flags of Lightning, and where they would do harm."""

from __future__ import annotations

import pytest

from codemods.tuning.lightning_speed_flags import LightningSpeedFlags as Flags
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = (
    "import lightning.pytorch as pl\nfrom lightning.pytorch.strategies import DDPStrategy\n"
    "from torch.utils.data import DataLoader\n\n"
)


def test_logging_every_step() -> None:
    check_transformed(
        Flags, HEAD + "pl.Trainer(log_every_n_steps=1, devices=2)\n", HEAD + "pl.Trainer(log_every_n_steps=10, devices=2)\n"
    )


def test_workers_that_stay() -> None:
    before = HEAD + "loader = DataLoader(data, num_workers=4)\n"
    after = HEAD + "loader = DataLoader(data, num_workers=4, persistent_workers=True)\n"
    (found,) = check_transformed(Flags, before, after, unsafe=True)
    assert "nothing changes the data set between epochs" in found.reason


def test_gradients_as_views() -> None:
    before = HEAD + "strategy = DDPStrategy(find_unused_parameters=False)\n"
    after = HEAD + "strategy = DDPStrategy(find_unused_parameters=False, gradient_as_bucket_view=True)\n"
    check_transformed(Flags, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("DataLoader(d, num_workers=2)\ntrain_set.set_epoch(3)\n", "changes the data between epochs"),
        ("DataLoader(d, num_workers=2)\nloader.dataset.size = 64\n", "changes the data between epochs"),
        ("DataLoader(d, num_workers=2)\npl.Trainer(reload_dataloaders_every_n_epochs=1)\n", "changes the data between epochs"),
        ("DDPStrategy()\np.grad.detach_()\n", "handles gradients itself"),
        ("DDPStrategy(ddp_comm_hook=hook)\n", "handles gradients itself"),
        ("t = pl.Trainer(log_every_n_steps=1)\nprint(t.log_every_n_steps)\n", "reads it as well"),
    ],
)
def test_what_is_told(code: str, reason: str) -> None:
    check_told(Flags, HEAD + code, reason=reason)


@pytest.mark.parametrize(
    "code",
    [
        "DataLoader(d)\n",  # torch raises a ValueError for workers that stay where there are none
        "DataLoader(d, num_workers=0)\n",
        "DataLoader(d, num_workers=n)\n",
        "DataLoader(d, num_workers=2, persistent_workers=False)\n",
        "DDPStrategy(gradient_as_bucket_view=False)\n",
        "pl.Trainer(log_every_n_steps=50)\n",
        "pl.Trainer(log_every_n_steps=n)\n",
        "pl.Trainer(**settings, log_every_n_steps=1)\n",
    ],
)
def test_what_nothing_is_said_of(code: str) -> None:
    check_nothing(Flags, HEAD + code)


def test_a_script_without_lightning() -> None:
    check_nothing(Flags, "# lightning\nfrom torch.utils.data import DataLoader\n\nDataLoader(d, num_workers=2)\n")
