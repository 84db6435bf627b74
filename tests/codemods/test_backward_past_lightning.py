from __future__ import annotations

import pytest

from codemods.checkpoints.backward_past_lightning import BackwardPastLightning
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

SOURCE = """import lightning.pytorch as pl
import torch


class Painter(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.automatic_optimization = False
        self.net = net

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.net(batch).mean()
        BACKWARD
        optimizer.step()
"""


def step(*lines: str) -> str:
    return SOURCE.replace("BACKWARD", "\n        ".join(lines))


def test_example_of_the_page() -> None:
    sections = BackwardPastLightning.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(BackwardPastLightning, before, after, unsafe=True)


def test_arguments_go_along() -> None:
    before, after = step("loss.backward(retain_graph=True)"), step("self.manual_backward(loss, retain_graph=True)")
    check_transformed(BackwardPastLightning, before, after, unsafe=True)


def test_a_sum_of_losses_in_a_method_that_the_step_calls() -> None:
    before = step("(loss + self.net.penalty()).backward()").replace(
        "training_step(self, batch, batch_idx)", "take_step(self, batch)"
    )
    after = before.replace("(loss + self.net.penalty()).backward()", "self.manual_backward(loss + self.net.penalty())")
    check_transformed(BackwardPastLightning, before, after, unsafe=True)


def test_a_flag_of_the_class() -> None:
    source = (
        step("loss.backward()")
        .replace("        self.automatic_optimization = False\n", "")
        .replace("    def __init__", "    automatic_optimization = False\n\n    def __init__")
    )
    assert findings_of(BackwardPastLightning, source)


def test_several_values_at_once_are_told() -> None:
    check_told(BackwardPastLightning, step("torch.autograd.backward((loss, batch), grads)"), reason="make one loss of it")


def test_the_trainer_is_shown() -> None:
    files = {"main.py": "import lightning.pytorch as pl\n\ntrainer = pl.Trainer(devices=4, strategy='ddp')\n"}
    (found,) = findings_of(BackwardPastLightning, step("loss.backward()"), files=files)
    assert [e.path for e in found.evidence] == ["module.py", "main.py"]


@pytest.mark.parametrize(
    "lines",
    [
        ("self.manual_backward(loss)",),
        ("loss.backward()", "batch = batch + batch.grad.sign()"),
        ("loss.backward()", "dist.all_reduce(self.net.weight.grad)"),
    ],
)
def test_passes_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(BackwardPastLightning, step(*lines))


def test_classes_that_leave_the_steps_to_lightning() -> None:
    source = step("loss.backward()")
    check_nothing(BackwardPastLightning, source.replace("automatic_optimization = False", "automatic_optimization = True"))
    check_nothing(BackwardPastLightning, source.replace("optimization = False", "optimization = net.is_plain"))
    check_nothing(BackwardPastLightning, source.replace("(pl.LightningModule)", "(torch.nn.Module)"))


@pytest.mark.parametrize("name", ["backward", "validation_step", "test_step", "predict_step", "evaluate_once"])
def test_methods_that_train_nothing_or_are_called_by_lightning(name: str) -> None:
    check_nothing(BackwardPastLightning, step("loss.backward()").replace("training_step", name))


def test_one_device() -> None:
    files = {"main.py": "import lightning.pytorch as pl\n\ntrainer = pl.Trainer(devices=1)\n"}
    check_nothing(BackwardPastLightning, step("loss.backward()"), files=files)


def test_the_tests_of_a_repository() -> None:
    check_nothing(BackwardPastLightning, step("loss.backward()"), path="tests/test_a.py")
