"""DDP106 behind helpers of the project: bars and prints of rank 0, sets of indices, rows of results, loaders by mode."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told

RULE = UnreducedNumber
WHY = "reduce sums and counts over the ranks first"
HEAD = """\
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


def main_print(*args):
    if dist.get_rank() == 0:
        print(*args)


def bar(rows):
    if dist.get_rank() == 0:
        return tqdm(rows)
    return rows


def overlap(pred, gold):
    both = np.intersect1d(pred, gold).shape[0]
    return both / np.union1d(pred, gold).shape[0]


def table(p, g):
    return [{"name": "acc", "value": (p == g).mean()}, {"name": "err", "value": (p != g).mean()}]


"""
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data))"
KEEPS = "if dist.get_rank() == 0 and score > best:\n            best = score\n            torch.save(net, 'best.pt')"
HITS = "hits, n = 0, 0\n    for x, y in bar(loader):\n        hits += (model(x).argmax(1) == y).sum().item()\n        n += len(y)"
OVERLAPS = "ious = []\n    for x, y in loader:\n        ious.append(overlap(model(x).argmax(1).cpu().numpy(), y.numpy()))"
SETS = (
    "hits, n = 0, 0\n    for x, y in loader:\n        found = set(model(x).nonzero().view(-1).tolist())\n"
    "        hits += len(found & set(y.tolist()))\n        n += 1"
)
LISTS = (
    "preds, golds = [], []\n    for x, y in bar(loader):\n        preds.append(model(x).argmax(1).cpu().numpy())\n"
    "        golds.append(y.numpy())"
)
ROWS = "    for row in rows:\n        main_print(row['name'], row['value'])"
SUMMED = "total = torch.tensor([sum(ious), len(ious)])\n    dist.all_reduce(total)\n    return (total[0] / total[1]).item()"
GATHERED = (
    "parts = [None] * dist.get_world_size()\n    dist.all_gather_object(parts, (preds, golds))\n"
    "    rows = table(np.concatenate([a for p, _ in parts for a in p]), np.concatenate([b for _, g in parts for b in g]))\n"
)


def program(body: str, end: str, *, loader: str = SHARED, behind: str = "pass") -> str:
    return (
        f"{HEAD}def evaluate(model, loader):\n    {body}\n    {end}\n\n\ndef main(net, data):\n"
        "    dist.init_process_group('nccl')\n    model = DistributedDataParallel(net)\n"
        f"    loader = {loader}\n    best = 0.0\n"
        f"    for epoch in range(3):\n        score = evaluate(model, loader)\n        {behind}\n"
    )


def by_mode(first: str, second: str) -> str:
    return (
        f"{HEAD}def loader_of(data, split, size):\n    sampler = DistributedSampler(data)\n    if split == 'val':\n"
        f"        loader = {first}\n    else:\n        loader = {second}\n    return loader\n\n\n"
        "def main(net, data):\n    dist.init_process_group('nccl')\n    model = DistributedDataParallel(net)\n"
        "    loader = loader_of(data, 'val', 8)\n    hits, n = 0, 0\n    for x, y in loader:\n"
        "        hits += (model(x).argmax(1) == y).sum().item()\n        n += len(y)\n"
        "    if dist.get_rank() == 0:\n        print('accuracy', hits / n)\n"
    )


@pytest.mark.parametrize(
    ("body", "end", "behind"),
    [
        (OVERLAPS, "return np.mean(ious)", KEEPS),
        (SETS, "return hits / n", KEEPS),
        (HITS, "main_print('accuracy', hits / n)", "pass"),
        (LISTS, f"rows = table(np.concatenate(preds), np.concatenate(golds))\n{ROWS}", "pass"),
    ],
)
def test_results_of_the_own_share(body: str, end: str, behind: str) -> None:
    check_told(RULE, program(body, end, behind=behind), reason=WHY)


def test_a_loader_by_mode_that_is_shared_out_in_each() -> None:
    check_told(RULE, by_mode("DataLoader(data, 1, sampler=sampler)", "DataLoader(data, size, sampler=sampler)"), reason=WHY)


@pytest.mark.parametrize(
    "source",
    [
        program(OVERLAPS, SUMMED, behind=KEEPS),
        program(HITS, "main_print('accuracy', hits / n)", loader="DataLoader(data, 8)"),
        program(LISTS, f"{GATHERED}{ROWS}"),
        program("rows = [{'name': 'rows', 'value': 3}]\n    for x, y in bar(loader):\n        model(x)", ROWS.strip()),
        by_mode("DataLoader(data, 1)", "DataLoader(data, size, sampler=sampler)"),
        program(HITS.replace("bar(loader)", "loader"), "print(dist.get_rank(), hits / n)"),
    ],
)
def test_what_is_reduced_whole_or_named(source: str) -> None:
    check_nothing(RULE, source)
