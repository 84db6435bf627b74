"""DDP106: a metric class of the project that each rank fills from its own share."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told

RULE = UnreducedNumber
WHY = "reduce sums and counts over the ranks first"
PROGRAM = """\
import json
import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Matrix:
    def __init__(self, classes):
        self.classes = classes
        self.cells = np.zeros((classes, classes))

    def update(self, labels, guesses):
        for t, p in zip(labels, guesses):
            self.cells += np.bincount(self.classes * t + p, minlength=self.classes**2).reshape(self.classes, -1)

    def reduce(self):
        total = torch.from_numpy(self.cells)
        dist.all_reduce(total)
        self.cells = total.numpy()

    def get_scores(self):
        cells = self.cells
        return {"accuracy": np.diag(cells).sum() / cells.sum(), "miou": np.nanmean(np.diag(cells) / cells.sum(1))}

    def reset(self):
        self.cells = np.zeros((self.classes, self.classes))

    def __str__(self):
        return f"mIoU {self.get_scores()['miou']}"


def validate(model, loader, matrix):
    matrix.reset()
    for images, labels in loader:
        matrix.update(labels.numpy(), model(images).argmax(1).numpy())
    {end}


def main(model, dataset, best=0.0):
    rank = dist.get_rank()
    loader = DataLoader(dataset, batch_size=8{sampler})
    matrix = Matrix(9)
    scores = validate(model, loader, matrix)
    {shown}
"""
SAMPLER = ", sampler=DistributedSampler(dataset, shuffle=False)"
SCORES = "return matrix.get_scores()"
PRINTED = "if rank == 0:\n        print(scores)"


def program(end: str = SCORES, shown: str = PRINTED, sampler: str = SAMPLER) -> str:
    return PROGRAM.replace("{end}", end).replace("{shown}", shown).replace("{sampler}", sampler)


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (SCORES, PRINTED),
        (SCORES, 'if rank == 0:\n        print("validation", scores)'),
        (SCORES, 'if rank == 0:\n        with open("a.json", "w") as f:\n            json.dump(scores, f)'),
        (SCORES, "if rank == 0:\n        for name, value in scores.items():\n            print(name, value)"),
        (SCORES, 'if rank == 0 and scores["miou"] > best:\n        torch.save(model, "best.pt")'),
        (SCORES, 'if rank == 0:\n        print(f"{scores[\'miou\']:.3f}")'),
        ("pass", "scores = matrix.get_scores()\n    if rank == 0:\n        print(scores)"),
    ],
)
def test_the_result_of_a_matrix_of_one_share(end: str, shown: str) -> None:
    check_told(RULE, program(end, shown), reason=WHY)


def test_an_object_that_puts_its_counts_into_words() -> None:
    local = program("return matrix").replace("loader, matrix):\n    matrix.reset()", "loader):\n    matrix = Matrix(9)")
    local = local.replace("scores = validate(model, loader, matrix)", "matrix = validate(model, loader)")
    local = local.replace("(scores)", "(matrix)")
    check_told(RULE, local, reason=WHY)
    check_nothing(RULE, local.replace("    return matrix\n", "    matrix.reduce()\n    return matrix\n"))
    check_nothing(RULE, local.replace("mIoU {self.get_scores()['miou']}", "a matrix of {self.classes} classes"))


TRAINER = PROGRAM[: PROGRAM.index("def validate")] + """\
class Trainer:
    def __init__(self, model, dataset, rank):
        self.model, self.rank, self.best = model, rank, 0.0
        self.loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        self.matrix = Matrix(9)

    def validation(self):
        self.matrix.reset()
        for images, labels in self.loader:
            self.matrix.update(labels.numpy(), self.model(images).argmax(1).numpy())
        {between}
        scores = self.matrix.get_scores()
        if scores["miou"] > self.best:
            self.best = scores["miou"]
            if self.rank == 0:
                torch.save(self.model, "best.pt")


Trainer(model, dataset, dist.get_rank()).validation()
"""


def test_a_matrix_that_a_trainer_holds() -> None:
    found = check_told(RULE, TRAINER.replace("{between}", "pass"), reason=WHY)
    assert "each rank holds" in found.message
    for right in ("self.matrix.reduce()", "dist.all_reduce(self.matrix.cells)"):
        check_nothing(RULE, TRAINER.replace("{between}", right))


@pytest.mark.parametrize(
    ("end", "shown", "sampler"),
    [
        (f"matrix.reduce()\n    {SCORES}", PRINTED, SAMPLER),
        (f"dist.all_reduce(matrix.cells)\n    {SCORES}", PRINTED, SAMPLER),
        (
            "total = torch.from_numpy(matrix.cells)\n    dist.all_reduce(total)\n    matrix.cells = total.numpy()\n    " + SCORES,
            PRINTED,
            SAMPLER,
        ),
        (
            "total = torch.from_numpy(matrix.cells)\n    dist.all_reduce(total)\n    matrix.cells = total.numpy()",
            "scores = matrix.get_scores()\n    if rank == 0:\n        print(scores)",
            SAMPLER,
        ),
        ("dist.all_reduce(matrix.cells)", "scores = matrix.get_scores()\n    if rank == 0:\n        print(scores)", SAMPLER),
        (SCORES, PRINTED, ""),
        (SCORES, "print(f'rank {rank}: {scores}')", SAMPLER),
        (SCORES, "every = [None] * 2\n    dist.all_gather_object(every, scores)\n    print(every)", SAMPLER),
    ],
)
def test_the_counts_of_all_ranks_stay(end: str, shown: str, sampler: str) -> None:
    check_nothing(RULE, program(end, shown, sampler))


def test_a_method_that_reduces_what_it_gives() -> None:
    inside = "        total = torch.from_numpy(self.cells)\n        dist.all_reduce(total)\n        cells = total.numpy()\n"
    check_nothing(RULE, program().replace("        cells = self.cells\n", inside))


def test_a_matrix_of_the_training_stays() -> None:
    step = "        loss_of(model(images), labels).backward()\n        matrix.update("
    check_nothing(RULE, program(SCORES).replace("        matrix.update(", step))


def test_what_is_filled_anew_is_its_own_again() -> None:
    again = (
        "dist.all_reduce(matrix.cells)\n    for images, labels in loader:\n"
        "        matrix.update(labels.numpy(), model(images))\n    "
    )
    check_told(RULE, program(again + SCORES), reason=WHY)
