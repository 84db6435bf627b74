"""`target-lightning`: every codemod judges the code by the version that it is brought to, not by the pin that it comes from."""

from __future__ import annotations

import pytest

from codemods.analysis.frameworks import lightning_pin
from codemods.store.project import Project

PINNED = {"requirements.txt": b"pytorch-lightning==1.5.10\n", "train.py": b""}


@pytest.mark.parametrize(
    ("target", "least", "below"),
    [("2", (2,), (3,)), ("1.9", (1, 9), (1, 10)), ("2.1.3", (2, 1, 3), (2, 1, 4))],
)
def test_the_setting_goes_before_the_pin(target: str, least: tuple[int, ...], below: tuple[int, ...]) -> None:
    pin = lightning_pin(Project.of(PINNED, targets={"lightning": target}), near="train.py")
    assert pin is not None
    assert pin.surely_at_least(least)
    assert pin.surely_below(below)
    assert pin.text.startswith("target-lightning")


def test_without_the_setting_the_pin_counts() -> None:
    pin = lightning_pin(Project.of(PINNED), near="train.py")
    assert pin is not None and pin.text == "pytorch-lightning ==1.5.10"
