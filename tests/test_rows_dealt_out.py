"""DDP403 and DDP409 where rows are drawn or put in order by each rank, and are then dealt out."""

from __future__ import annotations

import pytest

from codemods.data_loading.rank_seeded_split import RankSeededSplit
from codemods.data_loading.unseeded_split import UnseededSplit
from ddpfix.testing import check_nothing, check_told, check_transformed

OF_TRAINER = """from datasets import load_dataset
from transformers import Trainer, TrainingArguments


def main(model, rows):
    data = load_dataset("json", data_files=rows)
    {}
    trainer = Trainer(model=model, args=TrainingArguments("out"), train_dataset={})
    trainer.train()


if __name__ == "__main__":
    main(None, "rows.json")
"""
START = {"run.sh": "torchrun --nproc_per_node=4 main.py\n"}


def of_trainer(made: str, given: str) -> str:
    return OF_TRAINER.format(made, given)


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("train = data['train'].shuffle({})", "train"),
        ("train = data['train'].shuffle({}).map(str)", "train"),
        ("data = data['train'].shuffle({})\n    train = data.select(range(9))", "train"),
        ("train = data['train'].shuffle({})", "train.select(range(9))"),
    ],
)
def test_an_order_of_each_rank_that_the_trainer_deals_out(made: str, given: str) -> None:
    before = of_trainer(made.format(""), given.format(""))
    after = of_trainer(made.format("seed=0"), given.format("seed=0"))
    (found,) = check_transformed(UnseededSplit, before, after, files=START, path="main.py", unsafe=True)
    assert "their shares overlap" in found.message


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("train = data['train'].shuffle(seed=3)", "train"),
        ("train = data['train'].shuffle(buffer_size=100)", "train"),
        ("shown = data['train'].shuffle()", "data['train']"),
        ("few = len(data['train'].shuffle())\n    train = data['train'].select(range(few))", "data['train']"),
        ("import numpy as np\n    np.random.seed(0)\n    train = data['train'].shuffle()", "train"),
        ("import random\n    random.shuffle(rows)\n    train = data", "train"),
    ],
)
def test_an_order_that_is_the_same_on_all_ranks_or_is_not_dealt_out(made: str, given: str) -> None:
    check_nothing(UnseededSplit, of_trainer(made, given), files=START, path="main.py")


def test_an_order_in_a_program_of_one_process() -> None:
    source = of_trainer("train = data['train'].shuffle()", "train")
    check_nothing(UnseededSplit, source, files={"run.sh": "CUDA_VISIBLE_DEVICES=0 python main.py\n"}, path="main.py")


def test_a_trainer_with_loaders_of_its_own() -> None:
    own = "class Own(Trainer):\n    def get_train_dataloader(self):\n        return self.train_dataset\n\n\ndef main"
    source = of_trainer("train = data['train'].shuffle()", "train").replace("def main", own).replace("= Trainer(", "= Own(")
    check_nothing(UnseededSplit, source, files=START, path="main.py")


OF_SAMPLER = """import pandas as pd
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, Subset, SubsetRandomSampler


class Wrapper(DistributedSampler):
    def __init__(self, sampler, **options):
        super().__init__(list(sampler), **options)


def main(net, data, table, args):
    dist.init_process_group("nccl")
    seed = args.seed + dist.get_rank()
    {}
    return DistributedDataParallel(net), sampler
"""
LINES = [
    ("rows = table.sample(frac=0.5, random_state={})", "sampler = DistributedSampler(Subset(data, rows.index))"),
    ("rows = table.groupby('y').apply(lambda x: x.sample(n=9, random_state={}))",
     "sampler = Wrapper(SubsetRandomSampler(rows.ids.to_numpy()))"),
    ("rows = table.sample(frac=1, random_state={})", "part = Subset(data, rows['ids'])\n    sampler = DistributedSampler(part)"),
]  # fmt: skip


@pytest.mark.parametrize(("drawn", "dealt"), LINES)
def test_rows_that_each_rank_draws_by_its_own_seed(drawn: str, dealt: str) -> None:
    before, after = (OF_SAMPLER.format(f"{drawn.format(seed)}\n    {dealt}") for seed in ("seed", "args.seed"))
    check_transformed(RankSeededSplit, before, after, unsafe=True)


@pytest.mark.parametrize(("drawn", "dealt"), LINES)
def test_rows_that_nothing_seeds(drawn: str, dealt: str) -> None:
    source = OF_SAMPLER.format(f"{drawn.replace(', random_state={}', '')}\n    {dealt}")
    after = OF_SAMPLER.format(f"{drawn.format('0')}\n    {dealt}")
    check_transformed(UnseededSplit, source, after, unsafe=True)


@pytest.mark.parametrize(
    ("drawn", "dealt"),
    [
        ("rows = table.sample(frac=0.5, random_state=args.seed)", "sampler = DistributedSampler(Subset(data, rows.index))"),
        ("rows = table.sample(frac=0.5, random_state=seed)", "sampler = SubsetRandomSampler(rows.index)"),
        ("rows = table.sample(frac=0.5, random_state=seed)", "sampler = DistributedSampler(data)"),
        ("rows = table.sample(frac=0.5, random_state=seed)", "sampler = DistributedSampler(Subset(data, range(len(rows))))"),
        ("rows = table.sample(n=9, random_state=seed)", "print(rows)\n    sampler = DistributedSampler(data)"),
    ],
)
def test_rows_that_are_alike_or_of_each_rank(drawn: str, dealt: str) -> None:
    check_nothing(RankSeededSplit, OF_SAMPLER.format(f"{drawn}\n    {dealt}"))


def test_an_order_by_the_seed_of_the_rank() -> None:
    source = of_trainer("train = data['train'].shuffle(seed=7 + dist.get_rank())", "train")
    source = "import torch.distributed as dist\n" + source
    after = source.replace("7 + dist.get_rank()", "7")
    check_transformed(RankSeededSplit, source, after, files=START, path="main.py", unsafe=True)


def test_a_seed_of_a_module_is_only_told() -> None:
    source = OF_SAMPLER.format("\n    ".join(part.format("SEED") for part in LINES[0]))
    source = source.replace("class Wrapper", "SEED = 3 + dist.get_rank()\n\n\nclass Wrapper")
    check_told(RankSeededSplit, source, reason="take the rank out of the seed")


OF_WRAPPER = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, SubsetRandomSampler, WeightedRandomSampler


class Wrapper(DistributedSampler):
    def __init__(self, sampler, **options):
        super().__init__(list(sampler), **options)
        self.sampler = sampler

    def __iter__(self):
        drawn = list(self.sampler)
        return iter([drawn[i] for i in super().__iter__()])


def main(net, data, chosen, args):
    dist.init_process_group("nccl")
    torch.manual_seed(args.seed + dist.get_rank())
    inner = SubsetRandomSampler(chosen)
    sampler = Wrapper(inner, shuffle=False)
    return DistributedDataParallel(net), sampler
"""
SEEDED = "SubsetRandomSampler(chosen, generator=torch.Generator().manual_seed({}))"


def test_a_sampler_that_another_goes_through() -> None:
    after = OF_WRAPPER.replace("SubsetRandomSampler(chosen)", SEEDED.format("args.seed"))
    (found,) = check_transformed(RankSeededSplit, OF_WRAPPER, after, unsafe=True)
    assert "their shares overlap" in found.message
    unseeded = OF_WRAPPER.replace("    torch.manual_seed(args.seed + dist.get_rank())\n", "")
    after = unseeded.replace("SubsetRandomSampler(chosen)", SEEDED.format("0"))
    check_transformed(UnseededSplit, unseeded, after, unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args.seed + dist.get_rank()", "args.seed"),
        ("SubsetRandomSampler(chosen)", "WeightedRandomSampler(chosen, 9)"),
        ("Wrapper(inner, shuffle=False)", "DistributedSampler(inner)"),
        ("Wrapper(inner, shuffle=False)", "inner"),
        ("        drawn = ", "        torch.manual_seed(self.epoch)\n        drawn = "),
        ("(chosen)", "(chosen, generator=torch.Generator().manual_seed(3))"),
    ],
)
def test_a_sampler_that_is_alike_or_of_each_rank(old: str, new: str) -> None:
    source = OF_WRAPPER.replace(old, new)
    assert source != OF_WRAPPER
    check_nothing(RankSeededSplit, source)
    check_nothing(UnseededSplit, source)


@pytest.mark.parametrize(
    ("before", "seed", "behind"),
    [
        ("seed = args.seed", "seed", "print(rows)"),
        ("if args.alike:\n        seed = args.seed", "seed", "print(rows)"),
        ("print(seed)", "args.seed", "args.seed += dist.get_rank()"),
    ],
)
def test_a_name_that_may_be_the_same_on_all_ranks(before: str, seed: str, behind: str) -> None:
    drawn = f"{before}\n    rows = table.sample(frac=0.5, random_state={seed})\n    {behind}"
    check_nothing(RankSeededSplit, OF_SAMPLER.format(f"{drawn}\n    sampler = DistributedSampler(Subset(data, rows.index))"))
