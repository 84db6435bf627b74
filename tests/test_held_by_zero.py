"""Lines under a field that the makers of an object give rank 0 alone."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

LOOP = """\
from accelerate import Accelerator


class Loop:
    def __init__(self, accelerator, boards=[], rows=9):
        self.accelerator = accelerator
        self._boards = boards
        self.rows = rows

    @property
    def board(self):
        return self._boards[0] if self._boards else None

    def fit(self):
        if self.rows and self.board is not None:
            print("begin")
        loss = self.step()
        self.accelerator.backward(loss)
        if self.accelerator.is_main_process:
            self.accelerator.save_state()
"""
MAKES = """\
import hydra
from accelerate import Accelerator
from loop import Loop


def main(cfg):
    accelerator = Accelerator()
    if accelerator.is_main_process:
        boards = open_boards(cfg)
    else:
        boards = []
    loop = {made}
    loop.fit()


if __name__ == "__main__":
    main(None)
"""
LOOPS = "hydra.utils.instantiate(cfg.loop, accelerator=accelerator, boards=boards)"


def told(made: str, *, loop: str = LOOP, makes: str = MAKES) -> int:
    started = {"run.sh": "accelerate launch --multi_gpu main.py\n", "conf/loop.yaml": "_target_: loop.Loop\n"}
    files = {"main.py": makes.format(made=made), **started}
    return len(findings_of(UnguardedPrint, loop, files, path="loop.py"))


@pytest.mark.parametrize(
    ("made", "lines"),
    [(LOOPS, 0), ("Loop(accelerator, boards)", 0), ("Loop(accelerator, boards=boards)", 0),
     ("Loop(accelerator, boards=cfg.boards)", 1),
     ("Loop(accelerator, **cfg.loop)", 1),
     (f"{LOOPS}\n    Loop(accelerator, boards=[1]).fit()", 1)],
)  # fmt: skip
def test_a_field_that_rank_zero_alone_is_given(made: str, lines: int) -> None:
    assert told(made) == lines


@pytest.mark.parametrize(
    ("old", "new"),
    [("    def fit(self):\n", "    def fit(self):\n        self._boards = [1]\n"),  # another value for all
     ("boards=[]", "boards=(1,)"), ("self._boards = boards", "self._boards = boards or [1]")],
)  # fmt: skip
def test_a_field_that_others_may_have(old: str, new: str) -> None:
    assert told(LOOPS) == 0
    assert told(LOOPS, loop=LOOP.replace(old, new)) == 1


def test_both_arms_give_one() -> None:
    assert told(LOOPS, makes=MAKES.replace("boards = []", "boards = [1]")) == 1
