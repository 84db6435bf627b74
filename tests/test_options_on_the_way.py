"""An option of a constructor that only programs of one process turn on: no rank comes to what stands under it."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import check_nothing, findings_of

NETS = """\
import torch


class Words:
    def __init__(self, folder, fresh=False):
        table = torch.load(folder)
        if {test}:
            torch.save(table, folder)
        self.table = table


class Net:
    def __init__(self, args, fresh=False):
        {above}self.words = Words("words.pt", {given})
"""
TRAIN = """\
import torch
import torch.distributed as dist
from nets import Net


def main(args):
    dist.init_process_group("nccl")
    net = torch.nn.parallel.DistributedDataParallel(Net(args{given}))
    net(args.rows).backward()
"""
ALONE = "from nets import Net\n\nnet = Net([], fresh=True)\nprint(net)\n"


def nets(*, test: str = "fresh", given: str = "fresh=fresh", above: str = "") -> str:
    return NETS.format(test=test, given=given, above=above)


@pytest.mark.parametrize("given", ["", ", fresh=False", ", False"])
def test_the_training_leaves_the_option_off(given: str) -> None:
    check_nothing(UnguardedSave, nets(), path="nets.py", files={"train.py": TRAIN.format(given=given), "alone.py": ALONE})


def test_an_option_that_has_to_be_off() -> None:
    files = {"train.py": TRAIN.format(given=", fresh=True"), "alone.py": ALONE}
    check_nothing(UnguardedSave, nets(test="not fresh"), path="nets.py", files=files)


@pytest.mark.parametrize(
    ("source", "given"),
    [
        pytest.param(nets(), ", fresh=True", id="the training turns it on"),
        pytest.param(nets(), ", fresh=args.fresh", id="a setting decides"),
        pytest.param(nets(), ", **args.net", id="keywords from elsewhere"),
        pytest.param(nets(given="fresh=True"), "", id="the part is always given it"),
        pytest.param(nets(given="fresh=args.fresh"), "", id="a setting of the whole decides"),
        pytest.param(nets(above="fresh = fresh or args.fresh\n        "), "", id="the option is worked out again"),
        pytest.param(nets(test="fresh or table is None"), "", id="not the option alone"),
    ],
)
def test_ranks_may_come_there(source: str, given: str) -> None:
    files = {"train.py": TRAIN.format(given=given), "alone.py": ALONE}
    assert findings_of(UnguardedSave, source, path="nets.py", files=files)
