"""DDP002 and a flag that a LightningModule makes of its own settings."""

from __future__ import annotations

import pytest

from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters
from ddpfix.testing import check_nothing, check_told

_HEAD = """
import torch
from torch import nn
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
"""
_SETTINGS = """
    def default(self, given):
        given.find_unused_parameters = {given}
        return given

    def options(self):
        return dict(strategy=DDPStrategy(find_unused_parameters={flag}))
"""
_START = """

def run(given, loader):
    model = {name}(given)
    trainer = Trainer(**model.options())
    trainer.fit(model, loader)
"""
_NEEDS = """
class Needs({base}):
    def __init__(self, given):
        super().__init__()
        self.given = given
        self.trunk = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 8)

    def training_step(self, batch, batch_idx):
        out = self.trunk(batch)
        if torch.rand(1) < 0.5:
            out = out + self.aux(out)
        return out.mean()
"""
_PLAIN = """
class Plain(LightningModule):
    def __init__(self, given):
        super().__init__()
        self.given = given
        self.trunk = nn.Linear(8, 8)

    def training_step(self, batch, batch_idx):
        return self.trunk(batch).mean()
"""
_OWN = "self.given.find_unused_parameters"
_ON, _OFF = "trainer:\n  find_unused_parameters: true\n", "trainer:\n  find_unused_parameters: false\n"


def _needs(given: str = "False", flag: str = _OWN, base: str = "LightningModule", own: bool = True) -> str:
    settings = _SETTINGS.format(given=given, flag=flag) if own else ""
    return _HEAD + _NEEDS.format(base=base) + settings + _START.format(name="Needs")


def _plain(flag: str = _OWN) -> str:
    return _HEAD + _PLAIN + _SETTINGS.format(given="False", flag=flag) + _START.format(name="Plain")


def test_the_settings_of_a_model_are_not_for_another() -> None:
    check_nothing(MissingFindUnusedParameters, _plain(), files={"other/needs.py": _needs()})


def test_settings_that_are_inherited_are_for_the_heir_too() -> None:
    heir = f"from module import Plain\n{_needs(base='Plain', own=False)}"
    check_told(MissingFindUnusedParameters, _plain(), files={"needs.py": heir}, reason="has to come to True")


def test_a_flag_that_is_not_of_the_model_may_be_for_any() -> None:
    source = _plain(flag="SHARED.find_unused_parameters")
    check_told(MissingFindUnusedParameters, source, files={"needs.py": _needs()}, reason="has to come to True")


@pytest.mark.parametrize(
    "files", [{}, {"first.yaml": _ON}, {"first.yaml": _ON, "conf/other.yaml": _OFF}, {"conf/other.yaml": _ON}]
)
def test_a_key_that_is_on_wherever_it_is_given(files: dict[str, str]) -> None:
    check_nothing(MissingFindUnusedParameters, _needs("True"), files=files)


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ("False", {"first.yaml": _ON}),
        ("given.more", {"first.yaml": _ON}),
        ("True", {"first.yaml": _ON, "second.yaml": _OFF}),
        ("True", {"conf/other.yaml": _OFF}),
    ],
)
def test_a_key_that_is_off_somewhere(given: str, files: dict[str, str]) -> None:
    check_told(MissingFindUnusedParameters, _needs(given), files=files, reason="has to come to True")
