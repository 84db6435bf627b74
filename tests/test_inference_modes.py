"""The noise of a mode that trains nothing and shares nothing out is seen once: nobody starts several processes for it."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

SOURCE = """\
import argparse

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def load(mode):
    rows = read(mode)
    if mode == "train":
        return DataLoader(rows, sampler=DistributedSampler(rows))
    return DataLoader(rows)


def work(args, model, mode):
    rank = dist.get_rank()
    if rank == 0:
        note(args)
    if {test}:
        for batch in load(mode):
            model.learn(batch)
    else:
        {inner}
        print("the results lie in the folder")
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="train")
    parser.add_argument("--train", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    work(args, build(), args.mode)


if __name__ == "__main__":
    main()
"""


def told(test: str, inner: str = "show(model(read(mode)))", files: dict[str, str] | None = None) -> bool:
    return bool(findings_of(UnguardedPrint, SOURCE.format(test=test, inner=inner), files, path="run.py"))


@pytest.mark.parametrize("test", ['mode == "train"', 'args.mode == "training"', "args.train", "not args.test"])
def test_the_other_mode_than_training(test: str) -> None:
    assert not told(test)


def test_what_another_function_does_in_this_mode() -> None:
    through = "for batch in load(mode):\n            show(model(batch))"
    assert not told('mode == "train"', through)  # the sampler is of the other mode
    assert told("args.train", through)


@pytest.mark.parametrize(
    ("test", "inner"),
    [
        ('mode == "train"', "for row in DistributedSampler(read(mode)):\n            show(model(row))"),
        ('mode == "train"', "dist.all_reduce(model(read(mode)))"),
        ('mode == "train"', "show(model.module(read(mode)))"),
        ('mode == "train"', "trainer.predict(model)"),
        ('mode == "fast"', "show(model(read(mode)))"),
        ('mode != "test"', "show(model(read(mode)))"),
        ('kind == "train"', "show(model(read(mode)))"),
        ("self.training", "show(model(read(mode)))"),
        ('mode == "test"', "show(model(read(mode)))"),  # the branch that trains
    ],
)
def test_a_branch_that_ranks_may_share(test: str, inner: str) -> None:
    assert told(test, inner)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("torchrun --nproc_per_node 4 run.py --mode test", True),
        ("torchrun --nproc_per_node 4 run.py --mode=$MODE", True),
        ("torchrun --nproc_per_node 4 run.py --mode train", False),
        ("python run.py --mode test", False),
    ],
)
def test_a_mode_that_a_command_launches(command: str, expected: bool) -> None:
    files = {"run.sh": f"torchrun --nproc_per_node 4 run.py --lr 1\n{command}\n"}
    assert told('mode == "train"', files=files) is expected


def test_an_error_there_is_told_all_the_same() -> None:
    source = SOURCE.format(test='mode == "train"', inner='open("state.json", "w").write(str(args))')
    assert findings_of(UnguardedFileIo, source, path="run.py")
