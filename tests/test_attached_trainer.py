"""A LightningModule has its Trainer from `fit` on: what is called above the Trainer finds rank 0 on every process."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

NET = """\
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def parts(self):
        print("the parts")
        return [1]
"""
DATA = "def loaders(model):\n    return model.parts()\n"
RUN = """\
import lightning.pytorch as pl
from data import loaders
from module import Net


def main():
    model = Net()
    {above}
    trainer = pl.Trainer(devices=4)
    {below}
    trainer.fit(model)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("above", "below", "told"), [
    ("loaders(model)", "pass", False),
    ("pass", "loaders(model)", True),
    ("loaders(model)", "loaders(model)", True),
])  # fmt: skip
def test_a_method_that_a_function_above_the_trainer_calls(above: str, below: str, told: bool) -> None:
    files = {"data.py": DATA, "run.py": RUN.format(above=above, below=below)}
    if told:
        assert findings_of(UnguardedPrint, NET, files)
    else:
        check_nothing(UnguardedPrint, NET, files=files)
