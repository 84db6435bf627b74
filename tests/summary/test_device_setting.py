"""Where a program takes the number of its processes from."""

from __future__ import annotations

import pytest

from codemods.store.project import Project
from ddpfix.summary.device_setting import device_setting

CONFIG = "cfg = Settings()\ncfg.small.devices = 1\ncfg.large.devices = 4\n"


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("from config import cfg\nt = Trainer(\n    max_epochs=3,\n    devices=cfg.large.devices,\n)\n", "config.py:3"),
        ("t = Trainer(callbacks=[a(1)], devices=4)\n", "run.py:1"),
        ("t = Trainer(\n    devices='auto')\n", "run.py:2"),
        ("t = Trainer(gpus=4)\n", "run.py:1"),
        ("from config import cfg\nt = Trainer(devices=cfg.other.devices)\n", ""),
        ("t = Trainer(devices=args.devices)\n", ""),
        ("a = Trainer(devices=1)\nb = Trainer(devices=2)\n", ""),
        ("t = Trainer(max_epochs=3)\nf(devices=2)\n", ""),
    ],
)
def test_the_line_that_gives_the_number(script: str, place: str) -> None:
    project = Project.of({"run.py": script.encode(), "config.py": CONFIG.encode()})
    assert device_setting(project, "run.py") == place


def test_two_lines_that_give_it_are_not_one_place() -> None:
    config = CONFIG + "if debug:\n    cfg.large.devices = 1\n"
    script = b"from config import cfg\nt = Trainer(devices=cfg.large.devices)\n"
    assert device_setting(Project.of({"run.py": script, "config.py": config.encode()}), "run.py") == ""
