"""Ways on which every rank comes to a file: through many constructors, past words that look like locks, behind a Trainer."""

from __future__ import annotations

import pytest

from codemods.ranks.makedirs_race import MakedirsRace
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told, findings_of

DEEP = """import os


def points():
    if not os.path.exists("points"):
        os.makedirs("points")
    return 3


class Kernel:
    def __init__(self):
        self.points = self.init_points()

    def init_points(self):
        return points()


class Head:
    def __init__(self):
        self.kernel = Kernel()


class Net:
    def __init__(self):
        self.head = Head()


def make_net():
    return Net()
"""
RUN = """import torch.distributed as dist
import torch.multiprocessing as mp
from net import make_net


def train(rank):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    dist.barrier()
    net = {made}


if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
"""


def test_a_folder_that_the_innermost_part_of_a_model_makes() -> None:
    files = {"train.py": RUN.format(made="make_net()")}
    (found,) = findings_of(MakedirsRace, DEEP, files=files, path="net.py")
    assert "FileExistsError" in found.message
    check_nothing(MakedirsRace, DEEP, files={"train.py": RUN.format(made="make_net() if rank == 0 else None")}, path="net.py")


# Words that look like locks

HUB = """import torch
import torch.distributed as dist


def build({parameter}):
    {above}
    return torch.hub.load('owner/nets', 'small')


def main(args):
    dist.init_process_group('gloo')
    net = build({given})
"""


@pytest.mark.parametrize(
    ("parameter", "above"),
    [
        ("local_files_only=False", "pass"),
        ("local_files_only: bool = False", "print(local_files_only)"),
        ("depth=2", "blocks = [ResBlock(i) for i in range(depth)]"),
        ("depth=2", "start = clock(depth)"),
    ],
)
def test_no_lock(parameter: str, above: str) -> None:
    check_told(CacheFilledByEveryRank, HUB.format(parameter=parameter, above=above, given=""), reason="rank 0")


@pytest.mark.parametrize(
    ("parameter", "above"),
    [
        ("path", "with FileLock(path): fetch(path)"),
        ("rank", "weights = load('net', local_files_only=rank != 0)"),
        ("path", "lock(path)"),
        ("kwargs", "kwargs['local_files_only'] = True"),
    ],
)
def test_a_lock(parameter: str, above: str) -> None:
    check_nothing(CacheFilledByEveryRank, HUB.format(parameter=parameter, above=above, given="args.given"))


# Behind a Trainer that a called function makes

TUNE = """import json
import os

from transformers import HfArgumentParser, Trainer, TrainingArguments
{imports}


def train(args, rows):
    {chosen}
    trainer = {made}
    trainer.train()
    return {{"tokens": 3}}


def main():
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    told = train(args, None)
    with open(os.path.join(args.output_dir, "told.json"), "w") as f:
        json.dump(told, f)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("imports", "chosen", "made"),
    [
        ("from trl import SFTTrainer", "pass", "SFTTrainer('net', args=args, train_dataset=rows)"),
        ("from trl import SFTTrainer", "cls = SFTTrainer\n    TrainerClass = SFTTrainer if rows else Trainer",
         "SFTTrainer(model='net', args=args)"),
        ("from trl import SFTTrainer\n\n\nclass RowTrainer(SFTTrainer):\n    pass",
         "TrainerClass = RowTrainer\n    if rows is None:\n        TrainerClass = SFTTrainer", "TrainerClass('net', args=args)"),
    ],
)  # fmt: skip
def test_a_file_beside_the_function_that_trains(imports: str, chosen: str, made: str) -> None:
    found = check_told(UnguardedFileIo, TUNE.format(imports=imports, chosen=chosen, made=made), reason="rank 0")
    assert "told.json" in found.message


@pytest.mark.parametrize(
    ("imports", "chosen", "made"),
    [
        ("from sklearn import RowTrainer", "pass", "RowTrainer('net', args=args)"),
        ("from sklearn import RowTrainer\nfrom trl import SFTTrainer", "TrainerClass = SFTTrainer if rows else RowTrainer",
         "TrainerClass('net', args=args)"),
        ("from trl import SFTTrainer", "pass", "find_trainer('net', args=args)"),
    ],
)
def test_no_trainer(imports: str, chosen: str, made: str) -> None:
    check_nothing(UnguardedFileIo, TUNE.format(imports=imports, chosen=chosen, made=made))
