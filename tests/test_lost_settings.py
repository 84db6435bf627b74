"""A copy of a program that lies where its settings are not found says nothing to anybody."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

SOURCE = """\
import hydra
import lightning as L

@hydra.main(version_base=None, config_path="{path}", config_name="train")
def main(cfg):
    trainer = L.Trainer(devices=4, strategy="ddp")
    if trainer.is_global_zero:
        note(cfg)
    trainer.fit(build(cfg))
    print("all is done")


if __name__ == "__main__":
    main()
"""
SETTINGS = {"configs/runs/train.yaml": "seed: 1\n"}


def found(at: str, path: str, files: dict[str, str]) -> int:
    return len(findings_of(UnguardedPrint, SOURCE.format(path=path), files, path=at))


def test_a_copy_that_cannot_find_its_settings() -> None:
    assert found("src/data/molecules.py", "../configs/runs", SETTINGS) == 0
    assert found("src/data/molecules.py", "../configs/runs/", SETTINGS) == 0


@pytest.mark.parametrize(
    ("at", "path", "files"),
    [
        ("src/main.py", "../configs/runs", SETTINGS),
        ("main.py", "configs/runs", SETTINGS),
        ("main.py", "../configs/runs", SETTINGS),  # outside of what is seen
        ("src/data/molecules.py", "../configs/runs", {"README.md": "write your settings\n"}),  # they may be left to be written
        ("src/data/molecules.py", "pkg://runs", SETTINGS),
        ("src/data/molecules.py", "/configs/runs", SETTINGS),
        ("src/data/molecules.py", ".", SETTINGS),
    ],
)
def test_settings_that_may_be_there(at: str, path: str, files: dict[str, str]) -> None:
    assert found(at, path, files) == 1
