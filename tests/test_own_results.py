from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

EVALUATION = """
import numpy as np
import torch
import torch.distributed as dist


def evaluate(net, loader, args):
    rank = dist.get_rank()
    rows = torch.empty(0, 4)
    for batch in {over}:
        rows = {joined}
    {more}
    np.save("rows.npy", rows)
    if rank == 0:
        args.note()


def main(args):
    dist.init_process_group("nccl")
    evaluate(make(), loader_of(args), args)


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    "joined",
    ["torch.cat((rows, net(batch).cpu()))", "torch.cat([rows, net(batch)], dim=0)", "np.concatenate((rows, net(batch)))",
     "np.append(rows, net(batch))", "torch.vstack((rows, net(batch)))"],
)  # fmt: skip
def test_arrays_that_grow_by_each_batch_are_gathered_first(joined: str) -> None:
    (found,) = findings_of(UnguardedFileIo, EVALUATION.format(over="loader", more="pass", joined=joined))
    assert "fills `rows` batch by batch" in found.reason
    assert found.fix is None


@pytest.mark.parametrize(
    ("over", "more", "joined"),
    [
        ("args.names", "pass", "torch.cat((rows, net(batch)))"),
        ("loader", "rows = gather(rows)", "torch.cat((rows, net(batch)))"),
        ("loader", "pass", "torch.cat((net.first, net.second))"),
    ],
)
def test_arrays_that_no_batch_lengthens(over: str, more: str, joined: str) -> None:
    (found,) = findings_of(UnguardedFileIo, EVALUATION.format(over=over, more=more, joined=joined))
    assert "batch by batch" not in (found.reason or "")
