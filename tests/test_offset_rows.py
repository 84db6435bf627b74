"""DDP411: labels that begin at `len(rows) * rank` in a loop whose last batches differ in size."""

from __future__ import annotations

import pytest

from codemods.api.findings import Finding
from codemods.data_loading.uneven_steps import UnevenSteps
from codemods.engine.find import find_in
from codemods.store.project import Project

PROGRAM = """\
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def gather_of_any_size(rows):
    size = torch.tensor([rows.shape[0]])
    sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, size)
    padded = torch.zeros(max(sizes), rows.shape[1])
    padded[: rows.shape[0]] = rows
    parts = [torch.zeros_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, sizes)])


def gather_alike(rows):
    parts = [torch.zeros_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows)
    return torch.cat(parts)


def train(net, rows, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DDP(net)
    for queries, docs in DataLoader({share}, batch_size=4{more}):
        queries, docs = model(queries), model(docs)
        every = {gather}(docs)
        scores = queries @ every.T
        {labels}
        optimizer.zero_grad()
        F.cross_entropy(scores, labels).backward()
        optimizer.step()
"""
OWN = "rows[rank::world_size]"
EVEN = "rows[: len(rows) // world_size * world_size][rank::world_size]"


def offsets(labels: str, *, share: str = OWN, gather: str = "gather_of_any_size", more: str = "") -> list[Finding]:
    text = PROGRAM.format(labels=labels, share=share, gather=gather, more=more)
    project = Project.of({"train.py": text.encode()})
    module = project.module("train.py")
    assert module is not None
    return [f for f in find_in(module, project, (UnevenSteps(),)) if "takes all ranks" in f.message]


@pytest.mark.parametrize(
    "labels",
    [
        "labels = torch.arange(len(scores)) + len(scores) * rank",
        "labels = rank * scores.size(0) + torch.arange(scores.size(0))",
        "labels = torch.arange(scores.shape[0], device='cuda') + scores.shape[0] * dist.get_rank()",
        "n = len(queries)\n        labels = torch.arange(n) + n * rank",
        "labels = torch.tensor(range(len(scores))) + len(scores) * rank",
    ],
)
def test_labels_that_begin_at_the_rank(labels: str) -> None:
    (found,) = offsets(labels)
    assert found.severity == "data"
    assert "sizes of the ranks before it" in found.reason


@pytest.mark.parametrize(
    "labels",
    [
        "labels = torch.arange(len(scores)) + sizes_before(rank)",
        "labels = torch.arange(len(scores))",
        "labels = torch.arange(len(scores)) + len(scores) * depth",  # no rank
        "labels = torch.arange(len(scores)) + 4 * rank",  # a number of its own
        "labels = torch.zeros(len(scores)) + len(scores) * rank",
    ],
)
def test_other_labels(labels: str) -> None:
    assert offsets(labels) == []


def test_rows_of_one_size() -> None:
    labels = "labels = torch.arange(len(scores)) + len(scores) * rank"
    assert offsets(labels, share=EVEN) == []
    assert offsets(labels, more=", drop_last=True") == []
    assert offsets(labels, gather="gather_alike") == []  # it raises where they differ
    assert offsets(labels, share="DistributedBatches(rows)") == []
