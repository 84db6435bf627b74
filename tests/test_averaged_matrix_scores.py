"""DDP116: the scores of a matrix that each rank has counted of its own share, averaged over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told

WHY = "reduce the counts over the ranks"
PROGRAM = """\
import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Matrix:
    def __init__(self, classes):
        self.classes = classes
        self.cells = np.zeros((classes, classes))

    def add(self, labels, guesses):
        self.cells += np.bincount(self.classes * labels + guesses, minlength=self.classes**2).reshape(self.classes, -1)

    def scores(self):
        hits = np.diag(self.cells)
        return {"acc": hits.sum() / self.cells.sum(), "miou": np.nanmean(hits / self.cells.sum(1))}

    def mean_iou(self):
        return np.nanmean(np.diag(self.cells) / self.cells.sum(1))

    def accuracy(self):
        return np.diag(self.cells).sum() / self.cells.sum()


def validate(model, loader, matrix):
    for images, labels in loader:
        matrix.add(labels.numpy(), model(images).argmax(1).numpy())
    {score}
    dist.all_reduce(score)
    return score.item() / dist.get_world_size()


def main(model, dataset):
    loader = DataLoader(dataset, batch_size=8{sampler})
    score = validate(model, loader, Matrix(9))
    if dist.get_rank() == 0:
        print("mIoU", score)
"""
SAMPLER = ", sampler=DistributedSampler(dataset, shuffle=False)"


def program(score: str, sampler: str = SAMPLER) -> str:
    return PROGRAM.replace("{score}", score).replace("{sampler}", sampler)


@pytest.mark.parametrize(
    "score",
    [
        'score = torch.tensor(matrix.scores()["miou"]).cuda()',
        "score = torch.tensor(matrix.mean_iou())",
        'found = matrix.scores()\n    score = torch.tensor(found["miou"])',
    ],
)
def test_the_mean_of_the_scores_of_the_ranks(score: str) -> None:
    assert "of `Matrix`" in check_told(AveragedMetric, program(score), reason=WHY).message


@pytest.mark.parametrize(
    ("score", "sampler"),
    [
        ("total = torch.from_numpy(matrix.cells)\n    dist.all_reduce(total)\n    matrix.cells = total.numpy()\n"
         "    score = torch.tensor(matrix.mean_iou())", SAMPLER),
        ("dist.all_reduce(matrix.cells)\n    score = torch.tensor(matrix.mean_iou())", SAMPLER),
        ('score = torch.tensor(matrix.scores()["acc"])', SAMPLER),
        ("score = torch.tensor(matrix.accuracy())", SAMPLER),
        ("score = torch.from_numpy(matrix.cells)", SAMPLER),
        ("score = torch.tensor(matrix.mean_iou())", ""),
        ("score = torch.tensor(float(len(labels)))", SAMPLER),
    ],
)  # fmt: skip
def test_counts_of_all_ranks_and_accuracies_stay(score: str, sampler: str) -> None:
    check_nothing(AveragedMetric, program(score, sampler))


def test_a_class_that_counts_no_matrix_stays() -> None:
    source = program("score = torch.tensor(matrix.mean_iou())").replace("np.diag(self.cells)", "self.cells[0]")
    check_nothing(AveragedMetric, source)
