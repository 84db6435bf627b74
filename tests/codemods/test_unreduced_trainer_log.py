from __future__ import annotations

import pytest

from codemods.metrics.unreduced_trainer_log import UnreducedTrainerLog
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch\nfrom transformers import Trainer, TrainingArguments\n\n\n"


def trainer(*lines: str, log: str = "", hook: str = "compute_loss(self, model, inputs, return_outputs=False, **kwargs)") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}class Side(Trainer):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
        f"        self.total, self.steps = 0.0, 0\n\n    def {hook}:\n        outputs = model(**inputs)\n"
        f"        side = outputs['side'].mean()\n{body}        return outputs['loss']\n{log}"
    )


OVERRIDE = "\n    def log(self, logs, *args, **kwargs):\n        {}\n        super().log(logs, *args, **kwargs)\n"


def test_the_example_of_the_documentation() -> None:
    sections = UnreducedTrainerLog.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(UnreducedTrainerLog, before, reason="gather")
    check_nothing(UnreducedTrainerLog, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("self.log({'side': side.item()})",),
        ("self.log({'side': float(side.detach())})",),
        ("numbers = {'side': side.item()}", "self.log(numbers)"),
        ("if self.state.global_step % 10 == 0:", "    self.log({'side': side.item()})"),
    ],
)
def test_a_number_of_the_batch(lines: tuple[str, ...]) -> None:
    assert "rank 0's alone" in check_told(UnreducedTrainerLog, trainer(*lines), reason="gather").message


@pytest.mark.parametrize("added", ["logs['side'] = self.total / self.steps", "logs.update({'side': self.total / self.steps})"])
def test_a_sum_that_log_adds(added: str) -> None:
    source = trainer("self.total += side.item()", "self.steps += 1", log=OVERRIDE.format(added))
    assert "self.total" in check_told(UnreducedTrainerLog, source, reason="gather").message


@pytest.mark.parametrize(
    "lines",
    [
        ("self.log({'side': self.accelerator.gather(side).mean().item()})",),
        ("side = self.accelerator.reduce(side, 'mean')", "self.log({'side': side.item()})"),
        ("self.log({'epoch': self.state.epoch})",),
        ("self.log({'lr': 3.0})",),
        ("print({'side': side.item()})",),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(UnreducedTrainerLog, trainer(*lines))


def test_nothing_of_a_sum_of_what_is_gathered() -> None:
    log = OVERRIDE.format("logs['side'] = self.total / self.steps")
    source = trainer("self.total += self.accelerator.gather(side).mean().item()", "self.steps += 1", log=log)
    check_nothing(UnreducedTrainerLog, source)


def test_nothing_of_what_an_evaluation_logs() -> None:
    check_nothing(UnreducedTrainerLog, trainer("self.log({'side': side.item()})", hook="evaluate(self, model, inputs)"))


def test_nothing_of_a_class_of_another_package() -> None:
    check_nothing(UnreducedTrainerLog, trainer("self.log({'side': side.item()})").replace("from transformers", "from mine"))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(UnreducedTrainerLog, trainer("self.log({'side': side.item()})"), path="tests/test_side.py")


MIXED = """\
import torch
import torch.distributed as dist
from transformers import Trainer


def gathered(value):
    parts = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, value)
    return torch.cat(parts)


class PairTrainer(Trainer):
    def numbers_of(self, model, batch, prefix):
        numbers = {}
        good, bad = model(batch["good"]), model(batch["bad"])
        loss = torch.relu(bad - good).mean()
        margins = good - bad
        margins = gathered(margins)
        numbers[f"{prefix}loss/pairs"] = loss.detach().cpu()
        numbers[f"{prefix}reward/margin"] = margins.mean().cpu()
        return loss, numbers

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, numbers = self.numbers_of(model, inputs, "")
        self.keep(numbers)
        return loss

    def keep(self, numbers):
        for key, value in numbers.items():
            self.kept[key].append(value)

    def log(self, logs, *args):
        for key, values in self.kept.items():
            logs[key] = torch.tensor(values).mean().item()
        return super().log(logs, *args)
"""


def test_an_entry_of_the_rank_beside_one_that_is_gathered() -> None:
    found = check_told(UnreducedTrainerLog, MIXED, reason="gather it before it is logged")
    assert found.span.line == 19 and "beside `margins.mean().cpu()`" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        margins = gathered(margins)\n", ""),
        ("loss.detach().cpu()", "gathered(loss.detach()).mean().cpu()"),
        ("loss/pairs", "rows"),
        ("torch.tensor(values).mean()", "gathered(torch.tensor(values)).mean()"),
        ("append(value)", "append(gathered(value))"),
        ("        return loss, numbers", "        numbers = gathered(numbers)\n        return loss, numbers"),
    ],
)
def test_entries_that_are_all_gathered_or_all_own(old: str, new: str) -> None:
    assert old in MIXED
    check_nothing(UnreducedTrainerLog, MIXED.replace(old, new))


@pytest.mark.parametrize(
    ("pin", "beside", "advice"),
    [
        ("transformers", True, "self.accelerator.gather"),
        ("transformers==4.36.2", True, "self.accelerator.gather"),
        ("transformers>=4.5", False, "self.accelerator.gather"),
        ("transformers==4.20.1", True, "all_reduce"),
        ("transformers==4.5.1", False, "all_reduce"),  # this Trainer logs rank 0's loss, and has no accelerator
    ],
)
def test_what_the_pinned_trainer_has(pin: str, beside: bool, advice: str) -> None:
    source = trainer("self.log({'side': side.item()})")
    finding = check_told(UnreducedTrainerLog, source, reason=advice, files={"requirements.txt": pin})
    assert ("beside the gathered loss" in finding.message) is beside


LOGS = """
    def _maybe_log_save_evaluate(self, tr_loss, model, trial, epoch):
        loss = self.{how}(tr_loss).mean().item() / self.state.global_step
        self.log({{"loss": loss}})
"""


@pytest.mark.parametrize(("how", "beside"), [("_nested_gather", True), ("scaled", False)])
def test_a_trainer_that_logs_the_loss_itself(how: str, beside: bool) -> None:
    found = findings_of(UnreducedTrainerLog, trainer("self.log({'side': side.item()})", log=LOGS.format(how=how)))
    assert [("beside the gathered loss" in f.message) for f in found] == [beside]


def test_nothing_of_the_loss_where_the_pinned_trainer_logs_it_so_itself() -> None:
    log = """
    def _maybe_log_save_evaluate(self, model, inputs):
        self.log({"loss": model(**inputs)["loss"].item()})
"""
    assert findings_of(UnreducedTrainerLog, trainer(log=log))
    check_nothing(UnreducedTrainerLog, trainer(log=log), files={"requirements.txt": "transformers==4.5.1"})
