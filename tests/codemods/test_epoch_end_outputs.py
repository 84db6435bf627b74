"""DDP804: hooks that were handed the outputs of an epoch."""

from __future__ import annotations

import pytest

from codemods.analysis.trainer.epoch_outputs import NEW_NAMES
from codemods.upgrades.epoch_end_outputs import EpochEndOutputs
from ddpfix.testing import check_nothing, check_told, check_transformed

PINNED = {"requirements.txt": "pytorch-lightning>=2.0\n"}
INIT = "    def __init__(self):\n        super().__init__()\n\n"
STEP = "    def validation_step(self, batch, batch_idx):\n        loss = self(batch)\n        return loss\n\n"
HOOK = "    def validation_epoch_end(self, outputs):\n        print(len(outputs))\n"


def net(*parts: str) -> str:
    return "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n" + "".join(parts)


def test_example_of_the_page() -> None:
    sections = EpochEndOutputs.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(EpochEndOutputs, before, after, files=PINNED, unsafe=True)
    check_transformed(EpochEndOutputs, before, after, unsafe=True)
    check_nothing(EpochEndOutputs, before, files={"requirements.txt": "pytorch-lightning<2\n"})


@pytest.mark.parametrize(("old", "new"), NEW_NAMES.items())
def test_a_hook_that_reads_no_outputs(old: str, new: str) -> None:
    for parameters in ("self, outputs", "self, outputs: list[object]", "self, _", "\n        self,\n        outputs,\n    "):
        before = net(f"    def {old}({parameters}) -> None:\n        self.log('a', self.total, sync_dist=True)\n")
        left = "\n        self,\n    " if "\n" in parameters else "self"
        after = net(f"    def {new}({left}) -> None:\n        self.log('a', self.total, sync_dist=True)\n")
        (finding,) = check_transformed(EpochEndOutputs, before, after, files=PINNED, unsafe=True)
        assert f"nothing else calls {old}" in finding.reason


def test_a_hook_with_a_docstring_and_an_early_return() -> None:
    hook = '    def test_epoch_end(self, outs):\n        """Said."""\n        if not outs:\n            return\n'
    hook += "        print(outs)\n"
    new = (
        '    def on_test_epoch_end(self):\n        """Said."""\n        outs = self.test_step_outputs\n'
        "        self.test_step_outputs = []\n        if not outs:\n            return\n        print(outs)\n"
    )
    step = STEP.replace("validation", "test")
    made = INIT.replace("super().__init__()\n", "super().__init__()\n        self.test_step_outputs = []\n")
    kept = step.replace("        return", "        self.test_step_outputs.append(loss)\n        return")
    check_transformed(EpochEndOutputs, net(INIT, step, hook), net(made, kept, new), files=PINNED, unsafe=True)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (net(INIT, STEP.replace("validation", "training"), HOOK.replace("validation", "training")), "detached values"),
        (net(INIT, HOOK), "has no validation_step"),
        (net(STEP, HOOK), "has no __init__"),
        (net("    def __init__(self):\n        self.a = 1\n\n", STEP, HOOK), "does not call super"),
        (net(INIT, STEP.replace("batch_idx", "batch_idx, dataloader_idx=0"), HOOK), "several loaders"),
        (net(INIT, STEP.replace("return loss", "return {'loss': loss}"), HOOK), "one return of a name"),
        (net(INIT, STEP.replace("loss = ", "if not batch:\n            return None\n        loss = "), HOOK), "one return"),
        (net(INIT, STEP, HOOK, "\n    def validation_step_end(self, out):\n        return out\n"), "validation_step_end returns"),
        (net(INIT, STEP, HOOK, "\n    def on_validation_epoch_end(self):\n        pass\n"), "put both into it"),
        (net(INIT, STEP, HOOK, "\n    def test_step(self, b, i):\n        return self.validation_step(b, i)\n"), "calls it"),
        (net(INIT, STEP, HOOK, "\n    def go(self):\n        self.validation_epoch_end([])\n"), "module.py:16 calls it"),
        (net(INIT, STEP, HOOK.replace("outputs):", "outputs, more=1):")), "are not those of the hook"),
        (net(INIT, STEP, HOOK, "\n\nclass Heir(Net):\n    def validation_step(self, b, i):\n        return b\n"), "an heir has"),
        (
            net(INIT, STEP, HOOK, "\n\nclass Other(Net):\n    def on_validation_epoch_end(self):\n        pass\n"),
            "put both into it",
        ),
    ],
)
def test_refusals(source: str, reason: str) -> None:
    check_told(EpochEndOutputs, source, reason=reason, files=PINNED)


@pytest.mark.parametrize(
    "source",
    [
        net(STEP, "    def on_validation_epoch_end(self):\n        print(1)\n"),
        net(INIT, STEP, HOOK).replace("class Net(pl.LightningModule)", "class Net(pl.Callback)"),
        "import pytorch_lightning as pl\nif pl.__version__ < '2':\n    class Net(pl.LightningModule):\n"
        "        def validation_epoch_end(self, outputs):\n            print(outputs)\n",
    ],
)
def test_nothing_to_say(source: str) -> None:
    check_nothing(EpochEndOutputs, source, files=PINNED)


def test_the_installed_lightning_refuses_the_old_hooks() -> None:
    pl = pytest.importorskip("pytorch_lightning")
    assert not [name for name in NEW_NAMES if hasattr(pl.LightningModule, name)]
    assert all(hasattr(pl.LightningModule, name) for name in NEW_NAMES.values())
