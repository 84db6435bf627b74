"""Who comes to `_save` of a Trainer of transformers: one rank by version 4, each by version 5."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_entering
from ddpfix.testing import project_of

MODEL = """\
import torch


class Encoder(torch.nn.Module):
    def keep(self, folder):
        torch.save(self.state_dict(), folder)
"""
TRAINER = """\
import torch
from {source} import {name}


class EncoderTrainer(Trainer):
    def {method}(self, folder=None):
        self.model.keep(folder)
"""


def keeping(pins: str = "transformers==4.34.0\n", *, star: bool = False, method: str = "_save") -> Ranks:
    source, name = ("transformers.trainer", "*") if star else ("transformers", "Trainer")
    trainer = TRAINER.format(source=source, name=name, method=method)
    project = project_of(MODEL, {"trainer.py": trainer, "requirements.txt": pins})
    module = project.module("module.py")
    assert module is not None
    return ranks_entering(project, module, module.functions[0])


@pytest.mark.parametrize("star", [True, False])
def test_one_rank_keeps_the_model(star: bool) -> None:
    assert keeping(star=star) is Ranks.ZERO


def test_another_version_may_call_it_on_every_rank() -> None:
    assert keeping("transformers==5.1.0\n") is Ranks.UNKNOWN
    assert keeping("") is Ranks.UNKNOWN


def test_every_rank_comes_to_another_method() -> None:
    assert keeping(method="compute_loss") is Ranks.ALL
