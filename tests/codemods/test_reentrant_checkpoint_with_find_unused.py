"""DDP004: the reentrant kind of checkpointing under the flag, and every refusal."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.flags.reentrant_checkpoint_with_find_unused import ReentrantCheckpointWithFindUnused as Rule
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

NET = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Net(nn.Module):
    def __init__(self, again=True):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.again = again

    def forward(self, x):
        return {}
"""
TRAIN = """\
from torch.nn.parallel import DistributedDataParallel as DDP
from net import Net

model = DDP(Net(), {})
model(1).sum().backward()
"""
ON = "find_unused_parameters=True"
MODERN = "torch>=2.2\n"


def net(call: str) -> str:
    return NET.replace("return {}", f"return {call}")


def files(flag: str = ON, pin: str = MODERN) -> dict[str, str]:
    return {"train.py": TRAIN.replace("{}", flag), "requirements.txt": pin}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("checkpoint(self.body, self.stem(x), use_reentrant=True)", "checkpoint(self.body, self.stem(x), use_reentrant=False)"),
        ("checkpoint(self.body, self.stem(x))", "checkpoint(self.body, self.stem(x), use_reentrant=False)"),
        (
            "checkpoint_sequential(self.body, 2, self.stem(x))",
            "checkpoint_sequential(self.body, 2, self.stem(x), use_reentrant=False)",
        ),
        (
            "torch.utils.checkpoint.checkpoint(self.body, self.stem(x), use_reentrant=True)",
            "torch.utils.checkpoint.checkpoint(self.body, self.stem(x), use_reentrant=False)",
        ),
    ],
)
def test_the_other_kind_is_written(before: str, after: str) -> None:
    (found,) = check_transformed(Rule, net(before), net(after), files=files(), path="net.py")
    assert "train.py:4" in found.message and "ready twice" in found.message


def test_what_is_written_shows_the_version_and_the_default_does_not() -> None:
    written = net("checkpoint(self.body, self.stem(x), use_reentrant=True)")
    assert findings_of(Rule, written, files(pin=""), path="net.py")[0].applicability is Applicability.SAFE
    (found,) = findings_of(Rule, net("checkpoint(self.body, self.stem(x))"), files(pin=""), path="net.py")
    assert found.applicability is Applicability.UNSAFE and "torch is 1.11 or newer" in found.reason


def test_checkpointing_by_a_setting_counts() -> None:
    source = net("self.body(self.stem(x))").replace(
        "        return self.body",
        "        if self.again and self.training:\n"
        "            return checkpoint(self.body, self.stem(x), use_reentrant=True)\n"
        "        return self.body",
    )
    check_transformed(Rule, source, source.replace("reentrant=True", "reentrant=False"), files=files(), path="net.py")


def test_a_flag_in_one_arm_is_unsafe() -> None:
    source = net("checkpoint(self.body, self.stem(x), use_reentrant=True)")
    (found,) = findings_of(Rule, source, files("find_unused_parameters=True if big else False"), path="net.py")
    assert found.applicability is Applicability.UNSAFE and "arm" in found.reason


def test_on_by_default_is_unsafe() -> None:
    train = """\
    from transformers import Trainer, TrainingArguments
    from net import Net

    trainer = Trainer(Net(), TrainingArguments("o"))
    trainer.train()
    """
    source = net("checkpoint(self.body, self.stem(x), use_reentrant=True)")
    (found,) = findings_of(Rule, source, {"train.py": train}, path="net.py")
    assert found.applicability is Applicability.UNSAFE and "default" in found.reason


def test_the_arguments_of_the_hugging_face_trainer() -> None:
    source = """\
    from transformers import TrainingArguments

    arguments = TrainingArguments(
        "o",
        ddp_find_unused_parameters=True,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": True},
    )
    """
    check_transformed(Rule, source, source.replace('"use_reentrant": True', '"use_reentrant": False'))
    check_nothing(Rule, source.replace("gradient_checkpointing=True", "gradient_checkpointing=False"))
    check_nothing(Rule, source.replace("parameters=True", "parameters=False"))
    check_nothing(Rule, source.replace('"use_reentrant": True', '"use_reentrant": False'))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("checkpoint(self.body, self.stem(x), use_reentrant=self.again)", "decides the kind"),
        ("checkpoint(self.body, self.stem(x), **options)", "decides the kind"),
    ],
)
def test_told(call: str, reason: str) -> None:
    check_told(Rule, net(call), files=files(), path="net.py", reason=reason)


def test_a_torch_without_the_other_kind_is_told() -> None:
    source = net("checkpoint(self.body, self.stem(x))")
    check_told(Rule, source, files=files(pin="torch==1.8.1\n"), path="net.py", reason="knows no other kind")


@pytest.mark.parametrize("flag", ["", "find_unused_parameters=False", f"{ON}, static_graph=True", "find_unused_parameters=a.b"])
def test_without_the_flag_there_is_nothing_to_say(flag: str) -> None:
    source = net("checkpoint(self.body, self.stem(x), use_reentrant=True)")
    check_nothing(Rule, source, files=files(flag), path="net.py")


@pytest.mark.parametrize(
    "source",
    [
        net("checkpoint(self.body, self.stem(x), use_reentrant=False)"),
        net("checkpoint(self.body, self.stem(x))").replace("torch.utils.checkpoint import", "fairscale.nn import"),
        net("self.stem(x)") + "\n    def other(self, x):\n        return checkpoint(self.body, x, use_reentrant=True)\n",
    ],
)
def test_another_kind_another_library_and_another_way(source: str) -> None:
    check_nothing(Rule, source, files=files(), path="net.py")


def test_a_part_that_is_given_the_inputs_alone_gets_no_gradient() -> None:
    (found,) = findings_of(Rule, net("checkpoint(self.body, x, use_reentrant=True)"), files(), path="net.py")
    assert found.applicability is Applicability.UNSAFE and found.edits
    assert "gets none" in found.message and "ready twice" not in found.message
    behind = net("checkpoint(self.body, x)").replace("        return", "        x = self.stem(x)\n        return")
    (found,) = findings_of(Rule, behind, files(), path="net.py")
    assert "ready twice" in found.message
