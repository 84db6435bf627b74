"""Lines left over from looking for an error are taken out by a person, not guarded."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.output.debug_lines import of_debugging
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed

HEAD = """\
import lightning.pytorch as pl

class Model(pl.LightningModule):
    def on_train_epoch_start(self):
        self.schedule.advance(self.current_epoch)
        """


@pytest.mark.parametrize(
    "line",
    [
        "print(x.shape)",
        'print("x", x.shape, y.size(0))',
        'print(f"images: {images.shape[1:]} of {type(images)}")',
        'print("HEREEE")',
        'print("XXX1")',
        "for each in self.parts:\n    print(each.dtype)",
    ],
)
def test_left_over(line: str) -> None:
    assert of_debugging(ast.parse(line).body)
    check_nothing(UnguardedPrint, HEAD + line.replace("\n", "\n        ") + "\n")


@pytest.mark.parametrize(
    "line",
    [
        'print("epoch", self.current_epoch)',
        'print("=" * 40)',
        'print("----")',
        'print("STAGE TWO")',
        "print(len(self.data), x.shape)",
        'print("now it begins")',
        'print(x.shape, f"loss {self.loss}")',
        "print()",
    ],
)
def test_what_tells_something(line: str) -> None:
    assert not of_debugging(ast.parse(line).body)


def test_a_line_that_tells_something_beside_one_that_does_not() -> None:
    lines = ("print(type(self.current_epoch))", "print('begins', self.current_epoch)")
    after = HEAD + "\n        ".join(line.replace("print", "self.print", 1) for line in lines) + "\n"
    check_transformed(UnguardedPrint, HEAD + "\n        ".join(lines) + "\n", after)
