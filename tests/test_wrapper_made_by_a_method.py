"""DDP507 where a method of its own makes the wrapper of a trainer, and what its callers ask behind that."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_transformed, findings_of

NETS = {
    "nets.py": """import torch


class Net(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.width = 3
        self.height = 4
        self.body = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)

    def penalty(self):
        return self.body.weight.sum()
"""
}
FIT = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


class Fit:
    def __init__(self, args):
        self.model = Net(args)
        self.many = args.many

    def _compiled(self):
        self.model = {compiled}

    def _spread(self):
        {wrap}

    def fit(self):
        {fit}

    def width(self):
        return {asked}
"""


def fit(
    *lines: str,
    asked: str = "self.model.width",
    wrap: str = "self.model = DDP(self.model)",
    compiled: str = "torch.compile(self.model)",
) -> str:
    indented = "\n        ".join(lines)
    return FIT.format(fit=indented, asked=asked, wrap=wrap, compiled=compiled)


@pytest.mark.parametrize(
    "lines",
    [
        ("self._spread()", "self.width()"),
        ("self._compiled()", "self._spread()", "for _ in range(3):", "    self.width()"),
        ("self._spread()", "print(self.width())"),
    ],
)
def test_what_is_called_behind_the_method_that_wraps(lines: tuple[str, ...]) -> None:
    source = fit(*lines)
    check_transformed(AttributeOfWrapper, source, source.replace("return self.model.", "return self.model.module."), files=NETS)


def test_what_the_caller_asks_itself() -> None:
    source = fit("self._spread()", "print(self.model.width)", asked="1")
    check_transformed(AttributeOfWrapper, source, source.replace("self.model.width", "self.model.module.width"), files=NETS)


@pytest.mark.parametrize(
    ("call", "wrap"),
    [
        ("if self.many:\n            self._spread()", "self.model = DDP(self.model)"),
        ("self._spread()", "if self.many:\n            self.model = DDP(self.model)"),
        ("self._spread()", "if not self.many:\n            return\n        self.model = DDP(self.model)"),
    ],
)
def test_one_process_may_have_the_bare_model(call: str, wrap: str) -> None:
    source = fit(call, "self.width()", wrap=wrap)
    bare = 'return getattr(self.model, "module", self.model).'
    check_transformed(AttributeOfWrapper, source, source.replace("return self.model.", bare), files=NETS)


@pytest.mark.parametrize(
    "lines",
    [
        ("self.width()", "self._spread()"),  # asked in front of the wrap
        ("self._spread()",),  # by nobody behind it
        ("if self.many:", "    self._spread()", "else:", "    self.width()"),
        ("self._spread()", "if hasattr(self.model, 'size'):", "    self.width()"),  # the wrapper does not come here
        ("self._spread()", "self.model = self.model.module", "self.width()"),
    ],
)
def test_what_may_ask_the_bare_model(lines: tuple[str, ...]) -> None:
    check_nothing(AttributeOfWrapper, fit(*lines), files=NETS)


def test_another_model_in_place_of_the_wrapper() -> None:
    check_nothing(AttributeOfWrapper, fit("self._spread()", "self.width()", compiled="trace(self.model)"), files=NETS)


def test_one_finding_for_the_names_that_one_function_asks() -> None:
    source = """from accelerate import Accelerator
from nets import Net
from steps import sample


def main(args, optimizer):
    accelerator = Accelerator()
    model = Net(args)
    model, optimizer = accelerator.prepare(model, optimizer)
    sample(model)
"""
    steps = "def sample(net):\n    low = net.width\n    high = net.height\n    return low + high + net.penalty()\n"
    (found,) = findings_of(AttributeOfWrapper, steps, files={**NETS, "main.py": source}, path="steps.py")
    assert found.message.endswith("(also `height`, `penalty`, in line 3, 4)")
    assert found.reason.startswith("ask `accelerator.unwrap_model(net)` instead; ")
    short = "def sample(net):\n    return net.width\n"
    (only,) = findings_of(AttributeOfWrapper, short, files={**NETS, "main.py": source}, path="steps.py")
    assert only.reason.startswith("write `accelerator.unwrap_model(net).width`; ")
