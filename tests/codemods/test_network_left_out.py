from __future__ import annotations

import pytest

from codemods.checkpoints.network_left_out import NetworkLeftOut
from ddpfix.testing import check_nothing, check_told

HEAD = """
import itertools
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, x):
        return self.layer(x)


class Plain(nn.Module):
    def forward(self, x):
        return x.mean()


class Part(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(classes // dist.get_world_size(), 8))

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


class Whole(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x):
        return self.head(self.body(x))


def wrap(net, gpu):
    return DDP(net.to(gpu), device_ids=[gpu])


def pair():
    return Encoder(), nn.Linear(8, 2)


def build(net, lr):
    return optim.AdamW(filter(lambda p: p.requires_grad, net.parameters()), lr=lr)


def one_epoch(loader, body, head, opt):
    for x in loader:
        opt.zero_grad()
        head(body(x)).mean().backward()
        opt.step()


def average(params):
    flat = torch.cat([p.grad.flatten() for p in params])
    dist.all_reduce(flat)

"""
STEPS = ("for x in loader:", "    opt.zero_grad()", "    head(body(x)).mean().backward()", "    opt.step()")
BOTH = "opt = optim.SGD(list(body.parameters()) + list(head.parameters()), lr=0.1)"
MADE = ("body = DDP(Encoder().to(gpu))", "head = nn.Linear(8, 2).to(gpu)")


def script(*lines: str) -> str:
    return f"{HEAD}def train(loader, gpu):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        (*MADE, BOTH, *STEPS),
        (*MADE, "opt = optim.SGD([{'params': body.parameters()}, {'params': head.parameters(), 'lr': 1.0}], lr=0.1)", *STEPS),
        (*MADE, "opt = optim.Adam(itertools.chain(body.parameters(), head.parameters()))", *STEPS),
        (*MADE, "opt = optim.Adam([*body.parameters(), *head.parameters()])", "one_epoch(loader, body, head, opt)"),
        (*MADE, "params = list(body.parameters())", "params += list(head.parameters())", "opt = optim.Adam(params)", *STEPS),
        (*MADE, "groups = [{'params': body.parameters()}]", "groups.append({'params': head.parameters()})",
         "opt = optim.Adam(params=groups)", *STEPS),
        (*MADE, "opt_b, opt = build(body, 0.1), build(head, 0.1)", *STEPS),
        ("body, head = pair()", "head.to(gpu)", "body = wrap(body, gpu)", BOTH, *STEPS),
        ("body = wrap(Encoder(), gpu)", "head = nn.Sequential(nn.Linear(8, 8), nn.ReLU())", "head = head.to(gpu)", BOTH, *STEPS),
        (*MADE, "head = nn.SyncBatchNorm.convert_sync_batchnorm(head)", BOTH, *STEPS),
        ("body, head = Encoder(), Encoder()", "if gpu is not None:", "    body = DDP(body)", BOTH, *STEPS),
        (*MADE, "head.requires_grad_(False)", "head.requires_grad_(True)", BOTH, *STEPS),
        (*MADE, BOTH, *STEPS, "torch.save(getattr(head, 'module', head).state_dict(), 'head.pt')"),
        (*MADE, BOTH, *STEPS, "bare = head.module if hasattr(head, 'module') else head", "torch.save(bare.state_dict(), 'h.pt')"),
    ],
)  # fmt: skip
def test_a_network_beside_the_wrapped_one(lines: tuple[str, ...]) -> None:
    found = check_told(NetworkLeftOut, script(*lines), reason="wrap it as well")
    assert "`head` is trained here and never wrapped" in found.message


@pytest.mark.parametrize(
    "lines",
    [
        ("body, head = DDP(Encoder()), DDP(nn.Linear(8, 2))", BOTH, *STEPS),
        ("body, head = [DDP(net) for net in pair()]", BOTH, *STEPS),
        ("body, head = pair()", "body, head = [DDP(net) for net in (body, head)]", BOTH, *STEPS),
        (*MADE, "head = wrap(head, gpu)", BOTH, *STEPS),
        (*MADE, "head = unknown(head)", BOTH, *STEPS),
        (*MADE, "if gpu:", "    head = unknown(gpu)", BOTH, *STEPS),
        (*MADE, "nets = {'head': head}", BOTH, *STEPS),
        (*MADE, BOTH, *STEPS, "torch.save(head.module.state_dict(), 'head.pt')"),
        (*MADE, "head.requires_grad_(False)", BOTH, *STEPS),
        (*MADE, "for p in head.parameters():", "    p.requires_grad = False", BOTH, *STEPS),
        (*MADE, BOTH, *STEPS[:-1], "    average(list(head.parameters()))", "    opt.step()"),
        (*MADE, BOTH, *STEPS[:-1], "    for p in head.parameters():", "        dist.all_reduce(p.grad)", "    opt.step()"),
        (*MADE, BOTH, "for x in loader:", "    with torch.no_grad():", "        head(x)", "    body(x).mean().backward()",
         "    opt.step()"),
        ("body, head = pair()", "model = DDP(Whole(body, head))", BOTH, "for x in loader:", "    model(x).mean().backward()",
         "    opt.step()"),
        ("body, head = DDP(Encoder()), Plain()", BOTH, *STEPS),
        ("body, head = DDP(Encoder()), Part(100)", BOTH, *STEPS),
        ("body, head = pair()", BOTH, *STEPS),
        (*MADE, "if dist.get_rank() == 0:", f"    {BOTH}", *(f"    {line}" for line in STEPS)),
        (*MADE, "opt = optim.SGD(body.parameters(), lr=0.1)", *STEPS),
        (*MADE, "opt = ZeroRedundancyOptimizer(head.parameters(), optimizer_class=optim.Adam)", *STEPS),
        ("if gpu:", "    body = DDP(Encoder())", "else:", "    body, head = pair()", "    " + BOTH,
         *(f"    {line}" for line in STEPS)),
    ],
)  # fmt: skip
def test_look_alikes(lines: tuple[str, ...]) -> None:
    check_nothing(NetworkLeftOut, script(*lines))


FIELDS = """
class Loop{0}:
    def __init__(self, gpu):
        self.gen = Encoder().to(gpu)
        self.critic = Encoder().to(gpu)
        self.gen = DDP(self.gen)
        self.opt_g = optim.Adam(self.gen.parameters())
        self.opt_c = optim.Adam(self.critic.parameters())
        {1}

    def step(self, x):
        self.opt_c.zero_grad()
        (self.critic(x).mean() - self.critic(self.gen(x).detach()).mean()).backward()
        self.opt_c.step()
"""


def test_fields_are_followed() -> None:
    found = check_told(NetworkLeftOut, HEAD + FIELDS.format("", "pass"), reason="wrap it as well")
    assert "`self.critic`" in found.message
    check_nothing(NetworkLeftOut, HEAD + FIELDS.format("", "self.critic = DDP(self.critic)"))
    check_nothing(NetworkLeftOut, HEAD + FIELDS.format("", "setattr(self, 'critic', DDP(self.critic))"))
    check_nothing(NetworkLeftOut, HEAD + FIELDS.format("(nn.Module)", "pass"))


def test_a_network_from_another_file() -> None:
    models = "from torch import nn\n\n\nclass Critic(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    models += "        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))\n"
    source = script("body, head = DDP(Encoder()), Critic()", BOTH, *STEPS).replace(
        "\n\nclass", "\nfrom models import Critic\n\nclass", 1
    )
    check_told(NetworkLeftOut, source, files={"models.py": models}, reason="wrap it as well")
    helper = (
        "from torch.nn.parallel import DistributedDataParallel\n\n\ndef share(net):\n    return DistributedDataParallel(net)\n"
    )
    shared = source.replace("import Critic", "import Critic\nfrom helper import share").replace("Critic()", "share(Critic())")
    check_nothing(NetworkLeftOut, shared, files={"models.py": models, "helper.py": helper})


def test_several_networks_of_one_optimizer_are_one_finding() -> None:
    made = "body, head, tail = DDP(Encoder()), nn.Linear(8, 2), nn.Linear(2, 2)"
    given = BOTH.replace(", lr", " + list(tail.parameters()), lr")
    source = script(made, given, "for x in loader:", "    tail(head(body(x))).mean().backward()", "    opt.step()")
    assert "`head` and `tail` are trained" in check_told(NetworkLeftOut, source, reason="wrap").message


def test_a_network_that_is_made_in_both_arms_is_named_once() -> None:
    made = ("if torch.cuda.is_available():", "    head = nn.Linear(8, 2)", "else:", "    head = nn.Linear(8, 1)")
    source = script(MADE[0], *made, BOTH, *STEPS)
    assert "`head` is trained" in check_told(NetworkLeftOut, source, reason="wrap").message


def test_accelerate() -> None:
    source = HEAD.replace("from torch.nn.parallel", "from accelerate import Accelerator\nfrom torch.nn.parallel") + (
        "def train(loader):\n    accelerator = Accelerator()\n    body, head = pair()\n"
        "    opt = optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)\n"
        "    body, opt, loader = accelerator.prepare(body, opt, loader)\n"
        "    for x in loader:\n        accelerator.backward(head(body(x)).mean())\n        opt.step()\n"
    )
    check_told(NetworkLeftOut, source, reason="accelerator.prepare")
    check_nothing(
        NetworkLeftOut,
        source.replace(
            "body, opt, loader = accelerator.prepare(body, opt", "body, head, opt, loader = accelerator.prepare(body, head, opt"
        ),
    )


def test_tests_of_a_repository() -> None:
    check_nothing(NetworkLeftOut, script(*MADE, BOTH, *STEPS), path="tests/test_train.py")


def test_a_wrap_that_was_meant_for_it_is_named() -> None:
    source = script(*MADE, "body = DDP(body)", BOTH, *STEPS)
    found = check_told(NetworkLeftOut, source, reason="wraps `body` a second time, and may be meant for `head`: wrap it as well")
    assert "`body` is wrapped a second time" in [e.text for e in found.evidence]
    again = script(*MADE, "body = DDP(body.module)", BOTH, *STEPS)
    assert "second time" not in check_told(NetworkLeftOut, again, reason="wrap it as well").reason


ONE_DEVICE = """\
import os
import torch
import torch.distributed as dist
from torch import nn, optim


class Trial:
    def __init__(self, args):
        self.args = args
        self.device = {device}
        self.net = self.build()

    def build(self):
        net = nn.Linear(4, 2).to(self.device)
{wrap}
        return net

    def run(self, loader):
        opt = optim.SGD({trained}.parameters(), lr=0.1)
        for x, y in loader:
            nn.functional.mse_loss(self.net(x), y).backward()
            opt.step()


def main(args, loader):
    dist.init_process_group("nccl")
    Trial(args).run(loader)
"""
_ROUND = "net = nn.DataParallel(net, device_ids=[self.device])"
_LOCAL = 'int(os.environ["LOCAL_RANK"])'


def one_device(wrap: str = f"        {_ROUND}", device: str = _LOCAL, trained: str = "self.net") -> str:
    return ONE_DEVICE.format(wrap=wrap, device=device, trained=trained)


@pytest.mark.parametrize(
    "wrap",
    [
        f"        {_ROUND}",
        f"        if self.args.use_gpu:\n            {_ROUND}",
        "        return nn.DataParallel(net, [self.device])",
    ],
)
def test_told_where_each_process_puts_data_parallel_round_its_own_device(wrap: str) -> None:
    found = check_told(NetworkLeftOut, one_device(wrap), reason="wrap it in `DistributedDataParallel`")
    assert "every rank trains a model of its own" in found.message
    assert found.evidence[0].line == 10


@pytest.mark.parametrize(
    "source",
    [
        one_device("        net = nn.DataParallel(net)"),  # over what the process sees: no number of its own
        one_device("        net = nn.DataParallel(net, device_ids=[0, 1])"),
        one_device(device="0"),
        one_device(f"        if self.args.distributed:\n            net = DDP(net)\n        else:\n            {_ROUND}"),
        one_device(f"        if dist.get_world_size() > 1:\n            return DDP(net)\n        {_ROUND}"),
        one_device().replace("    Trial(args)", "    if not args.multi_process:\n        Trial(args)"),
        one_device(trained="self.head"),  # another network is trained: this one only looks on
        one_device(f"        {_ROUND}\n        for p in net.parameters():\n            dist.all_reduce(p.grad)"),
        one_device(f"        {_ROUND}\n        net = nn.parallel.DistributedDataParallel(net)"),
    ],
)
def test_data_parallel_that_is_right_or_not_seen_to_train_alone(source: str) -> None:
    check_nothing(NetworkLeftOut, source)


INSIDE = """
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Encoder()

    def {method}

    def both(self, change):
        self.spread(change)

    def forward(self, x):
        return self.inner(x)


def other(loader, gpu):
    body = DDP(Encoder().to(gpu))
    head = Outer()
    {call}
"""
GIVEN = "spread(self, change):\n        self.inner = change(self.inner)"
BY_NAME = "spread(self, change):\n        for name, part in self.named_children():\n            setattr(self, name, change(part))"
ITSELF = "spread(self, gpu):\n        self.inner = nn.parallel.DistributedDataParallel(self.inner, device_ids=[gpu])"
READS = "spread(self, change):\n        return change(self.inner)"
NESTED = "def around(part):\n        return DDP(part, device_ids=[gpu])\n\n    head.spread(around)"


def inside(method: str, call: str) -> str:
    return HEAD + INSIDE.format(method=method, call=call) + "".join(f"    {line}\n" for line in (BOTH, *STEPS))


@pytest.mark.parametrize(
    ("method", "call"),
    [
        (GIVEN, "head.spread(lambda part: DDP(part, device_ids=[gpu]))"),
        (GIVEN, NESTED),
        (GIVEN, "head.spread(change=load())"),
        (GIVEN, "head.both(load())"),
        (BY_NAME, "head.spread(load())"),
        (ITSELF, "head.spread(gpu)"),
        ("quiet(self):\n        pass", "head.apply_to_parts(lambda part: DDP(part))"),
    ],
)
def test_a_network_that_is_wrapped_inside(method: str, call: str) -> None:
    check_nothing(NetworkLeftOut, inside(method, call))


@pytest.mark.parametrize(
    ("method", "call"),
    [
        (GIVEN, "pass"),  # nobody calls it
        (GIVEN, "head.train()"),
        (READS, "head.spread(print)"),  # nothing is kept
        ("spread(self, width):\n        self.width = max(width, 3)", "head.spread(4)"),
    ],
)
def test_a_network_that_stays_bare_inside(method: str, call: str) -> None:
    found = check_told(NetworkLeftOut, inside(method, call), reason="wrap it as well")
    assert "`head` is trained here" in found.message


def test_a_network_that_is_wrapped_inside_by_another_file() -> None:
    parts = f"from torch import nn\n\n\nclass Base(nn.Module):\n    def {GIVEN}\n"
    source = inside("quiet(self):\n        pass", "head.spread(load())").replace("Outer(nn.Module)", "Outer(Base)")
    source = source.replace("\n\nclass", "\nfrom parts import Base\n\nclass", 1)
    check_nothing(NetworkLeftOut, source, files={"parts.py": parts})
    still = source.replace("head.spread(load())", "head.train()")
    check_told(NetworkLeftOut, still, files={"parts.py": parts}, reason="wrap it as well")
