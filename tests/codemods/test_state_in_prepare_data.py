from __future__ import annotations

import pytest

from codemods.data_loading.state_in_prepare_data import StateInPrepareData
from ddpfix.testing import check_nothing, check_told, check_transformed

SETUP = ("def setup(self, stage):", "    self.size = len(self.words)")


def data(*lines: str, init: str = "self.root = root", rest: tuple[str, ...] = SETUP, base: str = "pl.LightningDataModule") -> str:
    parts = ["def __init__(self, root):", f"    {init}", "", "def prepare_data(self):", *(f"    {x}" for x in lines), "", *rest]
    body = "".join(f"    {part}\n" if part else "\n" for part in parts)
    return f"import json\nimport lightning.pytorch as pl\n\nclass Data({base}):\n{body}"


def test_example_of_the_page() -> None:
    sections = StateInPrepareData.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(StateInPrepareData, before, after, unsafe=True)


def test_a_value_that_setup_can_make() -> None:
    line = "self.words = json.load(open(self.root))"
    after = (SETUP[0], f"    {line}", SETUP[1])
    check_transformed(StateInPrepareData, data("get(self.root)", line), data("get(self.root)", line, rest=after), unsafe=True)


def test_two_values_keep_their_order() -> None:
    lines = ("self.words = json.load(open(self.root))", "self.count = len(self.words)")
    rest = ("def setup(self, stage):", "    self.size = self.count + len(self.words)")
    after = (rest[0], *(f"    {line}" for line in lines), rest[1])
    check_transformed(StateInPrepareData, data(*lines, rest=rest), data(*lines, rest=after), unsafe=True)


def test_an_empty_value_of_the_constructor_does_not_help() -> None:
    line = "self.words = json.load(open(self.root))"
    for init in ("self.words = None", "self.words = []", "self.words = {}"):
        after = data(line, init=init, rest=(SETUP[0], f"    {line}", SETUP[1]))
        check_transformed(StateInPrepareData, data(line, init=init), after, unsafe=True)


@pytest.mark.parametrize("base", ["pl.LightningDataModule", "pl.LightningModule"])
def test_local_names_are_told(base: str) -> None:
    source = data("words = get(self.root)", "self.words = words", base=base)
    found = check_told(StateInPrepareData, source, reason="make it in setup")
    assert "module.py:13" in found.message


def test_what_is_told() -> None:
    loader = ("def train_dataloader(self):", "    return load(self.words)")
    check_told(StateInPrepareData, data("self.words = get(self.root)", rest=loader), reason="make it in setup")
    check_told(StateInPrepareData, data("if self.root:", "    self.words = get(self.root)"), reason="make it in setup")


def test_a_base_class_that_reads_it() -> None:
    base = (
        "import lightning.pytorch as pl\n\n"
        "class Base(pl.LightningDataModule):\n    def val_dataloader(self):\n        return self.words\n"
    )
    source = data("self.words = get(self.root)", rest=("x = 1",), base="Base").replace("import json", "from base import Base")
    check_told(StateInPrepareData, source, files={"base.py": base}, reason="make it in setup")


@pytest.mark.parametrize(
    "source",
    [
        data("words = get(self.root)", "save(words)"),
        data("self.words = get(self.root)", "save(self.words)", rest=("x = 1",)),
        data("self.words = get(self.root)", init="self.words = root"),
        data("self.words = get(self.root)", rest=("def setup(self, stage):", "    self.words = get(1)", "    use(self.words)")),
        data("self.words = get(self.root)", rest=("words = ()", *SETUP)),
        data("self.words = get(self.root)", rest=("def words(self):", "    return 1", "", *SETUP)),
        data("self.words = None"),
        data("self.words = get(1)", rest=("def setup(self, stage):", "    if hasattr(self, 'words'):", "        f(self.words)")),
        data("self.words = get(1)", rest=("def setup(self, stage):", "    try:", "        use(self.words)", "    finally: pass")),
        data("self.words = get(1)", base="Other"),
        data("other.words = get(1)"),
        data("self.words = get(1)") + "\ntrainer = pl.Trainer(devices=1)\n",
        data("self.words = get(1)") + "\nData(1).prepare_data()\n",
        data("self.words = get(1)", rest=("def setup(self, stage):", "    self.prepare_data()", "    use(self.words)")),
        data("def f(self):", "    self.words = 1"),
    ],
)
def test_what_is_fine(source: str) -> None:
    check_nothing(StateInPrepareData, source)


def test_a_repositorys_own_tests() -> None:
    check_nothing(StateInPrepareData, data("self.words = get(self.root)"), path="tests/test_a.py")


@pytest.mark.parametrize(("pin", "told"), [("==0.7.5", False), ("<0.8", False), ("==0.8.1", True), (">=0.7", True), ("", True)])
def test_a_fit_that_prepares_the_data_before_it_starts_processes(pin: str, *, told: bool) -> None:
    source = data("words = get(self.root)", "self.words = words").replace("lightning.pytorch", "pytorch_lightning")
    files = {"requirements.txt": f"pytorch-lightning{pin}\n"}
    if told:
        check_told(StateInPrepareData, source, reason="make it in setup", files=files)
    else:
        check_nothing(StateInPrepareData, source, files=files)
