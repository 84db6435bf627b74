from __future__ import annotations

import pytest

from codemods.checkpoints.changed_after_wrap import ChangedAfterWrap
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
WRAPS = {"train.py": f"{HEAD}def train(net):\n    return DDP(net)\n"}


def script(*lines: str, wrap: str = "model = DDP(net)") -> str:
    body = "".join(f"    {line}\n" for line in (wrap, *lines))
    return f"{HEAD}def train(net, loader):\n{body}    for x in loader:\n        model(x).mean().backward()\n"


@pytest.mark.parametrize(
    "line",
    [
        "model.module.body.requires_grad_(False)",
        "net.body.requires_grad_(False)",
        "for p in model.module.body.parameters(): p.requires_grad = False",
        "for p in getattr(model.module, 'body').parameters(): p.requires_grad = False",
    ],
)
def test_a_part_that_is_frozen_behind_the_wrap(line: str) -> None:
    check_told(ChangedAfterWrap, script(line), reason="in front of the wrap")


@pytest.mark.parametrize("line", ["model.half()", "model = model.to(torch.bfloat16)", "model = model.to(dtype=torch.float64)"])
def test_another_type_behind_the_wrap(line: str) -> None:
    check_told(ChangedAfterWrap, script(line), reason="DDP(model.to(...))")
    check_told(ChangedAfterWrap, script(wrap="model = DDP(net).double()"), reason="DDP(model.to(...))")


@pytest.mark.parametrize(
    "source",
    [
        script("model.requires_grad_(False)"),
        script("model.module.body.requires_grad_(False)", "model.module.body.requires_grad_(True)"),
        script("model.module.body.requires_grad_(False)", wrap="net.body.requires_grad_(False)\n    model = DDP(net)"),
        script("model.module.body.requires_grad_(False)", wrap="model = DDP(net, find_unused_parameters=True)"),
        script("other.body.requires_grad_(False)"),
        script("pass", wrap="net.body.requires_grad_(False)\n    model = DDP(net)"),
        script("model.to('cuda')"),
        script("model.float()"),
        script("loader.half()"),
        script(wrap="model = DDP(net.half())"),
        script() + "    torch.save(model.half().state_dict(), 'm.pt')\n",
        script("model.half()").replace(".backward()", ""),
        script("model.module.body.requires_grad_(False)").replace("DDP(net)", "nn.DataParallel(net)"),
    ],
)
def test_what_is_fine(source: str) -> None:
    check_nothing(ChangedAfterWrap, source)


def lightning(*lines: str, hook: str = "on_fit_start(self)", made: str = "strategy='ddp', devices=2", init: str = "pass") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import lightning.pytorch as pl\n\nclass Task(pl.LightningModule):\n    def __init__(self):\n"
        f"        super().__init__()\n        {init}\n\n    def {hook}:\n{body}\ntrainer = pl.Trainer({made})\n"
    )


def test_hooks_of_lightning() -> None:
    freeze = "self.body.requires_grad_(False)"
    loop = ("for name in self.frozen:", "    for p in getattr(self, name).parameters():", "        p.requires_grad = False")
    check_told(ChangedAfterWrap, lightning(freeze), reason="__init__ or setup")
    check_told(ChangedAfterWrap, lightning(*loop), reason="__init__ or setup")
    check_told(ChangedAfterWrap, lightning(freeze, hook="on_train_epoch_start(self)"), reason="__init__ or setup")
    check_nothing(ChangedAfterWrap, lightning(freeze, hook="setup(self, stage)"))
    check_nothing(ChangedAfterWrap, lightning(freeze, init=freeze))
    check_nothing(ChangedAfterWrap, lightning(freeze, "step()", "self.body.requires_grad_(True)"))
    check_nothing(ChangedAfterWrap, lightning(freeze, made="devices=1"))
    check_nothing(ChangedAfterWrap, lightning(freeze, made="strategy='ddp_find_unused_parameters_true', devices=2"))


NORM = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(size))
        self.register_buffer("initialized", torch.tensor(0))

    def initialize(self, x):
        with torch.no_grad():
            mean = x.mean(0)
            self.shift.data.copy_(-mean)

    def forward(self, x):
        if self.training and self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        return x + self.shift

net = Norm(3)
"""


def test_parameters_that_the_first_batch_sets() -> None:
    found = check_told(ChangedAfterWrap, NORM, files=WRAPS, reason="reduce the statistics")
    assert found.span.line == 14
    for old, new in (
        ("self.shift.data.copy_(-mean)", "self.shift.copy_(-mean)"),
        ("self.shift.data.copy_(-mean)", "self.shift.data = -mean"),
        ("self.shift = nn.Parameter(torch.zeros(size))", "self.register_parameter('shift', nn.Parameter(torch.zeros(size)))"),
    ):
        assert findings_of(ChangedAfterWrap, NORM.replace(old, new), WRAPS), new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mean = x.mean(0)", "mean = x.mean(0)\n            torch.distributed.all_reduce(mean)"),
        ("copy_(-mean)", "copy_(torch.ones(3))"),
        ("nn.Parameter(torch.zeros(size))", "torch.zeros(size)"),
        ("torch.zeros(size))", "torch.zeros(size), requires_grad=False)"),
        ("self.training and self.initialized.item() == 0", "self.training"),
        ("net = Norm(3)", ""),
        ("net = Norm(3)", "net = Norm(3) if torch.rand(1) > 2 else None"),
        ("    def forward", "    def set_state(self, done):\n        self.initialized = done\n\n    def forward"),
    ],
)
def test_first_batches_that_are_fine(old: str, new: str) -> None:
    assert old in NORM
    check_nothing(ChangedAfterWrap, NORM.replace(old, new), files=WRAPS)


def test_one_process_and_tests() -> None:
    check_nothing(ChangedAfterWrap, NORM)
    check_nothing(ChangedAfterWrap, script("model.half()"), path="tests/test_a.py")


def runner(first: str, last: str = "pass") -> str:
    return (
        f"{HEAD}def hold(model):\n    for p in model.body.parameters():\n        p.requires_grad = False\n\n\n"
        f"class Run:\n    def __init__(self, net):\n        self.model = net\n        {first}\n"
        f"        self.model = DDP(self.model)\n"
        f"        {last}\n\n    def _hold(self):\n        hold(self.model)\n"
    )


def test_helpers_that_freeze_in_front_of_the_wrap() -> None:
    check_nothing(ChangedAfterWrap, runner("self._hold()"))


def test_helpers_that_freeze_behind_the_wrap() -> None:
    check_told(ChangedAfterWrap, runner("pass", "self._hold()"), reason="in front of the wrap")


def test_another_type_where_no_training_goes_on() -> None:
    line = "{}\n        model = model.half()"
    check_nothing(ChangedAfterWrap, script(line.format("if not args.is_in_train:")))
    check_nothing(ChangedAfterWrap, script(line.format("if not args.is_in_train and args.quick:")))
    for test in ("if args.is_in_train:", "if not args.quick:", "if not (args.is_in_train and args.quick):"):
        check_told(ChangedAfterWrap, script(line.format(test)), reason="DDP(model.to(...))")
