"""DDP116: scores of the share of a rank that a logger of meters adds up over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told

WHY = "gather predictions and labels of all ranks"
PROGRAM = """\
import sacrebleu
import torch
import torch.distributed as dist
from sacrebleu.metrics import BLEU
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total, self.count = self.total + value * n, self.count + n

    def add_up(self):
        both = torch.tensor([self.total, self.count])
        dist.all_reduce(both)
        self.total, self.count = both.tolist()


class Board:
    def __init__(self):
        self.meters = {"bleu": Meter()}

    def update(self, **values):
        for name, value in values.items():
            self.meters.setdefault(name, Meter()).update(value)

    def go_through(self, batches):
        for batch in batches:
            yield batch

    def synchronize_between_processes(self):
        for meter in self.meters.values():
            meter.add_up()


def evaluate(model, loader):
    board = Board()
    guesses, texts, scale = [], [], 2.0
    for batch in board.go_through(loader):
        guesses.append(model(batch))
        texts.append(batch)
        {each}
    guesses, texts = torch.cat(guesses), torch.cat(texts)
    {score}
    {joined}
    return {k: m.total / m.count for k, m in board.meters.items()}


def main(model, dataset):
    loader = DataLoader(dataset, batch_size=8{sampler})
    print(evaluate(model, loader))
"""
SAMPLER = ", sampler=DistributedSampler(dataset, shuffle=False)"
ROOT = "board.update(rmse=torch.sqrt(((guesses - texts) ** 2).mean()).item())"
JOINED = "board.synchronize_between_processes()"


def program(score: str = ROOT, *, each: str = "pass", joined: str = JOINED, sampler: str = SAMPLER) -> str:
    filled = PROGRAM.replace("{each}", each).replace("{score}", score).replace("{joined}", joined)
    return filled.replace("{sampler}", sampler)


@pytest.mark.parametrize(
    "score",
    [
        ROOT,
        "rmse = torch.sqrt(((guesses - texts) ** 2).mean(dim=0)) * 1000\n    board.update(first=rmse[0].item())",
        "mse = torch.nn.functional.mse_loss(guesses, texts)\n    board.update(rmse=torch.sqrt(mse).item())",
        "bleu = BLEU()\n    board.meters['bleu'].update(bleu.corpus_score(guesses, [texts]).score)",
        "board.update(bleu=sacrebleu.corpus_bleu(guesses, [texts]).score)",
    ],
)
def test_a_score_of_the_share_that_the_meters_add_up(score: str) -> None:
    check_told(AveragedMetric, program(score), reason=WHY)


@pytest.mark.parametrize(
    ("score", "each"),
    [
        ("board.update(mse=((guesses - texts) ** 2).mean().item())", "pass"),  # a mean of means of equal shares is the mean
        ("board.update(norm=torch.sqrt((guesses**2).sum()).item())", "pass"),  # no root of a mean
        ("pass", "board.update(rmse=torch.sqrt((model(batch) ** 2).mean()).item())"),  # of a batch: so on one process, too
        ("board.update(rmse=torch.sqrt(torch.tensor(scale).mean()).item())", "pass"),  # not of the rank's own data
        (f"guesses = gather_all(guesses)\n    {ROOT}", "pass"),  # the parts of all ranks
        ("made = Scorer()\n    board.update(bleu=made.corpus_score(guesses, [texts]))", "pass"),  # another object of that name
    ],
)
def test_scores_that_may_be_added_up(score: str, each: str) -> None:
    check_nothing(AveragedMetric, program(score, each=each))


def test_meters_that_nobody_adds_up() -> None:
    check_nothing(AveragedMetric, program(joined="board.update()"))  # each rank prints its own: another rule's matter
    own = program().replace("dist.all_reduce(both)", "pass")
    check_nothing(AveragedMetric, own)


def test_a_loader_of_the_whole_set() -> None:
    check_nothing(AveragedMetric, program(sampler=""))
