"""Is rank 0 past a place before Lightning starts the other ranks?"""

from __future__ import annotations

import pytest

from codemods.analysis.guards.above_fit import is_past_before_the_others
from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, check_told, project_of

SCRIPT = """\
import shutil
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only

@rank_zero_only
def clear(folder):
    shutil.rmtree(folder)

def train(folder, model):
    clear(folder)
    (folder / "names.txt").write_text("a")
    trainer = pl.Trainer(devices=4, strategy="ddp")
    trainer.fit(model)

if __name__ == "__main__":
    train(read(), build())
"""
ALONE = {"README.md": "Run `python train.py --out runs`.\n"}
RUN = "    trainer.fit(model)\n"


def is_past(source: str, files: dict[str, str]) -> bool:
    project = project_of(source, files, path="train.py")
    module = project.module("train.py")
    assert module is not None
    (place,) = module.calls_named("clear")
    return is_past_before_the_others(project, module, place)


@pytest.mark.parametrize(
    ("files", "past"),
    [
        (ALONE, True),
        ({"run.sh": "python train.py\n"}, True),
        ({}, False),  # nobody says how it is started
        ({"README.md": "Run `python other.py`.\n"}, False),
        ({**ALONE, "many.sh": "torchrun --nproc-per-node 4 train.py\n"}, False),
        ({**ALONE, "job.sh": "#SBATCH --ntasks=4\nsrun python train.py\n"}, False),
        ({**ALONE, "job.sh": "mpirun -np 4 python train.py\n"}, False),
        ({**ALONE, "more.md": "For multi-node runs, set NODE_RANK.\n"}, False),
    ],
)
def test_how_the_texts_start_it(files: dict[str, str], *, past: bool) -> None:
    assert is_past(SCRIPT, files) is past


LOOP = SCRIPT.replace("    train(read(), build())\n", "    for folder in read():\n        train(folder, build())\n")
TWICE = SCRIPT + "    train(read(), build())\n"
SWEPT = SCRIPT.replace("    train(read(), build())\n", "    study(train)\n")
HELPED = SCRIPT.replace(RUN, "    go(trainer, model)\n").replace(
    "def train(", "def go(trainer, model):\n    trainer = pl.Trainer()\n    trainer.fit(model)\n\ndef train("
)
ABOVE = SCRIPT.replace(RUN, "").replace("    train(read(), build())\n", "    train(read(), 1)\n    go()\n").replace(
    "if __name__", "def go():\n    trainer = pl.Trainer(devices=2)\n    trainer.fit(build())\n\nif __name__"
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "past"),
    [
        (HELPED, True),
        (ABOVE, True),  # the run stands behind the call of the function
        (SCRIPT.replace("trainer.fit(model)", "trainer.test(model)"), True),
        (SCRIPT.replace(RUN, ""), False),  # no run is seen
        (SCRIPT.replace(RUN, "    model.fit(folder)\n"), False),  # not a Trainer's
        (SCRIPT.replace("    clear(folder)\n", "").replace(RUN, RUN + "    clear(folder)\n"), False),  # behind it
        (SCRIPT.replace("    clear(folder)\n", "    first = pl.Trainer()\n    first.fit(1)\n    clear(folder)\n"), False),
        (SCRIPT.replace("    clear(folder)\n", "    for part in folder:\n        clear(part)\n"), False),
        (SCRIPT.replace("    clear(folder)\n", "    dist.init_process_group('gloo')\n    clear(folder)\n"), False),
        (SCRIPT.replace("    trainer = ", "    dist.init_process_group('gloo')\n    trainer = "), False),
        (LOOP, False),
        (TWICE, False),
        (SWEPT, False),
    ],
)  # fmt: skip
def test_where_the_first_run_of_a_trainer_stands(source: str, *, past: bool) -> None:
    assert is_past(source, ALONE) is past


def test_what_rank_zero_removes_above_fit() -> None:
    check_nothing(MissingBarrier, SCRIPT, files={"README.md": "Run `python module.py`.\n"})
    check_told(MissingBarrier, SCRIPT, files={"run.sh": "torchrun --nproc-per-node 4 module.py\n"}, reason="no spelling")
