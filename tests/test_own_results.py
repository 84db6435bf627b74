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


ROUNDS = """
import json
import os
import torch.distributed as dist


def export(net, loader, folder, keys):
    rank = dist.get_rank()
    BEFORE
    for images, info in loader:
        for i in range(len(images)):
            LINES
    if rank == 0:
        print("done")


def main(args):
    dist.init_process_group("nccl")
    export(make(), loader_of(args), args.folder, args.keys)


if __name__ == "__main__":
    main(read())
"""
FILL = "for key in keys: row[key] = info[key][i]"
WRITE = "open(os.path.join(folder, 'row.json'), 'w').write(json.dumps(row))"


@pytest.mark.parametrize(
    ("before", "lines", "told"),
    [
        ("row = {}", (FILL, WRITE), True),
        ("pass", ("row = {}", FILL, WRITE), False),
        ("pass", ("row: dict[str, int] = dict()", FILL, WRITE), False),
        ("pass", ("row, rest = {}, []", FILL, WRITE), False),
        ("pass", ("with open('row.json', 'w') as f:", "    row = {}", f"    {FILL}", "    f.write(json.dumps(row))"), False),
        ("row = {}", (FILL, WRITE, "row = {}"), True),  # what the last round has left is written as well
        ("row = {}", ("if i == 0:", "    row = {}", FILL, WRITE), True),
    ],
)
def test_what_each_round_begins_anew_is_not_filled_by_batches(before: str, lines: tuple[str, ...], told: bool) -> None:
    source = ROUNDS.replace("BEFORE", before).replace("LINES", ("\n" + " " * 12).join(lines))
    found = findings_of(UnguardedFileIo, source)
    assert len(found) == 1
    assert ("fills `row` batch by batch" in (found[0].reason or "")) is told
