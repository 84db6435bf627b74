"""A class of a package is no class of a file that bears its name: nobody runs a copy that no program imports."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

COPY = """\
import torch.distributed as dist

class Trainer:
    def work(self):
        rank = dist.get_rank()
        if rank == 0:
            mark()
        print("working")
"""
MAIN = (
    "{line}\nimport torch.distributed as dist\n\nif __name__ == '__main__':\n"
    "    dist.init_process_group('nccl')\n    Trainer().work()\n"
)
JOB = {"run.sh": "torchrun --nproc_per_node=2 train.py\n"}


def files(line: str, others: dict[str, str] | None = None) -> dict[str, str]:
    return {"train.py": MAIN.format(line=line), **JOB, **(others or {})}


@pytest.mark.parametrize("line", ["from trl import Trainer", "from trl.core import Trainer", "from trl import Ours as Trainer"])
def test_a_copy_that_no_program_imports(line: str) -> None:
    check_nothing(UnguardedPrint, COPY, files=files(line))
    notebook = '{"cells": [{"cell_type": "code", "source": ["from trl import Trainer\\n"], "metadata": {}, "outputs": []}]}'
    check_nothing(UnguardedPrint, COPY, files=files(line, {"look.ipynb": notebook}))


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("from module import Trainer", {}),
        ("from module import *", {}),
        ("from trl import Trainer", {"trl/__init__.py": "from module import Trainer\n"}),
        ("from trl import Trainer", {"vendor/trl/core.py": ""}),  # some folder of that name: which one is meant is open
        ("from trl import Trainer", {"setup.py": "setup(\n    name='trl',\n    py_modules=['module'])\n"}),
        ("try:\n    from module import Trainer\nexcept ImportError:\n    from trl import Trainer", {}),
        ("from trl import Trainer", {"conf.yaml": "runner: Trainer\n"}),  # a setting names it
        ("if SMALL:\n    from small import Trainer\nelse:\n    from module import Trainer", {"small.py": "class Trainer: ...\n"}),
        ("if BIG:\n    from module import Trainer\nelse:\n    from small import Trainer", {"small.py": "class Trainer: ...\n"}),
    ],
)
def test_classes_that_a_program_may_have(line: str, others: dict[str, str]) -> None:
    assert findings_of(UnguardedPrint, COPY, files(line, others))
