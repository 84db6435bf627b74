from __future__ import annotations

import pytest

from codemods.sync.state_of_own_batches import StateOfOwnBatches
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch\nimport torch.distributed as dist; WORLD = dist.group.WORLD\nfrom torch import nn\n\n\n"
TRAINS = "\n\ndef train(loader):\n    model = Net()\n    for x in loader:\n        model(x).mean().backward()\n"
SHIFT = ('self.shift = nn.Parameter(torch.zeros(3))',)
CODES = ('self.register_buffer("codebook", torch.randn(8, 3))',)


def net(made: tuple[str, ...], *forward: str, methods: str = "", head: str = HEAD, behind: str = TRAINS) -> str:
    start = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    body = "".join(f"        {line}\n" for line in made) + "\n    def forward(self, x):\n"
    return head + start + body + "".join(f"        {line}\n" for line in (*forward, "return x")) + methods + behind


def test_the_example_of_the_page() -> None:
    sections = StateOfOwnBatches.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(StateOfOwnBatches, before, reason="sum what the ranks saw first")
    check_nothing(StateOfOwnBatches, after)


@pytest.mark.parametrize(
    "change",
    [
        "self.shift.data.copy_(-x.mean(0))",
        "self.shift.data = -x.mean(0)",
        "self.shift[...] = 0.9 * self.shift + 0.1 * x.mean(0)",
        "self.shift.mul_(0.9).add_(x.mean(0), alpha=0.1)",
    ],
)
def test_a_parameter_by_the_batch(change: str) -> None:
    found = check_told(StateOfOwnBatches, net(SHIFT, change), reason="the ranks go on with different ones")
    assert found.span.line == 12


def test_through_names_and_methods() -> None:
    begin = "\n    def begin(self, rows):\n        mean = rows.mean(0)\n        self.shift.data.copy_(-mean)\n"
    check_told(StateOfOwnBatches, net(SHIFT, "self.begin(x)", methods=begin), reason="the ranks go on with different ones")
    forward = "    def forward(self, x):\n        self.begin(x)\n        return x\n"
    base, heir = net(SHIFT, "self.begin(x)", methods=begin).replace(forward, ""), f"\n\nclass Rows(Net):\n{forward}"
    check_told(StateOfOwnBatches, base.replace("Net()", "Rows()") + heir, reason="the ranks go on with different ones")


@pytest.mark.parametrize(
    "change",
    [
        "self.codebook.mul_(0.9).add_(x.mean(0), alpha=0.1)",
        "self.codebook.lerp_(x.mean(0), 0.1)",
        "self.codebook = 0.9 * self.codebook + 0.1 * x.mean(0)",
        "ema_inplace(self.codebook, x.mean(0), 0.9)",
    ],
)
def test_a_codebook_by_the_batch(change: str) -> None:
    check_told(StateOfOwnBatches, net(CODES, change), reason="rank 0's buffers to all")


def test_sums_of_codes_in_plain_attributes() -> None:
    check_told(
        StateOfOwnBatches, net((*CODES, "self.code_sum = None"), "self.code_sum = 0.9 * self.code_sum + 0.1 * x.sum(0)"),
        reason="rank 0's buffers to all",
    )  # fmt: skip


def test_a_program_in_other_files() -> None:
    layers = net(SHIFT, "self.shift.data.copy_(-x.mean(0))", head="import torch\nfrom torch import nn\n\n\n", behind="")
    joins = "import torch.distributed as dist; WORLD = dist.group.WORLD\n"
    train = f"{joins}from model import make\n\n\ndef train(x):\n    make()(x).mean().backward()\n"
    files = {"model.py": "from layers import Net\n\n\ndef make():\n    return Net()\n", "train.py": train}
    check_told(StateOfOwnBatches, layers, files=files, path="layers.py", reason="the ranks go on with different ones")
    alone = {**files, "train.py": train.replace(joins, "")}
    check_nothing(StateOfOwnBatches, layers, files=alone, path="layers.py")


@pytest.mark.parametrize(
    ("made", "forward"),
    [
        (SHIFT, ("mean = x.mean(0)", "dist.all_reduce(mean)", "self.shift.data.copy_(-mean)")),
        (CODES, ("sums = self.all_reduce(x.sum(0))", "self.codebook.mul_(0.9).add_(sums)")),
        (SHIFT, ("self.shift.data.copy_(torch.ones(x.shape[1]))",)),
        (SHIFT, ("self.shift.data.clamp_(0, 1)",)),
        (SHIFT, ("x = x + self.shift",)),
        (SHIFT, ("shift = x.mean(0)",)),
        (('self.register_buffer("running_mean", torch.zeros(3))',), ("self.running_mean.mul_(0.9).add_(x.mean(0))",)),
        (('self.register_buffer("code_steps", torch.zeros(1))',), ("self.code_steps.add_(1)",)),
        (('self.register_buffer("code_mask", torch.zeros(3))',), ("self.code_mask = x > 0",)),
        (('self.register_parameter("running", None)',), ("self.running.lerp_(x.mean(0), 0.1)",)),
    ],
)
def test_what_is_right_or_no_state_of_a_batch(made: tuple[str, ...], forward: tuple[str, ...]) -> None:
    check_nothing(StateOfOwnBatches, net(made, *forward))


CHANGE = "self.shift.data.copy_(-x.mean(0))"


def test_what_forward_does_not_come_to() -> None:
    begin = "\n    def begin(self, rows):\n        self.shift.data.copy_(-rows.mean(0))\n"
    check_nothing(StateOfOwnBatches, net(SHIFT, methods=begin))
    check_nothing(StateOfOwnBatches, net(SHIFT, CHANGE).replace("class Net(nn.Module)", "class Net(Table)"))


def test_a_class_that_nobody_makes_or_that_an_option_makes() -> None:
    source = net(SHIFT, CHANGE)
    check_nothing(StateOfOwnBatches, source.replace("    model = Net()\n", "    model = make()\n"))
    made = source.replace("def train(loader):\n    model = Net()\n", "def train(loader, kind='plain'):\n    {}\n")
    option = "model = make()\n    if kind == 'shifted':\n        model = Net()"
    check_nothing(StateOfOwnBatches, made.format(option))
    assert findings_of(StateOfOwnBatches, made.format(option).replace("kind='plain'", "kind='shifted'"))


def test_one_process_the_ranks_by_hand_and_tests() -> None:
    source = net(SHIFT, CHANGE)
    check_nothing(StateOfOwnBatches, source.replace("import torch.distributed as dist; WORLD = dist.group.WORLD\n", ""))
    check_nothing(StateOfOwnBatches, source, files={"utils.py": "def average_params(params):\n    pass\n"})
    check_nothing(StateOfOwnBatches, source, path="tests/test_net.py")


# What is followed to the batch, beside other reductions

IDLE = (
    "used = torch.bincount(torch.cdist(x, self.codes).argmin(1), minlength=8)", "dist.all_reduce(used)",
    "self._fill(x, used == 0)",
)  # fmt: skip
CHOSEN = ('self.codes = nn.Parameter(torch.randn(8, 3))',)


def fills(*lines: str) -> str:
    return "\n    def _fill(self, rows, idle):\n" + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [("self.codes.data[idle] = rows[:8][idle]",),
     ("order = torch.randperm(len(rows))", "fresh = rows[order][:8]",
      "self.codes.data = torch.where(idle[:, None], fresh, self.codes)"),
     ("fresh = rows.repeat(2, 1)[:8]", "self.codes.data.copy_(fresh)")],
)  # fmt: skip
def test_a_parameter_beside_a_sum_of_all_ranks(lines: tuple[str, ...]) -> None:
    found = check_told(StateOfOwnBatches, net(CHOSEN, *IDLE, methods=fills(*lines)), reason="let rank 0 choose for all")
    assert "sets the parameter `codes` of Net from its own batch" in found.message


@pytest.mark.parametrize(
    "lines",
    [("fresh = rows[:8].clone()", "dist.broadcast(fresh, src=0)", "self.codes.data[idle] = fresh[idle]"),
     ("parts = [torch.empty_like(rows) for _ in range(2)]", "dist.all_gather(parts, rows)", "fresh = torch.cat(parts)[:8]",
      "self.codes.data[idle] = fresh[idle]"),
     ("fresh = self.pick(rows)", "self.codes.data[idle] = fresh[idle]"),
     ("fresh = shared_rows(rows)", "self.codes.data[idle] = fresh[idle]"),
     ("self.codes.data[idle] = torch.randn(8, 3)[idle]",),
     ("fresh = rows[:8]", "self.seen = fresh[idle]")],
)  # fmt: skip
def test_what_all_ranks_have_or_what_is_not_followed(lines: tuple[str, ...]) -> None:
    check_nothing(StateOfOwnBatches, net(CHOSEN, *IDLE, methods=fills(*lines)))


HELD = HEAD + """\
def means_of(rows, count):
    rows = rows[torch.randperm(len(rows))[:count]]
    return rows / rows.norm(dim=1, keepdim=True)


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.zeros(8, 3), requires_grad=False)
        self.register_buffer("begun", torch.zeros(1))

    def begin(self, rows):
        if self.begun:
            return
        means = means_of(rows, 8)
        self.codes.data.copy_(means)
        self.begun.fill_(1)

    def forward(self, index):
        return self.codes[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = Codes()
        self.all_reduce_fn = dist.all_reduce if dist.is_initialized() else nn.Identity()

    def forward(self, x):
        self.codes.begin(x)
        hits = x @ self.codes.codes.t()
        self.all_reduce_fn(hits)
        return self.codes(hits.argmax(1)) - x
"""


def test_a_codebook_that_another_module_begins_with_its_input() -> None:
    found = check_told(StateOfOwnBatches, HELD + TRAINS, reason="sum what the ranks saw first")
    assert "each rank sets the parameter `codes` of Codes from its own batch" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        self.codes.begin(x)\n", "        x = self.all_reduce_fn(x)\n        self.codes.begin(x)\n"),
        ("        self.codes.begin(x)\n", ""),  # nobody begins
        ("    return rows / ", "    dist.broadcast(rows, 0)\n    return rows / "),
        ("        self.begun.fill_(1)\n", "        dist.broadcast(self.codes.data, 0)\n"),
        ("means = means_of(rows, 8)", "means = torch.randn(rows.shape[1], 8).t()"),  # of the shape alone
        ("self.codes = Codes()", "self.codes = Codes()\n        self.codes = self.other"),
        ("self.codes = Codes()", "self.codes = Codes() if dist.is_initialized() else None"),  # an option may leave it out
    ],
)
def test_a_codebook_that_all_ranks_begin_alike(old: str, new: str) -> None:
    check_nothing(StateOfOwnBatches, HELD.replace(old, new) + TRAINS)


LOOP = (
    "\n\ndef train(data):\n    loader = DataLoader(data, sampler=DistributedSampler(data))\n"
    "    model = nn.parallel.DistributedDataParallel(Net())\n    for x in loader:\n        model(x).mean().backward()\n"
    "        model.module.begin(x)\n"
)
LOADERS = "from torch.utils.data import DataLoader\nfrom torch.utils.data.distributed import DistributedSampler\n"


def test_a_method_that_the_loop_calls() -> None:
    begin = "\n    def begin(self, rows):\n        self.codes.data[:4] = rows[:4]\n"
    source = net(CHOSEN, methods=begin, head=LOADERS + HEAD, behind=LOOP)
    check_told(StateOfOwnBatches, source, reason="let rank 0 choose for all")
    check_nothing(StateOfOwnBatches, source.replace("model.module.begin(x)", "model.module.begin(torch.ones(4, 3))"))
    check_nothing(StateOfOwnBatches, source.replace("codes", "queue"))
    sent = "def send(ps):\n    for p in ps:\n        dist.broadcast(p.data, 0)\n"
    check_nothing(StateOfOwnBatches, source, files={"sync.py": sent})


def test_a_wrapper_that_sends_no_buffers() -> None:
    wrap = "    model = nn.parallel.DistributedDataParallel(Net(){})\n"
    change = ("self.codebook.mul_(0.9).add_(x.mean(0))",)
    behind = TRAINS.replace("    model = Net()\n", wrap)
    found = check_told(
        StateOfOwnBatches, net(CODES, *change, behind=behind.format(", broadcast_buffers=False")), reason="sum what the ranks saw"
    )
    assert "broadcast_buffers=False it sends none: the ranks go on with different ones" in found.message
    for given in ("", ", broadcast_buffers=True"):
        found = check_told(StateOfOwnBatches, net(CODES, *change, behind=behind.format(given)), reason="sum what the ranks saw")
        assert "rank 0's buffers to all before each forward" in found.message


NORMS = """\
import torch.nn as nn


class SyncedBatchNorm2d(nn.BatchNorm2d):
    _is_parallel = False

    def __data_parallel_replicate__(self, ctx, copy_id):
        self._is_parallel = True


def convert_model(model):
    return model
"""
NET = """\
import torch.nn as nn
from norms.batch import SyncedBatchNorm2d as Norm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(8)
"""
WRAP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from net import Net


def main(gpu):
    dist.init_process_group("nccl")
    model = DDP(Net().to(gpu), device_ids=[gpu])


if __name__ == "__main__":
    main(0)
"""
CONVERTED = WRAP.replace("import Net\n", "import Net\nfrom norms.batch import convert_model\n")
CONVERTED = CONVERTED.replace("    model = DDP(Net().to(gpu)", "    model = convert_model(Net().to(gpu))\n    model = DDP(model")
PLAIN = NET.replace("from norms.batch import SyncedBatchNorm2d as Norm\n", "").replace("Norm(8)", "nn.BatchNorm2d(8)")
HOME = {"norms/__init__.py": "", "norms/batch.py": NORMS}


@pytest.mark.parametrize(("source", "net", "line", "name"), [(WRAP, NET, 8, "Norm"), (CONVERTED, PLAIN, 9, "convert_model")])
def test_batch_norm_of_replicas_under_ddp(source: str, net: str, line: int, name: str) -> None:
    (found,) = findings_of(StateOfOwnBatches, source, {**HOME, "net.py": net})
    assert found.span.line == line
    assert found.message.startswith(f"`{name}` makes BatchNorm that joins its statistics over the replicas of DataParallel")


@pytest.mark.parametrize(
    ("source", "net"),
    [
        (WRAP, PLAIN),
        (WRAP.replace("DDP(Net().to(gpu), device_ids=[gpu])", "Net()"), NET),
        (WRAP.replace("DDP(Net().to(gpu)", "DDP(nn.SyncBatchNorm.convert_sync_batchnorm(Net()).to(gpu)"), NET),
        (WRAP, NET.replace("        self.norm", "        if synced:\n            self.norm")),  # an option may leave it out
        (CONVERTED.replace("    model = convert", "    if args.sync:\n        model = convert"), PLAIN),
        (WRAP.replace("    model =", "    model = DataParallelWithCallback(Net()) if one else None\n    model ="), NET),
    ],
)
def test_batch_norm_that_is_left_alone(source: str, net: str) -> None:
    assert not findings_of(StateOfOwnBatches, source, {**HOME, "net.py": net})
