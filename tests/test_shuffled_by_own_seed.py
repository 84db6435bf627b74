"""DDP409: Lightning and Fabric shuffle by the number of `seed_everything`, which each rank has for itself."""

from __future__ import annotations

import pytest

from codemods.data_loading.rank_seeded_split import RankSeededSplit
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = RankSeededSplit
HEAD = """\
import os
import random
import time

import lightning.pytorch as pl
import numpy as np
from torch.utils.data import DataLoader


"""
DRAWN = "pl.seed_everything(random.randint(0, 999))"
LOADER = "DataLoader(data, batch_size=8, shuffle=True)"


def program(*lines: str, loader: str = LOADER, trainer: str = 'devices=4, strategy="ddp"') -> str:
    fit = (f"trainer = pl.Trainer({trainer})", f"trainer.fit(net, {loader})")
    return f"{HEAD}def main(net, data, config):\n" + "".join(f"    {line}\n" for line in (*lines, *fit))


@pytest.mark.parametrize(
    "lines",
    [
        ("pl.seed_everything(random.randint(0, 999))",),
        ("pl.seed_everything(int(time.time()), workers=True)",),
        ("seed = np.random.randint(999)", "pl.seed_everything(seed)"),
        ("if config.seed is None:", "    config.seed = random.randint(0, 999)", "pl.seed_everything(config.seed)"),
        ("pl.seed_everything(3 + int(os.environ.get('LOCAL_RANK', 0)))",),
    ],
)
def test_a_seed_of_each_process(lines: tuple[str, ...]) -> None:
    found = check_told(RULE, program(*lines), reason="give all ranks one seed")
    assert f"Lightning shuffles `{LOADER}` by this seed" in found.message


MODULE = """\
class Net(pl.LightningModule):
    def train_dataloader(self):
        loaders = {0: DataLoader(self.rows, shuffle=True)}
        return loaders


"""


def test_loaders_in_a_dict_of_a_module() -> None:
    source = program(DRAWN).replace("def main", f"{MODULE}def main").replace(f", {LOADER}", "")
    assert "DataLoader(self.rows" in findings_of(RULE, source)[0].message


def test_fabric() -> None:
    source = (
        f"{HEAD}from lightning.fabric import Fabric\n\n\ndef main(net, data):\n    fabric = Fabric(devices=4)\n"
        "    fabric.launch()\n    fabric.seed_everything(3 + fabric.global_rank)\n"
        f"    loader = fabric.setup_dataloaders({LOADER})\n    return loader\n"
    )
    found = check_told(RULE, source, reason="give all ranks one seed")
    assert found.message.startswith("Fabric shuffles")
    seed = "    fabric.seed_everything(3 + fabric.global_rank)\n"
    behind = source.replace(seed, "").replace("    return loader", f"{seed}    return loader")
    check_nothing(RULE, behind)  # the sampler is made, and its seed with it


@pytest.mark.parametrize(
    "source",
    [
        program("pl.seed_everything(3)"),
        program("pl.seed_everything(config.seed)"),
        program("pl.seed_everything()"),  # 0, or what the parent has left
        program("random.seed(3)", DRAWN),  # drawn from the same numbers everywhere
        program(DRAWN, "pl.seed_everything(3)"),
        program(DRAWN, loader="DataLoader(data, batch_size=8)"),  # in the order of the rows
        program(DRAWN, loader="DataLoader(data, sampler=config.sampler, shuffle=True)"),
        program(DRAWN, trainer="devices=1"),
        program(DRAWN, trainer='devices=4, strategy="ddp_spawn"'),  # the ranks do not run the script again
        program(DRAWN, trainer="devices=4, use_distributed_sampler=False"),
        program("seed = int(os.environ.get('PL_GLOBAL_SEED', random.randint(0, 9)))", "pl.seed_everything(seed)"),
        program("seed = config.strategy.broadcast(random.randint(0, 9))", "pl.seed_everything(seed)"),
        program("random.shuffle(random.sample(data, random.randint(0, 9)))"),
    ],
)
def test_one_order(source: str) -> None:
    check_nothing(RULE, source)


def test_another_program() -> None:
    train = program("pl.seed_everything(config.seed)")
    check_nothing(RULE, train, files={"other.py": f"{HEAD}{DRAWN}\n"})
    check_nothing(RULE, f"{HEAD}{DRAWN}\n", files={"train.py": train})
