"""Data sets whose constructor mixes the list that the index is looked up in."""

from __future__ import annotations

import pytest

from codemods.data_loading.rank_seeded_split import RankSeededSplit
from codemods.data_loading.unseeded_split import UnseededSplit
from ddpfix.testing import check_nothing, check_told

SET = """\
import random

import numpy as np
import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, paths, mix=True):
        self.paths = list(paths)
        self.notes = list(paths)
        {mixed}

    def draw(self):
        {drawn}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        {taken}
"""
MAIN = """\
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from module import Clips


def main(args, net):
    dist.init_process_group("nccl")
    {seed}
    data = Clips(args.paths)
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DistributedDataParallel(net)
    for batch in loader:
        model(batch).mean().backward()
"""
MIX = "random.shuffle(self.paths)"
TAKEN = "return self.paths[number]"


def clips(mixed: str = MIX, drawn: str = "pass", taken: str = TAKEN) -> str:
    return SET.format(mixed=mixed, drawn=drawn, taken=taken)


def main(seed: str = "args.start()") -> dict[str, str]:
    return {"main.py": MAIN.format(seed=seed)}


MIXES = [
    clips(),
    clips("self.draw()", "random.shuffle(self.notes)\n        self.paths = self.notes[:99]"),
    clips("rows = list(paths)\n        random.shuffle(rows)\n        self.paths = rows"),
    clips("self.order = list(range(9))\n        random.shuffle(self.order)", taken="return self.paths[self.order[number]]"),
    clips(
        "self.order = list(range(9))\n        random.shuffle(self.order)",
        taken="number = self.order[number]\n        return self.paths[number]",
    ),
    clips("if mix:\n            random.shuffle(self.paths)"),
    clips(taken="return self.paths[number % len(self.paths)]"),
]


@pytest.mark.parametrize("source", MIXES)
def test_each_rank_mixes_its_own_set(source: str) -> None:
    told = check_told(UnseededSplit, source, reason="random.Random(0).shuffle", files=main())
    assert any(e.path == "main.py" for e in told.evidence)
    ranked = main("random.seed(args.seed + dist.get_rank())")
    found = check_told(RankSeededSplit, source, reason="the same on every rank", files=ranked)
    assert [e.path for e in found.evidence] == ["main.py", "main.py"]
    check_nothing(UnseededSplit, source, files=main("random.seed(3)"))
    check_nothing(RankSeededSplit, source, files=main("random.seed(3)"))


def test_orders_of_other_libraries() -> None:
    numpy = clips("self.order = np.random.permutation(9)", taken="return self.paths[self.order[number]]")
    check_told(UnseededSplit, numpy, reason="default_rng(0)", files=main())
    seeded = MAIN.format(seed="numpy.random.seed(3)").replace("import random", "import numpy")
    check_nothing(UnseededSplit, numpy, files={"main.py": seeded})
    check_told(UnseededSplit, numpy, reason="default_rng(0)", files=main("random.seed(3)"))
    torch = clips("self.order = torch.randperm(9)", taken="return self.paths[self.order[number]]")
    check_told(RankSeededSplit, torch, reason="the same", files=main("torch.manual_seed(args.seed + dist.get_rank())"))


@pytest.mark.parametrize(
    "source",
    [
        clips("random.Random(3).shuffle(self.paths)"),
        clips("random.seed(3)\n        random.shuffle(self.paths)"),
        clips(f"{MIX}\n        self.paths.sort()"),
        clips(f"{MIX}\n        self.paths = list(paths)"),
        clips("random.shuffle(self.notes)"),  # nothing looks it up
        clips("random.shuffle(self.notes)", taken="return self.paths[number], self.notes[number]"),  # a partner of the sample
        clips("pass", MIX),  # nobody calls it
        clips(taken="return self.paths[random.randrange(9)]"),
    ],
)
def test_sets_that_are_alike(source: str) -> None:
    check_nothing(UnseededSplit, source, files=main())
    check_nothing(RankSeededSplit, source, files=main("random.seed(args.seed + dist.get_rank())"))


def test_what_the_object_is_made_with() -> None:
    source = clips("if mix:\n            random.shuffle(self.paths)")
    plain = {"main.py": MAIN.format(seed="args.start()").replace("Clips(args.paths)", "Clips(args.paths, mix=False)")}
    check_nothing(UnseededSplit, source, files=plain)


def test_a_set_that_no_rank_shares() -> None:
    alone = {"main.py": MAIN.format(seed="args.start()").replace(", sampler=DistributedSampler(data)", ", shuffle=True")}
    check_nothing(UnseededSplit, clips(), files=alone)
    ranked = alone["main.py"].replace("args.start()", "random.seed(dist.get_rank())")
    check_nothing(RankSeededSplit, clips(), files={"main.py": ranked})


def test_a_set_whose_loader_accelerate_prepares() -> None:
    script = (
        "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n\nfrom module import Clips\n\n\n"
        "def main(args, net):\n    accelerator = Accelerator()\n    args.start()\n"
        "    loader = DataLoader(Clips(args.paths), batch_size=4)\n"
        "    net, loader = accelerator.prepare(net, loader)\n    for x in loader:\n        accelerator.backward(net(x))\n"
    )
    check_told(UnseededSplit, clips(), reason="random.Random(0).shuffle", files={"main.py": script})
    check_nothing(UnseededSplit, clips(), files={"main.py": script.replace("(net, loader)", "(net, args.loader)")})
