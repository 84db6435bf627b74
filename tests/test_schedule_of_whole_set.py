"""DDP406: a schedule that counts the batches of a whole data set, of which each rank has its own part."""

from __future__ import annotations

import pytest

from codemods.data_loading.schedule_length import ScheduleLength
from ddpfix.testing import check_nothing, check_told

SOURCE = """\
import math

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler


def train(args, net, data):
    dist.init_process_group("nccl")
    steps = args.epochs * math.ceil(len(data) / args.batch_size / args.accumulation)
    optimizer = torch.optim.AdamW(net.parameters())
    schedule = CosineAnnealingLR(optimizer, T_max=steps)
    model = DDP(net)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for number, rows in enumerate(loader):
            model(rows).mean().backward()
            if (number + 1) % args.accumulation == 0:
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
"""
STEPS = "math.ceil(len(data) / args.batch_size / args.accumulation)"
WARM = "get_linear_schedule_with_warmup(optimizer, int(args.warmup * steps), steps)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (STEPS, "(len(data) // args.batch_size)"),
        ("CosineAnnealingLR(optimizer, T_max=steps)", WARM),
        ("    sampler = DistributedSampler(data)\n", "    sampler = DistributedSampler(data) if args.several else None\n"),
        ("    model = DDP(net)\n", "    model = DDP(net)\n    steps = math.ceil(steps / dist.get_world_size())\n"),
    ],
)
def test_batches_of_the_whole_set(old: str, new: str) -> None:
    source = SOURCE.replace("import math\n", "import math\nfrom transformers import get_linear_schedule_with_warmup\n")
    found = check_told(ScheduleLength, source.replace(old, new) if old else source, reason="before the schedule is made")
    assert "each makes an Nth of these steps" in found.message


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("divided by the processes", STEPS, f"{STEPS} // dist.get_world_size()"),
        ("divided by a number of GPUs", STEPS, f"{STEPS} // args.n_gpu"),
        ("the processes behind a name", "    steps =", "    args.epochs = args.all // dist.get_world_size()\n    steps ="),
        ("another batch", "batch_size=args.batch_size", "batch_size=args.rank_batch"),
        ("the batch is shared out", "    steps =", "    args.batch_size //= dist.get_world_size()\n    steps ="),
        ("another set", "DataLoader(data,", "DataLoader(rows,"),
        ("every rank has the whole set", ", sampler=sampler", ", shuffle=True"),
        ("the loader's batches", "len(data) / args.batch_size", "len(loader)"),
        ("stepped once an epoch", "                schedule.step()\n                optimizer.zero_grad()\n",
         "                optimizer.zero_grad()\n        schedule.step()\n"),
        ("stepped for each process", "                schedule.step()\n",
         "                for _ in range(dist.get_world_size()):\n                    schedule.step()\n"),
        ("Accelerate steps it", "    model = DDP(net)\n", "    model, schedule = accelerator.prepare(net, schedule)\n"),
        ("what is not read", STEPS, "count(len(data) / args.batch_size)"),
    ],
)  # fmt: skip
def test_lengths_that_are_right_or_not_seen(what: str, old: str, new: str) -> None:
    assert old in SOURCE
    check_nothing(ScheduleLength, SOURCE.replace(old, new))


def test_a_batch_that_another_file_shares_out() -> None:
    options = "def read(args, world_size):\n    args.batch_size = args.batch_size // world_size\n"
    check_nothing(ScheduleLength, SOURCE, files={"options.py": options})
