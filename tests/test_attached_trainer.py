"""A LightningModule has its Trainer from `fit` on: what is called above the Trainer finds rank 0 on every process."""

from __future__ import annotations

import pytest

from codemods.engine.fix_source import with_unsafe
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import MAIN, check_nothing, findings_of, fix

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


OWN = """\
import lightning.pytorch as pl
{imported}

class Net(pl.LightningModule):
    def _note(self):
        {printed}

    {who}
"""
BY_IMPORT = "from lightning.pytorch.utilities import rank_zero_only\n"


@pytest.mark.parametrize(
    ("who", "attached"),
    [
        ("def training_step(self, batch):\n        self._note()", True),
        ("def training_step(self, batch):\n        self._step()\n\n    def _step(self):\n        self._note()", True),
        # nobody says that a Trainer has the module when these are called
        ("def begin(self):\n        self._note()", False),
        ("def training_step(self, batch):\n        self._note()\n\n    def begin(self):\n        self._note()", False),
        ("def training_step(self, batch):\n        run(self._note)\n\n    def begin(self):\n        self._note()", False),
    ],
)
def test_the_rank_of_the_module_is_asked_where_its_trainer_calls(who: str, attached: bool) -> None:
    test = "self.global_rank" if attached else "rank_zero_only.rank"
    guarded = f"if {test} == 0:\n            print('the parts')"
    before = OWN.format(imported="", printed="print('the parts')", who=who)
    after = OWN.format(imported="" if attached else BY_IMPORT, printed=guarded, who=who)
    assert fix(UnguardedPrint, before, accept=with_unsafe).changed[MAIN].decode() == after


def test_a_call_on_the_model_may_stand_above_fit() -> None:
    source = OWN.format(imported="", printed="print('the parts')", who="def training_step(self, batch):\n        self._note()")
    run = "from module import Net\n\n\ndef show(model):\n    model._note()\n\n\nif __name__ == '__main__':\n    show(Net())\n"
    found = findings_of(UnguardedPrint, source, {"run.py": run})
    assert not any("self.global_rank" in repr(f.edits) for f in found)
