"""A test of `self.accelerator` stands only where that field has a value: else the guard ends the program."""

from __future__ import annotations

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed

HEAD = "from accelerate import Accelerator\nfrom tqdm import tqdm\n\n\nclass Run:\n"
SETUP = "    def setup(self):\n        self.accelerator = Accelerator()\n\n"
FIT = "    def fit(self, rows):\n        self.setup()\n        self.model = self.accelerator.prepare(self.model)\n\n"
BAR = "        for row in tqdm(rows):\n            self.keep(row)\n"
GUARDED = BAR.replace("(rows)", "(rows, disable=not self.accelerator.is_main_process)")


@pytest.mark.parametrize(
    "constructor",
    [
        "    accelerator: Accelerator\n\n",
        "    def __init__(self, model):\n        self.model = model\n        self.accelerator: Accelerator\n\n",
        "    def __init__(self, model):\n        self.model, self.accelerator = model, None\n\n",
        "    def __init__(self, model):\n        self.accelerator = None\n        self.model = model\n\n",
        "    def __init__(self, model, train=True):\n        if train:\n            self.setup()\n        self.model = model\n\n",
    ],
)
def test_a_field_that_another_method_sets_is_not_asked(constructor: str) -> None:
    check_nothing(ProgressBarOnEveryRank, f"{HEAD}{constructor}{SETUP}{FIT}    def store(self, rows):\n{BAR}")


def test_nor_one_that_a_test_in_another_branch_asks() -> None:
    source = (
        f"{HEAD}    accelerator: Accelerator\n\n{SETUP}{FIT}    def tell(self, training):\n        if training:\n"
        "            if self.accelerator.is_main_process:\n                print('training')\n"
        "        else:\n            print('done')\n"
    )
    check_nothing(UnguardedPrint, source)


def test_nor_one_that_only_some_callers_have_set() -> None:
    calls = FIT.replace("\n\n", "\n        self.store(rows)\n\n") + "    def cache(self, rows):\n        self.store(rows)\n\n"
    check_nothing(ProgressBarOnEveryRank, f"{HEAD}{SETUP}{calls}    def store(self, rows):\n{BAR}")


def test_nor_one_that_is_only_set_below() -> None:
    source = f"{HEAD}{SETUP}    def fit(self, rows):\n{BAR}        self.setup()\n        self.accelerator.prepare(rows)\n"
    check_nothing(ProgressBarOnEveryRank, source)


@pytest.mark.parametrize(
    "before",
    [
        "    def __init__(self):\n        self.accelerator = Accelerator()\n\n    def store(self, rows):\n",
        "    def __init__(self):\n        self.setup()\n\n" + SETUP + "    def store(self, rows):\n",
        "    accelerator = Accelerator()\n\n" + SETUP + "    def store(self, rows):\n",
        SETUP + "    def store(self, rows):\n        self.setup()\n",
        SETUP + "    def store(self, rows):\n        rows = self.accelerator.prepare(rows)\n",
        FIT.replace("\n\n", "\n        self.store(rows)\n\n") + SETUP + "    def store(self, rows):\n",
        "    def __init__(self, fast):\n        if fast:\n            self.accelerator = Accelerator(mixed_precision='bf16')\n"
        "        else:\n            self.accelerator = Accelerator()\n\n    def store(self, rows):\n",
    ],
)
def test_one_that_is_set_on_every_way_is_asked(before: str) -> None:
    check_transformed(ProgressBarOnEveryRank, f"{HEAD}{before}{BAR}", f"{HEAD}{before}{GUARDED}")


def test_one_that_the_method_asks_below_in_any_case() -> None:
    tail = "        rows = self.accelerator.gather(rows)\n"
    head = f"{HEAD}{SETUP}    def store(self, rows):\n"
    loop = "        for row in tqdm(rows):\n            pass\n"
    after = loop.replace("(rows)", "(rows, disable=not self.accelerator.is_main_process)")
    check_transformed(ProgressBarOnEveryRank, head + loop + tail, head + after + tail)


def test_one_that_an_ancestor_sets_in_its_constructor() -> None:
    base = HEAD.replace("Run", "Base") + "    def __init__(self):\n        self.accelerator = Accelerator()\n\n\n"
    own = "class Run(Base):\n    def __init__(self):\n        super().__init__()\n        self.rows = 0\n\n"
    source = f"{base}{own}    def again(self):\n        self.accelerator = Accelerator()\n\n    def store(self, rows):\n"
    check_transformed(ProgressBarOnEveryRank, source + BAR, source + GUARDED)
    alone = source.replace("        super().__init__()\n", "")
    check_nothing(ProgressBarOnEveryRank, alone + BAR)
