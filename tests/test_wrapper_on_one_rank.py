"""DDP301, DDP303: the forward of a wrapper on one rank, wherever the model came from."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = CollectiveUnderRankGuard
ADVICE = "make the call on every rank"
HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
)
NET = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n"
    "        self.b = {second}\n\n    def forward(self, x):\n        return self.b(self.a(x))\n\n\n"
)
WITH, WITHOUT = NET.format(second="nn.BatchNorm1d(2)"), NET.format(second="nn.ReLU()")


# A base class runs what its heirs wrap

BASE = (
    "import torch\nimport torch.distributed as dist\n\n\nclass Base:\n    def __init__(self, rank):\n        self.rank = rank\n\n"
    "    def epoch(self):\n        raise NotImplementedError\n\n    def train(self):\n        for _ in range(3):\n"
    "            self.epoch()\n            if self.rank == 0:\n                self.sample()\n\n"
    "    def sample(self):\n        with torch.no_grad():\n            return self.net(torch.zeros(4, 2))\n"
)
HEIR = (
    f"from base import Base\n{HEAD}{{net}}class Own(Base):\n    def __init__(self, rank):\n        super().__init__(rank)\n"
    "        self.net = {held}\n\n    def epoch(self):\n        self.net(torch.ones(4, 2)).sum().backward()\n"
)


def test_a_field_that_an_heir_wraps() -> None:
    files = {"own.py": HEIR.format(net=WITH, held="DDP(Net())")}
    assert "self.net(...)" in check_told(RULE, BASE, reason="run the module inside", files=files, path="base.py").message


@pytest.mark.parametrize(("net", "held"), [(WITH, "Net()"), (WITHOUT, "DDP(Net(), broadcast_buffers=False)")])
def test_a_field_that_waits_for_nobody(net: str, held: str) -> None:
    check_nothing(RULE, BASE, files={"own.py": HEIR.format(net=net, held=held)}, path="base.py")


# Methods that wrap, and what stands between

BACKEND = (
    "class Ranks:\n    def wrap_model(self, model):\n        return DDP(model)\n\n\nclass Alone:\n"
    "    def wrap_model(self, model):\n"
    "        return model\n\n\n"
)
RUN = (
    "def run(backend, data, rank):\n    net = {made}\n    for x in data:\n        net(x).sum().backward()\n"
    "    if rank == 0:\n        net(data[0])\n    dist.barrier()\n"
)


@pytest.mark.parametrize(
    "made",
    ["backend.wrap_model(Net())", "torch.compile(DDP(Net()))", "DDP(Net())"],
)
def test_where_the_wrapper_came_from(made: str) -> None:
    found = check_told(RULE, f"{HEAD}{WITH}{BACKEND}{RUN.format(made=made)}", reason="")
    assert "wrapper" in found.message


@pytest.mark.parametrize("made", ["backend.prepare_text(Net())", "backend.model_of(Net())", "torch.compile(Net())"])
def test_what_is_no_wrapper(made: str) -> None:
    check_nothing(RULE, f"{HEAD}{WITH}{BACKEND}{RUN.format(made=made)}")


def test_prepared_models_of_a_dictionary() -> None:
    source = (
        f"from accelerate import Accelerator\n{HEAD}{WITH}def main(loader):\n    accelerator = Accelerator()\n"
        "    nets = {'a': Net(), 'b': Net()}\n    for k in nets:\n        nets[k] = accelerator.prepare(nets[k])\n"
        "    for x in loader:\n        accelerator.backward(nets['a'](x).sum())\n    if accelerator.is_main_process:\n"
        "        nets['b'](x)\n    accelerator.wait_for_everyone()\n"
    )
    assert "wrapper" in check_told(RULE, source, reason=ADVICE).message


def test_a_model_that_is_prepared_behind_its_annotation() -> None:
    source = (
        f"from accelerate import Accelerator\n{HEAD}{WITH}class Fit:\n    def __init__(self, net: Net, loader):\n"
        "        self.accelerator = Accelerator()\n        self.net = net\n"
        "        self.net, self.loader = self.accelerator.prepare(self.net, loader)\n\n    def train(self):\n"
        "        for x in self.loader:\n            self.accelerator.backward(self.net(x).sum())\n"
        "        if self.accelerator.is_main_process:\n            self.net(x)\n        self.accelerator.wait_for_everyone()\n"
    )
    assert "self.net()" in check_told(RULE, source, reason=ADVICE).message
    check_nothing(RULE, source.replace("nn.BatchNorm1d(2)", "nn.ReLU()"))
    check_nothing(RULE, source.replace("            self.net(x)\n", "            self.accelerator.unwrap_model(self.net)(x)\n"))


def test_an_exit_of_the_others_within_a_test() -> None:
    source = (
        f"{HEAD}{WITH}def evaluate(net, data, args, rank):\n    if not args.parallel:\n        if rank != 0:\n"
        f"            return {{}}\n"
        "    return {'loss': net(data).sum().item()}\n\n\ndef main(args, data, rank):\n    net = Net()\n"
        "    if args.distributed and not args.slow:\n        net = DDP(net)\n    for x in data:\n"
        "        net(x).sum().backward()\n"
        "        evaluate(net, x, args, rank)\n"
    )
    assert "runs the DDP wrapper" in check_told(RULE, source, reason="run the module inside").message
    check_nothing(EarlyReturnBeforeCollective, source)  # told once
    check_nothing(EarlyReturnBeforeCollective, source.replace("net(data)", "net.module(data)"))


@pytest.mark.parametrize("second", ["nn.BatchNorm1d(2)", "nn.utils.spectral_norm(nn.Linear(2, 2))", "nn.SyncBatchNorm(2)"])
def test_what_has_buffers(second: str) -> None:
    source = f"{HEAD}{NET.format(second=second)}{RUN.format(made='DDP(Net())')}"
    check_told(RULE, source.replace("x in data:", "x in data:  # all of them"), reason="")


def test_buffers_of_a_base_class() -> None:
    own = "class Own(Net):\n    def forward(self, x):\n        return self.a(x)\n\n\n"
    run = RUN.format(made="DDP(Own())")
    check_told(RULE, f"{HEAD}{WITH}{own}{run}", reason="")
    check_nothing(RULE, f"{HEAD}{WITHOUT}{own}{run}")


def test_a_break_beside_the_forward_of_the_base_class() -> None:
    stops = "            if self.rank == 0:\n                if self.tired():\n                    break\n"
    looped = BASE.replace("            if self.rank == 0:\n", stops)
    waits = "        dist.barrier()\n        self.net(torch"
    files = {"own.py": HEIR.format(net=WITH, held="DDP(Net())").replace("        self.net(torch", waits)}
    found = check_told(EarlyReturnBeforeCollective, looped, reason="broadcast the decision", files=files, path="base.py")
    assert "barrier" in found.message
    check_nothing(EarlyReturnBeforeCollective, BASE, files=files, path="base.py")


# Layers of PyTorch that have no buffers

LAYERS = (
    "def main(data, rank):\n    net = DDP(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))\n    head = {made}\n"
    "    {wrap}\n    run(net, head, data, rank)\n\n\n"
)
DIRECT = "def run(net, head, data, rank):\n    if rank == 0:\n        head(data[0])\n    dist.barrier()\n"
HELD = (
    "class Runner:\n    def __init__(self, net, head, rank):\n        self.head = head\n        self.rank = rank\n\n"
    "    def test(self, data):\n        self.head.eval()\n        return self.head(data[0])\n\n"
    "    def go(self, data):\n        if self.rank == 0:\n            self.test(data)\n        dist.barrier()\n\n\n"
    "def run(net, head, data, rank):\n    Runner(net, head, rank).go(data)\n"
)
WRAP = "head = DDP(head, device_ids=[rank])"


@pytest.mark.parametrize("run", [DIRECT, HELD])
@pytest.mark.parametrize(
    ("made", "wrap", "waits"),
    [
        ("nn.Linear(2, 2)", WRAP, False),
        ("nn.Linear(2, 2).to(rank)", WRAP, False),
        ("nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.LayerNorm(2)).cuda(rank)", WRAP, False),
        ("DDP(nn.Embedding(2, 2))", "pass", False),
        ("nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))", WRAP, True),
        ("nn.BatchNorm1d(2)", WRAP, True),
        ("nn.Sequential(*layers)", WRAP, True),  # what is in it is not seen
        ("nn.Sequential(nn.Linear(2, 2), make())", WRAP, True),
        ("make(2)", WRAP, True),
        ("nn.utils.spectral_norm(nn.Linear(2, 2))", WRAP, True),
        ("nn.Linear(2, 2)", f"head.register_buffer('mask', data[0])\n    {WRAP}", True),
        ("nn.Linear(2, 2)", f"if data:\n        head = make(2)\n    {WRAP}", True),  # on one of two ways
    ],
)  # fmt: skip
def test_a_wrapper_round_layers_of_torch(run: str, made: str, wrap: str, waits: bool) -> None:
    found = findings_of(RULE, HEAD + run + "\n\n" + LAYERS.format(made=made, wrap=wrap))
    assert bool(found) is waits
