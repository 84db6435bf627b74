"""Hooks that no Trainer of several ranks calls: of a module inside another, and of tests on one device."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.unrun_hooks import is_in_unrun_hook, is_in_untested_hook
from codemods.engine.find import find_in
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of, project_of

NET = """\
import lightning.pytorch as pl


class Coder(pl.LightningModule):
    def validation_step(self, batch, i):
        self.log("val/loss", self.loss(batch), on_epoch=True)

    def test_step(self, batch, i):
        self.log("test/loss", self.loss(batch), on_epoch=True)
"""
TRAIN = """\
import lightning.pytorch as pl
from nets import Coder


def main():
    trainer = pl.Trainer(devices=4, strategy="ddp")
    trainer.fit(Coder())


if __name__ == "__main__":
    main()
"""
TEST = """\
import lightning.pytorch as pl
from nets import Coder


def main():
    trainer = pl.Trainer(devices=DEVICES)
    trainer.test(Coder())


if __name__ == "__main__":
    main()
"""
PART = "model:\n  target: nets.Painter\n  params:\n    coder:\n      target: nets.Coder\n"
PAINTER = (
    "\n\nclass Painter(pl.LightningModule):\n    def training_step(self, batch, i):\n        return self.coder(batch).mean()\n"
)


def lines(files: dict[str, str], source: str = NET) -> list[int]:
    project = project_of(source, files, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    return [f.span.line for f in find_in(module, project, [UnsyncedMetric()])]


def test_both_hooks_of_a_module_that_is_trained_and_tested_on_several() -> None:
    assert lines({"train.py": TRAIN, "test.py": TEST.replace("DEVICES", "4")}) == [6, 9]


def test_a_test_on_one_device() -> None:
    assert lines({"train.py": TRAIN, "evaluate.py": TEST.replace("DEVICES", "1")}) == [6]


def test_one_of_two_tests_has_several_devices() -> None:
    several = {"one.py": TEST.replace("DEVICES", "1"), "two.py": TEST.replace("DEVICES", "2")}
    assert lines({"train.py": TRAIN, **several}) == [6, 9]


@pytest.mark.parametrize(("settings", "found"), [(PART, []), (PART + "other:\n  target: nets.Coder\n", [6, 9])])
def test_a_module_that_settings_describe_as_a_part(settings: str, found: list[int]) -> None:
    train = "import lightning.pytorch as pl\nfrom tools import made\n\npl.Trainer(devices=4).fit(made('conf.yaml'))\n"
    assert lines({"train.py": train, "conf.yaml": settings}, NET + PAINTER) == found


@pytest.mark.parametrize(
    ("path", "named", "found"),
    [
        ("nets.py", "nets.Coder", [6, 9]),
        ("own/nets.py", "own.Coder", [6, 9]),  # handed on by `own/__init__.py`
        ("own/early/nets.py", "own.nets.Coder", []),  # that file is gone
        ("own/early/nets.py", "Coder", [6, 9]),
    ],
)
def test_a_module_that_settings_name_in_another_file(path: str, named: str, found: list[int]) -> None:
    train = "import lightning.pytorch as pl\nfrom tools import made\n\n\nif __name__ == '__main__':\n"
    train += "    pl.Trainer(devices=4).fit(made('conf.yaml'))\n"
    project = project_of(NET, {"train.py": train, "conf.yaml": f"model:\n  _target_: {named}\n"}, path=path)
    module = project.module(path)
    assert module is not None
    assert [f.span.line for f in find_in(module, project, [UnsyncedMetric()])] == found


PREDICTING = NET + '\n    def predict_step(self, batch, i):\n        print("one more batch")\n        return self(batch)\n'


def printed(files: dict[str, str]) -> list[int]:
    project = project_of(PREDICTING, files, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    return [f.span.line for f in find_in(module, project, [UnguardedPrint()])]


@pytest.mark.parametrize(
    "more",
    [
        {"predict.py": TEST.replace("DEVICES", "4").replace(".test(", ".predict(")},
        {"look.ipynb": '{"cells": [{"cell_type": "code", "metadata": {}, "source": ["trainer.predict(net)"]}], "nbformat": 4}'},
        {"README.md": "Then call `trainer.predict(Coder())`.\n"},
        {"setup.py": "import setuptools\n"},  # a package: others predict with it
    ],
)
def test_a_prediction_that_somebody_asks_for(more: dict[str, str]) -> None:
    assert printed({"train.py": TRAIN, **more}) == [12]


def test_a_prediction_of_jobs_that_have_one_gpu() -> None:
    asks = TEST.replace("DEVICES", "-1").replace(".test(", ".predict(")
    job = "#SBATCH --ntasks=1\n#SBATCH --gres=gpu:1\nsrun python predict.py\n"
    files = {"train.py": TRAIN, "predict.py": asks}
    assert printed({**files, "job.sh": job}) == []
    assert printed({**files, "job.sh": job.replace("=1", "=4").replace(":1", ":4")}) == [12]
    assert printed({**files, "job.sh": job, "README.md": "Or `trainer.predict(Coder())`.\n"}) == [12]


def test_a_prediction_that_nobody_asks_for() -> None:
    assert printed({"train.py": TRAIN}) == []
    assert printed({"train.py": TRAIN + "\n\ntree.predict(rows)\n"}) == []


LOADED = """\
import lightning.pytorch as pl


class Coder(pl.LightningModule):
    def load_state_dict(self, state, strict=False):
        print("the weights are read")
        return super().load_state_dict(state, strict=strict)
"""


def test_weights_that_are_read_without_a_trainer() -> None:
    assert findings_of(UnguardedPrint, LOADED)
    check_nothing(
        UnguardedPrint, LOADED, files={"more.py": "from module import Coder\n\nnet = Coder.load_from_checkpoint(path)\n"}
    )


OLD_HOOK = NET + '\n    def on_epoch_start(self):\n        self.state = self.build()\n        print("one more epoch")\n'
OLD_HOOK = OLD_HOOK.replace("lightning.pytorch", "pytorch_lightning")


@pytest.mark.parametrize(("pin", "found"), [("==1.6.2", 1), (">=2.0", 0), ("", 0)])
def test_a_hook_that_lightning_calls_no_more(pin: str, found: int) -> None:
    files = {"train.py": TRAIN.replace("lightning.pytorch", "pytorch_lightning"), "requirements.txt": f"pytorch-lightning{pin}\n"}
    project = project_of(OLD_HOOK, files, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    assert len(find_in(module, project, [UnguardedPrint()])) == found


ASKED = "from nets import Coder\n\nnet = Coder.load_from_checkpoint('a.ckpt')\nprint(net(rows))\n"
FIT = "import lightning.pytorch as pl\nfrom nets import Coder\n\npl.Trainer(devices=4).fit(Coder())\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, 0),
        ({"tune.py": "from transformers import Trainer\n\nTrainer(model).train()\n"}, 0),
        ({"train.py": FIT}, 2),
        ({"train.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "about": "pytorch_lightning.Trainer"}'}, 2),
        ({"conf/main.yaml": "trainer:\n  _target_: pytorch_lightning.Trainer\n"}, 2),
        ({"README.md": "Give `nets.Coder` to the Trainer of Lightning.\n"}, 2),
        ({"setup.py": "import setuptools\n"}, 2),  # others train it
    ],
)
def test_a_module_that_is_only_loaded(files: dict[str, str], found: int) -> None:
    assert len(lines({"ask.py": ASKED, **files})) == found


TESTING = NET + '        print("a batch of the tests")\n'
COMMENTED = TRAIN.replace("    trainer.fit(Coder())\n", "    trainer.fit(Coder())\n    # trainer.test(Coder())\n")


def levels(files: dict[str, str]) -> list[tuple[int, str]]:
    project = project_of(TESTING, files, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    found = find_in(module, project, [UnsyncedMetric(), UnguardedPrint()])
    return [(f.span.line, f.applicability.value) for f in found]


def test_a_hook_of_tests_that_nobody_asks_for() -> None:
    for files in ({"train.py": TRAIN}, {"train.py": COMMENTED}):
        assert levels(files) == [(6, "safe"), (9, "unsafe")]
    packaged = {"train.py": TRAIN, "setup.py": "import setuptools\n", "tools.py": "from nets import Coder\n"}
    assert levels(packaged) == [(6, "safe"), (9, "unsafe"), (10, "unsafe")]


@pytest.mark.parametrize(
    "more",
    [
        {"test.py": TEST.replace("DEVICES", "4")},
        {"README.md": "Then call `trainer.test(Coder())`.\n"},
        {"tools.py": "def run(runner):\n    runner.test(1)  # a Trainer\n"},
        {"cli.py": "from lightning.pytorch.cli import LightningCLI\n\nLightningCLI(run='Trainer')\n"},
    ],
)
def test_a_hook_of_tests_that_somebody_asks_for(more: dict[str, str]) -> None:
    assert levels({"train.py": TRAIN, **more}) == [(6, "safe"), (9, "safe"), (10, "safe")]


HELPED = """\
import lightning.pytorch as pl


class Scores(pl.Callback):
    def __init__(self):
        self.rows = []

    def {hook}(self, trainer, module, outputs, batch, i, loader=0):
        self.rows.append(outputs)
        {call}

    def _keep(self):
        self._write()

    def _write(self):
        write(self.rows)
"""
KEPT = HELPED.format(hook="on_test_batch_end", call="self._keep()")


@pytest.mark.parametrize(
    ("source", "more", "left"),
    [
        (KEPT, {}, True),
        (HELPED.format(hook="on_train_batch_end", call="self._keep()"), {}, False),
        (KEPT.replace("        self.rows = []\n", "        self.rows = []\n        self._keep()\n"), {}, False),
        (HELPED.format(hook="on_test_batch_end", call="run(self._keep)"), {}, False),  # handed on
        (HELPED.format(hook="on_test_batch_end", call="pass"), {}, False),  # nobody calls it
        (KEPT, {"late.py": "from rows import Scores\n\n\ndef late(scores: Scores):\n    scores._keep()\n"}, False),
        (KEPT + "\n    def on_train_epoch_end(self, trainer, module):\n        self._write()\n", {}, False),
        (KEPT, {"test.py": TEST.replace("DEVICES", "4")}, False),
        (KEPT.replace("pl.Callback", "object"), {}, False),
    ],
)
def test_a_method_that_hooks_of_tests_alone_call(source: str, more: dict[str, str], left: bool) -> None:
    project = project_of(source, {"train.py": TRAIN, **more}, path="rows.py")
    module = project.module("rows.py")
    assert module is not None
    (write,) = module.calls_named("write")
    assert is_in_untested_hook(project, module, write.lineno) is left


def test_a_hook_of_tests_that_one_of_another_stage_calls() -> None:
    shared = "\n    def on_{}_batch_end(self, *given):\n        self.on_test_batch_end(*given)\n"
    for stage, left in (("validation", False), ("test", True)):
        source = KEPT + (shared.format(stage) if stage != "test" else "")
        project = project_of(source, {"train.py": TRAIN}, path="rows.py")
        module = project.module("rows.py")
        assert module is not None
        assert is_in_untested_hook(project, module, 9) is left


def test_a_method_that_hooks_of_predictions_alone_call() -> None:
    source = HELPED.format(hook="on_predict_batch_end", call="self._keep()")
    project = project_of(source, {"train.py": TRAIN}, path="rows.py")
    module = project.module("rows.py")
    assert module is not None
    (write,) = module.calls_named("write")
    assert is_in_unrun_hook(project, module, write.lineno)
    asked = project_of(source, {"train.py": TRAIN, "README.md": "Then call `trainer.predict(net)`.\n"}, path="rows.py")
    module = asked.module("rows.py")
    assert module is not None and not is_in_unrun_hook(asked, module, write.lineno)


STAGES = """\
import lightning.pytorch as pl


class Rows(pl.LightningDataModule):
    def setup(self, stage=None):
        if stage == "fit" or stage is None:
            print("read the rows of training")
        if {test}:
            print("read the others")
"""


@pytest.mark.parametrize(
    ("test", "more", "left"),
    [
        ("stage == 'validate' or stage is None", {}, True),
        ("stage in ('validate', 'test')", {}, True),
        ("stage == 'predict'", {}, True),
        ("stage == 'validate'", {"more.py": "def go(trainer):\n    trainer.validate(build())  # a Trainer\n"}, False),
        ("stage == 'validate' or stage is None", {"more.py": "rows.setup()\n"}, False),
        ("stage == 'validate'", {"more.py": "for stage in STAGES:\n    rows.setup(stage)\n"}, False),
        ("stage == 'validate'", {"more.py": "class Net:\n    def setup(self, stage):\n        self.rows.setup(stage)\n"}, True),
        ("stage in ('fit', 'validate')", {}, False),
        ("stage == 'validate' or self.all", {}, False),
        ("stage != 'fit'", {}, False),
    ],
)
def test_a_stage_that_nobody_asks_for(test: str, more: dict[str, str], left: bool) -> None:
    project = project_of(STAGES.format(test=test), {"train.py": TRAIN, **more}, path="rows.py")
    module = project.module("rows.py")
    assert module is not None
    assert is_in_untested_hook(project, module, 9) is left
    assert not is_in_untested_hook(project, module, 7)


# Writers of predictions

WRITER = """\
import torch
from lightning.pytorch.callbacks import BasePredictionWriter


class Out(BasePredictionWriter):
    def __init__(self, folder, interval="batch"):
        super().__init__(interval)
        self.folder = folder

    def write_on_batch_end(self, trainer, module, prediction, indices, batch, i, loader):
        torch.save(prediction, f"{self.folder}/{i}.pt")

    def write_on_epoch_end(self, trainer, module, predictions, indices):
        torch.save(predictions, f"{self.folder}/all.pt")
"""
PREDICT = """\
import lightning.pytorch as pl
from nets import Out


def main(model):
    trainer = pl.Trainer(devices=4, strategy="ddp", callbacks=[MADE])
    trainer.fit(model)
    trainer.predict(model)


if __name__ == "__main__":
    main(1)
"""


def unrun(made: str, writer: str = WRITER, files: dict[str, str] | None = None) -> list[str]:
    project = project_of(writer, {"predict.py": PREDICT.replace("MADE", made), **(files or {})}, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    hooks = [f for f in module.functions if f.name.startswith("write_")]
    return [f.name for f in hooks if is_in_unrun_hook(project, module, f.lineno + 1)]


@pytest.mark.parametrize(
    ("made", "writer"),
    [
        ("Out('a')", WRITER),
        ("Out('a', interval='batch')", WRITER.replace('interval="batch"', "interval")),
        ("Out('a', 'batch')", WRITER),
        ("Out('a')", WRITER.replace("super().__init__(interval)", "super().__init__(write_interval='batch')")),
        ("Out(folder='a', interval='batch')", WRITER.replace("folder, interval", "*, folder, interval")),
        ("Out()", WRITER.replace('    def __init__(self, folder, interval="batch"):\n        super().__init__(interval)\n'
                                 "        self.folder = folder\n\n", "    folder = 'a'\n\n")),
    ],
)  # fmt: skip
def test_a_writer_by_batches_is_not_called_at_the_end(made: str, writer: str) -> None:
    assert unrun(made, writer) == ["write_on_epoch_end"]


def test_a_writer_at_the_end_is_not_called_by_batches() -> None:
    assert unrun("Out('a', 'epoch')", WRITER.replace('interval="batch"', "interval")) == ["write_on_batch_end"]


@pytest.mark.parametrize(
    ("made", "writer", "files"),
    [
        ("Out('a', 'batch_and_epoch')", WRITER, {}),
        ("Out('a', 'epoch')", WRITER, {}),  # the default asks for batches, this one for the end
        ("Out('a', when())", WRITER, {}),
        ("Out('a', **options)", WRITER, {}),
        ("make(Out)", WRITER, {}),
        ("Out('a')", WRITER, {"conf.yaml": "callback:\n  _target_: nets.Out\n  interval: epoch\n"}),
        ("Out('a')", WRITER, {"more.py": "from nets import Out\n\ndef late():\n    return Out('b', interval='epoch')\n"}),
        ("Out('a')", WRITER.replace("        super()", "        interval = pick(interval)\n        super()"), {}),
        ("Out('a')", WRITER.replace("super().__init__(interval)", "self.interval = interval"), {}),
        ("[]", WRITER, {}),
        ("Mine('a')", WRITER, {"mine.py": "from nets import Out\n\nclass Mine(Out):\n    def __init__(self, at):\n"
                                          "        super().__init__(at, 'epoch')\n"}),
    ],
)  # fmt: skip
def test_a_writer_whose_interval_may_be_another(made: str, writer: str, files: dict[str, str]) -> None:
    assert unrun(made, writer, files) == []


def test_a_writer_of_predictions_that_nobody_asks_for() -> None:
    project = project_of(WRITER, {"predict.py": PREDICT.replace("    trainer.predict(model)\n", "")}, path="nets.py")
    module = project.module("nets.py")
    assert module is not None and all(is_in_unrun_hook(project, module, line) for line in (11, 14))
