"""DDP605: shares that stand one rank behind the other and are cut to the length of the data."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import itertools
import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def gather_all(rows):
    shares = [torch.zeros_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, rows)
    return torch.cat(shares)


def gather_flat(rows):
    if not dist.is_initialized():
        return rows
    count = torch.tensor([rows.shape[0]])
    counts = [torch.zeros_like(count) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, count)
    shares = [torch.zeros_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, rows)
    parts = [shares[i][:counts[i].item()] for i in range(dist.get_world_size())]
    return torch.cat(parts)


def gather_in_turn(rows):
    shares = [torch.zeros_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, rows)
    return torch.stack(shares, dim=1).flatten(0, 1)


"""
EVALUATE = """\
@torch.no_grad()
def evaluate(model, dataset, world_size):
    sampler = {sampler}
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    rows = []
    for x in loader:
        rows.append(model(x))
    local = torch.cat(rows)
    {joined}
    return scores
"""
PLAIN = "shares = [torch.zeros_like(local) for _ in range(world_size)]\n    dist.all_gather(shares, local)\n    "
OBJECTS = "shares = [None] * world_size\n    dist.all_gather_object(shares, local.tolist())\n    "
DEALT = "DistributedSampler(dataset, shuffle=False)"


@pytest.mark.parametrize(
    "joined",
    [
        PLAIN + "scores = torch.cat(shares)[:len(dataset)]",
        PLAIN + "scores = torch.cat(shares, dim=0).cpu().numpy()[:len(loader.dataset)]",
        PLAIN + "every = torch.cat([s.cpu() for s in shares])\n    n = len(dataset)\n    scores = every[:n]",
        PLAIN + "scores = np.concatenate([s.cpu().numpy() for s in shares], axis=0)[:len(dataset)]",
        OBJECTS + "scores = list(itertools.chain(*shares))[:len(dataset)]",
        OBJECTS + "scores = list(itertools.chain.from_iterable(shares))[:len(dataset)]",
        OBJECTS + "scores = [row for rows in shares for row in rows][:len(dataset)]",
        OBJECTS + "scores = sum(shares, [])[:len(dataset)]",
        "scores = gather_all(local)[:len(dataset)]",
        "scores = gather_flat(local).long()[:len(dataset)]",
    ],
)
def test_one_rank_behind_the_other(joined: str) -> None:
    check_told(GatheredDuplicates, HEAD + EVALUATE.format(sampler=DEALT, joined=joined), reason="zip(*shares)")


def test_a_length_that_is_handed_over() -> None:
    text = HEAD + """\
@torch.no_grad()
def collect(model, loader, count):
    rows = []
    for x in loader:
        rows.append(model(x))
    return gather_all(torch.cat(rows))[:count]


def main(model, dataset):
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
    return collect(model, loader, len(dataset))
"""
    check_told(GatheredDuplicates, text, reason="torch.stack")


@pytest.mark.parametrize(
    "joined",
    [
        PLAIN + "scores = torch.stack(shares, dim=1).flatten(0, 1)[:len(dataset)]",
        PLAIN + "scores = torch.stack(shares, 1).reshape(-1)[:len(dataset)]",
        PLAIN + "scores = torch.cat(shares, dim=1)[:len(dataset)]",
        OBJECTS + "scores = [row for turn in zip(*shares) for row in turn][:len(dataset)]",
        OBJECTS + "scores = list(itertools.chain(*zip(*shares)))[:len(dataset)]",
        "scores = gather_in_turn(local)[:len(dataset)]",
        PLAIN + "every = torch.cat(shares)\n    scores = every[every[:, 0].argsort()][:len(dataset)]",
        "scores = local[:len(dataset)]",
        "scores = rows[:len(dataset)]",
    ],
)
def test_what_is_put_in_order_first(joined: str) -> None:
    check_nothing(GatheredDuplicates, HEAD + EVALUATE.format(sampler=DEALT, joined=joined))


@pytest.mark.parametrize(
    "sampler",
    [
        "BlockSampler(dataset)",  # one of the project's, which may give contiguous blocks
        "DistributedSampler(dataset, shuffle=False, drop_last=True)",
        "None",
    ],
)
def test_other_shares(sampler: str) -> None:
    joined = PLAIN + "scores = torch.cat(shares)[:len(dataset)]"
    check_nothing(GatheredDuplicates, HEAD + EVALUATE.format(sampler=sampler, joined=joined))


def test_what_each_batch_gathers() -> None:
    """The first batches hold no repeated row: what the last one holds is not told from here."""
    text = HEAD + """\
@torch.no_grad()
def evaluate(model, dataset):
    loader = DataLoader(dataset, batch_size=1, sampler=DistributedSampler(dataset, shuffle=False))
    rows = []
    for x in loader:
        rows.append(gather_all(model(x)))
    return torch.cat(rows)[:len(dataset)]
"""
    check_nothing(GatheredDuplicates, text)


# A function that joins and cuts

JOIN = """\
import torch
import torch.distributed as dist


def join(rows, count, world_size):
    shares = [rows.clone() for _ in range(world_size)]
    dist.all_gather(shares, rows)
    whole = {whole}
    return whole[:count]
"""
ALL = "torch.cat(shares, dim=0)"
IN_TURN = "torch.stack(shares, dim=1).flatten(0, 1)"
SCRIPT = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from joining import {imported}

dist.init_process_group("nccl")
trained = DataLoader(rows_of(True), 8, sampler=DistributedSampler(rows_of(True)))
data = rows_of(False)
sampler = {sampler}
loader = DataLoader(data, 8, sampler=sampler)
for epoch in range(3):
    for x in trained:
        model(x).sum().backward()
    found = []
    with torch.no_grad():
        for x in loader:
            found.append(model(x))
        found = join(torch.cat(found), {length}, dist.get_world_size())
"""


@pytest.mark.parametrize(("imported", "length"), [("join", "len(sampler.dataset)"), ("*", "len(data)")])
def test_a_function_that_joins_the_shares_and_cuts_them(imported: str, length: str) -> None:
    source = SCRIPT.format(imported=imported, length=length, sampler="DistributedSampler(data)")
    found = check_told(GatheredDuplicates, source, reason="dealt out", files={"joining.py": JOIN.format(whole=ALL)})
    assert found.span.line == 18 and [e.line for e in found.evidence] == [16, 9]


@pytest.mark.parametrize(
    ("sampler", "whole", "length"),
    [
        ("InOrder(data)", ALL, "len(data)"),
        ("DistributedSampler(data, drop_last=True)", ALL, "len(data)"),
        ("DistributedSampler(data)", IN_TURN, "len(data)"),
        ("DistributedSampler(data)", ALL, "len(found)"),
    ],
)
def test_a_function_that_joins_and_cuts_what_fits(sampler: str, whole: str, length: str) -> None:
    source = SCRIPT.format(imported="join", length=length, sampler=sampler)
    check_nothing(GatheredDuplicates, source, files={"joining.py": JOIN.format(whole=whole)})
