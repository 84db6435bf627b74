"""What a torch, or a Python, in the same file leaves of Lightning."""

from __future__ import annotations

import pytest

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.version_pins import Pin, Version
from codemods.store.project import Project
from codemods.upgrades.lightning_moved_names import LightningMovedNames
from ddpfix.testing import check_nothing, findings_of


def pin_in(files: dict[str, str]) -> Pin:
    found = lightning_pin(Project.of({path: text.encode() for path, text in {"train.py": "", **files}.items()}), near="train.py")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("torch==1.7.1\npytorch-lightning\n", (1, 6, 0)),
        ("torch==1.8.1\npytorch-lightning>=1.3\n", (1, 7, 0)),
        ("pytorch_lightning>=1.3\ntorch==1.8.1+cu111\n", (1, 7, 0)),
        ("torch>=1.8,<1.10\npytorch-lightning\n", (1, 9, 0)),
        ("torch~=1.12.0\nlightning>=2.0\n", (2, 2, 0)),
        ("torch<2\npytorch-lightning\n", (2, 3, 0)),
        ("torchvision==0.9.1\npytorch-lightning\n", (1, 7, 0)),
        ("torch==1.8.1\npytorch-lightning>=1.3,<1.5\n", (1, 5, 0)),  # its own bound is the lower one
        ("torch==2.1.0\npytorch-lightning\n", None),
        ("torch>=1.8\npytorch-lightning\n", None),
        ("torch\npytorch-lightning\n", None),
        ("torch==1.8.1\npytorch-lightning>=2.0\n", None),  # never installed as it stands
    ],
)
def test_a_torch_bounds_lightning_from_above(text: str, below: Version | None) -> None:
    assert pin_in({"requirements.txt": text}).below == below


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("dependencies:\n  - pytorch=1.8\n  - pytorch-lightning\n", (1, 7, 0)),
        ("dependencies:\n  - pip\n  - pip:\n    - torch==1.8.1\n    - pytorch-lightning\n", (1, 7, 0)),
        ("dependencies:\n  - pytorch=1.8\n  - pip:\n    - pytorch-lightning\n", None),  # pip takes another torch
        ("dependencies:\n  - python=3.7\n  - pip:\n    - pytorch-lightning\n", (2, 0, 0)),
        ("dependencies:\n  - python=3.6\n  - pytorch=1.10\n  - pytorch-lightning\n", (1, 6, 0)),
        ("dependencies:\n  - python=3.10\n  - pip:\n    - pytorch-lightning\n", None),
    ],
)
def test_an_environment_of_conda(text: str, below: Version | None) -> None:
    assert pin_in({"environment.yml": text}).below == below


def test_a_torch_of_another_file_bounds_nothing() -> None:
    assert pin_in({"requirements.txt": "pytorch-lightning>=1.3\n", "requirements-gpu.txt": "torch==1.8.1\n"}).below is None
    said = "# Install\n\n```\npip install torch==1.8.1\npip install pytorch-lightning>=1.3\n```\n"
    assert pin_in({"README.md": said}).below is None  # the second command takes a newer torch


def test_files_that_disagree_keep_the_wider_bound() -> None:
    old, new = "torch==1.8.1\npytorch-lightning>=1.3\n", "torch==1.12.0\npytorch-lightning>=1.5\n"
    assert pin_in({"requirements.txt": old, "requirements-new.txt": new}).below == (2, 2, 0)
    assert pin_in({"requirements.txt": old, "requirements-new.txt": "pytorch-lightning>=1.5\n"}).below is None


def test_a_bare_name_beside_a_torch_says_less_than_a_pin() -> None:
    bare = "  - pytorch=1.13\n  - lightning\n"
    files = {"requirements.txt": "torch==1.13.1\npytorch-lightning==1.8.2\n", "environment.yml": bare}
    assert pin_in(files).below == (1, 8, 3)


_CODE = "import pytorch_lightning as pl\n\n\ndef log(logger):\n    return isinstance(logger, pl.loggers.LightningLoggerBase)\n"


def test_a_name_that_is_there_in_every_lightning_beside_that_torch() -> None:
    check_nothing(LightningMovedNames, _CODE, files={"requirements.txt": "torch==1.8.1\npytorch-lightning>=1.3\n"})


def test_the_pin_beside_is_named() -> None:
    files = {"requirements.txt": "torch==1.12.0\npytorch-lightning>=1.3\n"}
    (found,) = findings_of(LightningMovedNames, _CODE, files)
    assert "beside torch ==1.12.0" in found.reason and "pip takes 2.x today" in found.reason
