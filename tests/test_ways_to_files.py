"""Ways by which every rank comes to a file: objects of a class that a setting names, tests for whether there is a rank at all."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

SCRIPT = """\
import importlib
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world, cfg):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    {made}
    task.validate(cfg.rows)


if __name__ == "__main__":
    mp.spawn(work, args=(2, None), nprocs=2)
"""
TASK = """\
import os
import numpy as np
from tasks.base import Base


class Task(Base):
    def __init__(self, cfg):
        self.folder = cfg.folder

    def validate(self, rows):
        table = np.array(rows)
        np.save(os.path.join(self.folder, "rows.npy"), table)
"""
BASE = "class Base:\n    def validate(self, rows):\n        raise NotImplementedError\n"
MADE = "task = importlib.import_module(cfg.task.type).Task(cfg)"


def project(*, setting: str = "task:\n  type: tasks.pairs\n", made: str = MADE, **files: str) -> dict[str, str]:
    out = {"run.py": SCRIPT.format(made=made), "tasks/base.py": BASE, "tasks/__init__.py": "", "conf.yaml": setting}
    return out | {f"tasks/{name}.py": text for name, text in files.items()}


@pytest.mark.parametrize(
    "made",
    [
        MADE,
        "lib = importlib.import_module(cfg.task.type)\n    task = lib.Task(cfg)",
        "Kind = getattr(importlib.import_module(cfg.task.type), 'Task')\n    task = Kind(cfg)",
    ],
)
def test_a_file_of_an_object_whose_class_a_setting_names_is_told(made: str) -> None:
    found = findings_of(UnguardedFileIo, TASK, project(made=made), path="tasks/pairs.py")
    assert [f.span.line for f in found] == [12]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (project(made="task = cfg.task(cfg)"), "nothing says which class the object is of"),
        (project(triples=TASK), "there are two classes of that name"),
        (project(setting="task: 1\n"), "no setting names the file"),
        (project(triples=TASK.replace("class Task(Base)", "class Wide(Task)")), "an heir has another function"),
        (project(made="task = make(importlib.import_module(cfg.task.type))"), "what makes the object is not seen"),
    ],
)
def test_it_is_not_sure_whose_function_runs(files: dict[str, str], why: str) -> None:
    if "heir" in why:
        heir = files["tasks/triples.py"]
        files["tasks/triples.py"] = heir.replace("from tasks.base import Base", "from tasks.pairs import Task")
    check_nothing(UnguardedFileIo, TASK, path="tasks/pairs.py", files=files)


LAUNCHES_ITSELF = """\
import os
import subprocess
import sys
from transformers import AutoTokenizer, Trainer


def launch():
    sys.exit(subprocess.run(["accelerate", "launch", "train.py"]).returncode)


def train(cfg):
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    words = AutoTokenizer.from_pretrained(cfg.name)
    trainer = Trainer(cfg.model, cfg.arguments)
    trainer.train()
    words.save_pretrained(cfg.folder)


def main(cfg):
    {test}:
        launch()
        return
    train(cfg)


if __name__ == "__main__":
    main(None)
"""


@pytest.mark.parametrize(
    "test",
    ['if "LOCAL_RANK" not in os.environ', 'if os.environ.get("RANK") is None', 'if not "WORLD_SIZE" in os.environ'],
)
def test_behind_a_test_for_a_launched_process_every_rank_goes_on(test: str) -> None:
    found = findings_of(UnguardedSave, LAUNCHES_ITSELF.format(test=test))
    assert [f.span.line for f in found] == [16]


@pytest.mark.parametrize(
    "test",
    [
        'if "LOCAL_RANK" in os.environ',  # it goes on where there is one process
        'if os.environ.get("RANK") is not None',
        'if os.environ.get("RANK") == "1"',
        'if os.environ.get("RANK", None) != "0"',
    ],
)
def test_behind_other_tests_one_process_goes_on(test: str) -> None:
    check_nothing(UnguardedSave, LAUNCHES_ITSELF.format(test=test))
