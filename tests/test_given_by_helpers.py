"""DDP305: what helpers give back, what may be missing, and which keys there are."""

from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told

RULE = OneRankDecision


# What a helper gives back beside the loss


BASE = "import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n"
GUARDED = """
import torch
from base import Base


class Model(Base):
    def training_step(self, batch, batch_idx):
        loss = self.net(batch).mean()
        loss, skipped = self.guard(loss)
        if skipped:
            return loss
        self.manual_backward(loss)
        return loss

    def guard(self, loss):
        if not self.guarded:
            return loss, False
        if bool(torch.isfinite(loss).all()):
            return loss, False
        return loss.new_zeros(()), True
"""


@pytest.mark.parametrize(
    "guard",
    [
        GUARDED,
        GUARDED.replace("return loss, False", "return loss, 0"),
        GUARDED.replace(", False", ", 'ok'").replace(", True", ", 'bad'").replace("if skipped:", "if skipped == 'bad':"),
        GUARDED.replace(", False", ", None").replace("if skipped:", "if skipped is not None:"),
    ],
)  # fmt: skip
def test_a_helper_says_whether_to_skip(guard: str) -> None:
    found = check_told(RULE, guard, files={"base.py": BASE}, reason="reduce the deciding number")
    assert "manual_backward" in found.message


@pytest.mark.parametrize(
    "guard",
    [
        GUARDED.replace("bool(torch.isfinite(loss).all())", "self.global_step % 2"),
        GUARDED.replace("new_zeros(()), True", "new_zeros(()), False"),
        GUARDED.replace("if skipped:\n            return loss\n        ", ""),
        GUARDED.replace("bool(torch.isfinite(loss).all())", "self.all_gather(loss).isfinite().all()"),
    ],
)
def test_all_ranks_skip_or_none(guard: str) -> None:
    check_nothing(RULE, guard, files={"base.py": BASE})


# What may be missing

SHOWN = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Loop:
    def __init__(self, config, model, rows):
        dist.init_process_group("gloo")
        self.config, self.model = config, model
        self.loader = DataLoader(rows, sampler=DistributedSampler(rows))

    def extra(self, batch, wanted=True):
        if TEST:
            return NONE
        return SOME

    def fit(self):
        for batch in self.loader:
            GIVEN = self.extra(batch)
            if value is not None:
                dist.all_reduce(value)
"""
SHAPES = [
    ("None", "self.model(batch).mean()", "value"),
    ("None, 1", "self.model(batch).mean(), 2", "value, n"),
    ("1, None", "2, self.model(batch).mean()", "n, value"),
]


def shown(test: str, shape: tuple[str, str, str]) -> str:
    none, some, given = shape
    return SHOWN.replace("TEST", test).replace("NONE", none).replace("SOME", some).replace("GIVEN", given)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("test", ["batch.sum() > 3", "self.model(batch).mean().isnan()", "batch[0] == 0 and wanted"])
def test_a_rank_without_it_leaves_the_sum_out(test: str, shape: tuple[str, str, str]) -> None:
    check_told(RULE, shown(test, shape), reason="reduce the deciding number")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("test", ["not self.config.extra", "not wanted", "self.model is None", "self.config.every > 3"])
def test_a_setting_says_whether_it_is_there(test: str, shape: tuple[str, str, str]) -> None:
    check_nothing(RULE, shown(test, shape))


def test_what_an_expression_leaves_out() -> None:
    source = SHOWN.replace("        if TEST:\n            return NONE\n", "").replace("GIVEN", "value")
    either = "None if TEST else self.model(batch).mean()"
    check_told(RULE, source.replace("SOME", either.replace("TEST", "batch.sum() > 3")), reason="reduce the deciding number")
    check_nothing(RULE, source.replace("SOME", either.replace("TEST", "self.config.off")))


# Which keys there are

KEYS = """
import importlib

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
loader = DataLoader(rows, sampler=DistributedSampler(rows))


def fit(model, names):
    for batch in loader:
        picked = [row for row in batch if row.sum() > 3]
        BODY
"""


def keys(*body: str) -> str:
    return KEYS.replace("BODY", "\n        ".join(body))


@pytest.mark.parametrize(
    "body",
    [
        ("if len(picked) == 0:", "    continue", "dist.barrier()"),
        ("if batch[batch > 3].numel() == 0:", "    continue", "dist.barrier()"),
        ("found = {r.id: r for r in batch if r.sum() > 3}", "for n in names:", "    if n in found:",
         "        dist.all_reduce(found[n])"),
        ("try:", "    import json", "    shown = torch.load('shown.pt')", "except Exception:", "    shown = None",
         "if shown is None:", "    continue", "dist.barrier()"),
        ("if names[0] in picked:", "    dist.barrier()"),
    ],
)  # fmt: skip
def test_how_many_there_are_is_each_rank_s_own(body: tuple[str, ...]) -> None:
    check_told(RULE, keys(*body), reason="reduce the deciding number")


@pytest.mark.parametrize(
    "body",
    [
        ("if batch.numel() == 0:", "    continue", "dist.barrier()"),
        ("held = {'few': picked}", "for n in names:", "    if n in held:", "        part = held[n]", "        dist.barrier()"),
        ("held = {'few': picked}", "for n, v in list(held.items()):", "    held[n] = torch.tensor(v)", "for n in names:",
         "    if n in held:", "        dist.all_reduce(held[n].sum())"),
        ("try:", "    shown = importlib.import_module('shown')", "except Exception:", "    shown = None", "if shown is None:",
         "    continue", "dist.barrier()"),
    ],
)  # fmt: skip
def test_how_long_the_entries_are_is_another_matter(body: tuple[str, ...]) -> None:
    check_nothing(RULE, keys(*body))
