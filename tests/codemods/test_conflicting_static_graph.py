"""DDP003: the idle flag beside static_graph, and what static_graph cannot stand."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.flags.conflicting_static_graph import ConflictingStaticGraph as Rule
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
import lightning.pytorch as pl
from lightning.pytorch.strategies import DDPStrategy
from transformers import TrainingArguments
from net import Net, load


"""
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
"""
DROPS = NET.replace("        return self.head", "        if torch.rand(1) < 0.1:\n            return x\n        return self.head")
COMMENT = """\
# Off: static_graph=True finds unused parameters by itself and ignores this flag.
# If that changes, TORCH_DISTRIBUTED_DEBUG=INFO names the parameters behind
# "Expected to have finished reduction in the prior iteration". To roll back: True.
"""
FILES = {"net.py": NET}


def test_the_idle_flag_is_switched_off_and_static_graph_stays() -> None:
    before = HEAD + "model = DDP(load(), find_unused_parameters=True, static_graph=True)\n"
    after = before.replace("model = DDP", COMMENT + "model = DDP").replace("parameters=True", "parameters=False")
    (found,) = check_transformed(Rule, before, after)
    assert "does nothing" in found.message and found.evidence[0].line == 10


def test_one_argument_a_line() -> None:
    before = HEAD + "model = DDP(\n    load(),\n    static_graph=True,\n    find_unused_parameters=True,\n)\n"
    comment = "".join("    " + line + "\n" for line in COMMENT.splitlines())
    after = before.replace("    find_unused_parameters=True", comment + "    find_unused_parameters=False")
    check_transformed(Rule, before, after)


def test_the_arguments_of_the_hugging_face_trainer() -> None:
    before = HEAD + "a = TrainingArguments('o', ddp_find_unused_parameters=True, ddp_static_graph=True)\n"
    after = before.replace("a = Tr", COMMENT + "a = Tr").replace("parameters=True", "parameters=False")
    check_transformed(Rule, before, after)


def test_lightning_is_unsafe() -> None:
    before = HEAD + "t = pl.Trainer(strategy=DDPStrategy(find_unused_parameters=True, static_graph=True))\n"
    (found,) = findings_of(Rule, before)
    assert found.applicability is Applicability.UNSAFE and "automatic optimization" in found.reason


def test_a_graph_that_varies_is_told_and_the_flag_is_kept() -> None:
    for flag in ("", "find_unused_parameters=True, "):
        source = HEAD + f"model = DDP(Net(), {flag}static_graph=True)\nmodel(1).sum().backward()\n"
        found = check_told(Rule, source, files={"net.py": DROPS}, reason="take static_graph out")
        assert "torch.rand(1) < 0.1" in found.message and "head" in found.message


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("t = pl.Trainer(strategy=DDPStrategy(static_graph=True), accumulate_grad_batches=4)\n", "accumulate_grad_batches=4"),
        (
            "a = TrainingArguments('o', ddp_static_graph=True, gradient_accumulation_steps=2)\n",
            "gradient_accumulation_steps=2",
        ),
        ("model = DDP(Net(), static_graph=True)\nwith model.no_sync():\n    model(1).sum().backward()\n", "model.no_sync()"),
    ],
)
def test_accumulation_is_told(source: str, text: str) -> None:
    found = check_told(Rule, HEAD + source, files=FILES, reason="which of the two")
    assert text in found.message


@pytest.mark.parametrize(
    "source",
    [
        "model = DDP(Net(), static_graph=True)\nmodel(1).sum().backward()\n",
        "model = DDP(Net(), static_graph=False, find_unused_parameters=True)\n",
        "model = DDP(Net(), static_graph=args.static, find_unused_parameters=True)\n",
        "model = DDP(Net(), static_graph=True, find_unused_parameters=args.search)\n",
        "a = TrainingArguments('o', ddp_static_graph=True, gradient_accumulation_steps=1)\n",
        "model = DDP(Net(), static_graph=True)\nother = DDP(Net())\nwith other.no_sync():\n    other(1).sum().backward()\n",
        "options = {'find_unused_parameters': True}\nmodel = DDP(Net(), static_graph=True, **options)\n",
    ],
)
def test_nothing_to_say(source: str) -> None:
    check_nothing(Rule, HEAD + source, files=FILES)


def test_a_test_of_the_repository_is_left_alone() -> None:
    source = HEAD + "model = DDP(load(), find_unused_parameters=True, static_graph=True)\n"
    check_nothing(Rule, source, path="tests/test_wrap.py")
