from __future__ import annotations

import pytest

from codemods.trainer.accumulation_scaled_twice import AccumulationScaledTwice
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def program(*lines: str, made: str = "Accelerator(gradient_accumulation_steps=args.every)", call: str = "loss") -> str:
    body = "".join(f"            {line}\n" for line in lines)
    return (
        f"from accelerate import Accelerator, DeepSpeedPlugin\n\n\ndef train(args, model, optimizer, loader):\n"
        f"    accelerator = {made}\n    for x, y in loader:\n        with accelerator.accumulate(model):\n"
        f"            loss = model(x, y)\n{body}            accelerator.backward({call})\n            optimizer.step()\n"
    )


@pytest.mark.parametrize(
    "line",
    ["loss = loss / args.every", "loss /= args.every", "loss = loss / accelerator.gradient_accumulation_steps"],
)
def test_the_division_goes(line: str) -> None:
    check_transformed(AccumulationScaledTwice, program(line), program(), unsafe=True)


def test_the_division_in_the_call_goes() -> None:
    check_transformed(AccumulationScaledTwice, program(call="loss / args.every"), program(), unsafe=True)


def test_the_division_in_a_longer_assignment_goes() -> None:
    before = program("scaled = (loss + 1).mean() / args.every", call="scaled")
    check_transformed(AccumulationScaledTwice, before, program("scaled = (loss + 1).mean()", call="scaled"), unsafe=True)


@pytest.mark.parametrize(
    "made",
    [
        "Accelerator(gradient_accumulation_steps=8)",
        "Accelerator(deepspeed_plugin=DeepSpeedPlugin(gradient_accumulation_steps=8))",
    ],
)
def test_equal_numbers(made: str) -> None:
    check_transformed(AccumulationScaledTwice, program("loss = loss / 8", made=made), program(made=made), unsafe=True)


def test_a_plugin_under_a_name_at_module_level() -> None:
    source = (
        "from accelerate import Accelerator, DeepSpeedPlugin\n\nEVERY = 4\n"
        "plugin = DeepSpeedPlugin(gradient_accumulation_steps=EVERY)\naccelerator = Accelerator(deepspeed_plugin=plugin)\n\n"
        "for x in range(3):\n    loss = model(x).loss / EVERY\n    accelerator.backward(loss)\n"
    )
    check_transformed(AccumulationScaledTwice, source, source.replace(".loss / EVERY", ".loss"), unsafe=True)


def test_told_where_the_division_goes_over_several_lines() -> None:
    source = program("loss = model(", "    x,", "    y,", ") / args.every")
    check_told(AccumulationScaledTwice, source, reason="take the division out")


@pytest.mark.parametrize(
    "made",
    [
        "Accelerator()",
        "Accelerator(gradient_accumulation_steps=1)",
        "Accelerator(gradient_accumulation_steps=args.other)",
        "Accelerator(**args.options)",
        "make(args)",
    ],
)
def test_nothing_where_the_backward_does_not_divide_by_it(made: str) -> None:
    check_nothing(AccumulationScaledTwice, program("loss = loss / args.every", made=made))


def test_nothing_of_a_loss_that_is_divided_by_something_else() -> None:
    check_nothing(AccumulationScaledTwice, program("loss = loss / x.numel()"))


def test_nothing_of_a_division_in_front_of_another_loss() -> None:
    check_nothing(AccumulationScaledTwice, program("loss = loss / args.every", "loss = model(y, x)"))


def test_nothing_of_a_number_that_is_only_shown() -> None:
    check_nothing(AccumulationScaledTwice, program("shown = loss.item() / args.every", "print(shown)"))


def test_nothing_under_a_test_of_the_kind_of_run() -> None:
    lines = ("if accelerator.distributed_type == 'NO':", "    loss = loss / args.every")
    check_nothing(AccumulationScaledTwice, program(*lines))


def test_nothing_of_a_backward_that_divides_nothing() -> None:
    plain = program("loss = loss / args.every").replace("accelerator.backward(loss)", "loss.backward()")
    check_nothing(AccumulationScaledTwice, plain)
    fabric = program("loss = loss / args.every", made="Fabric(every=args.every)").replace("accelerator", "fabric")
    check_nothing(AccumulationScaledTwice, fabric)


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(AccumulationScaledTwice, program("loss = loss / args.every"), path="tests/test_train.py")


@pytest.mark.parametrize("settings", ["every: 1\n", "train:\n  every: 1\n"])
def test_settings_that_make_one_step_of_it(settings: str) -> None:
    source = program("loss = loss / args.every")
    check_nothing(AccumulationScaledTwice, source, files={"config.yaml": settings})
    assert findings_of(AccumulationScaledTwice, source, files={"config.yaml": settings, "big.yaml": "every: 8\n"})


@pytest.mark.parametrize("command", ["python train.py --every 1\n", "python train.py --every=1 \\\n  --seed 2\n"])
@pytest.mark.parametrize("path", ["run.sh", "README.md"])
def test_commands_that_give_one_step_so_far(command: str, path: str) -> None:
    source = program("loss = loss / args.every")
    (found,) = findings_of(AccumulationScaledTwice, source, files={path: command})
    assert found.severity == "risk" and "more than the one step" in found.message and "changes nothing" in found.reason
    (found,) = findings_of(AccumulationScaledTwice, source, files={path: command, "big.sh": "python train.py --every 8\n"})
    assert found.severity == "data" and "more than the one step" not in found.message
    check_nothing(AccumulationScaledTwice, source, files={path: command, "config.yaml": "every: 1\n"})


LIGHTNING = """\
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def __init__(self, net, every=1):
        super().__init__()
        self.net, self.every = net, every

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).mean()
        loss = loss / self.every
        self.log("loss", loss)
        return loss


def main(net, data, config):
    model = Model(net, every=config["every"])
    pl.Trainer(accumulate_grad_batches=config["every"], devices=4).fit(model, data)
"""
DIVISION = "        loss = loss / self.every\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("return loss", 'return {"loss": loss, "rows": 8}'),
        ('accumulate_grad_batches=config["every"]', "accumulate_grad_batches=config.every"),
        ("loss / self.every", "loss / self.trainer.accumulate_grad_batches"),
        ("loss = loss / self.every", "loss /= self.every"),
    ],
)
def test_a_training_step_that_divides_what_lightning_divides(old: str, new: str) -> None:
    before = LIGHTNING.replace(old, new) if old else LIGHTNING
    lines = [line for line in before.splitlines(keepends=True) if not line.strip().startswith(("loss = loss /", "loss /="))]
    check_transformed(AccumulationScaledTwice, before, "".join(lines), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('accumulate_grad_batches=config["every"], ', ""),
        ('accumulate_grad_batches=config["every"]', 'accumulate_grad_batches=config["other"]'),
        ('accumulate_grad_batches=config["every"]', "accumulate_grad_batches=1"),
        ('Model(net, every=config["every"])', "Model(net)"),
        ("super().__init__()", "super().__init__()\n        self.automatic_optimization = False"),
        ("loss = loss / self.every", "shown = loss / self.every"),
        ('config["every"], devices=4', "2, devices=4"),
        ("def main", "def other(net, data):\n    pl.Trainer(devices=4).fit(Model(net), data)\n\n\ndef main"),
    ],
)
def test_a_training_step_whose_division_is_the_only_one(old: str, new: str) -> None:
    assert old in LIGHTNING
    check_nothing(AccumulationScaledTwice, LIGHTNING.replace(old, new))


def test_the_mean_of_two_losses() -> None:
    two = LIGHTNING.replace("/ self.every", "/ 2").replace('accumulate_grad_batches=config["every"]', "accumulate_grad_batches=2")
    check_nothing(AccumulationScaledTwice, two)
