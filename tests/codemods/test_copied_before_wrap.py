from __future__ import annotations

import pytest

from codemods.checkpoints.copied_before_wrap import CopiedBeforeWrap
from ddpfix.testing import check_nothing, check_told

RULE = CopiedBeforeWrap
WHY = "make the copy behind the wrap"
HEAD = """
import copy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Average:
    def __init__(self, net, rate):
        self.kept = copy.deepcopy(net).eval()
        self.rate = rate

    def update(self, net):
        for mine, new in zip(self.kept.parameters(), net.parameters()):
            mine.data.mul_(self.rate).add_(new.data, alpha=1 - self.rate)


def set_seed(seed):
    torch.manual_seed(seed)


def follow(slow, fast, rate):
    for mine, new in zip(slow.parameters(), fast.parameters()):
        mine.data.mul_(rate).add_(new.data, alpha=1 - rate)


def check(net, loader):
    return sum(net(x).mean().item() for x in loader)


"""
PROGRAM = (
    HEAD
    + """def main(loader, args):
    dist.init_process_group("nccl")
    SEED
    student = Net().cuda()
    COPY
    student = DDP(student)
    AFTER
    for x in loader:
        TARGET
        nn.functional.mse_loss(student(x), target).backward()
        args.optimizer.step()
        follow(teacher, student.module, 0.999)
"""
)
SEED = "torch.manual_seed(args.seed + dist.get_rank())"
COPY = "teacher = copy.deepcopy(student)"


def program(seed: str = SEED, made: str = COPY, after: str = "pass", target: str = "target = teacher(x)") -> str:
    return PROGRAM.replace("SEED", seed).replace("COPY", made).replace("AFTER", after).replace("TARGET", target)


@pytest.mark.parametrize(
    "made",
    [COPY, "teacher = copy.deepcopy(student).eval().requires_grad_(False)", "bare = student\n    teacher = copy.deepcopy(bare)",
     "teacher = Net().cuda()\n    teacher.load_state_dict(student.state_dict())",
     "teacher = None\n    if args.teach:\n        teacher = copy.deepcopy(student)",
     "teacher = Net()\n    for q, k in zip(student.parameters(), teacher.parameters()):\n        k.data.copy_(q.data)",
     "if args.resume:\n        student.load_state_dict(torch.load(args.resume))\n    teacher = copy.deepcopy(student)"],
)  # fmt: skip
def test_copies_above_the_wrap(made: str) -> None:
    found = check_told(RULE, program(made=made), reason=WHY)
    assert "`torch.manual_seed(args.seed + dist.get_rank())`" in found.message
    assert found.evidence[-1].text == "every rank runs its own copy: `teacher(x)`"


@pytest.mark.parametrize(
    "seed",
    ["set_seed(args.seed + dist.get_rank())", "set_seed(0)\n    set_seed(args.seed + dist.get_rank())",
     "seed = args.seed + dist.get_rank()\n    torch.manual_seed(seed)"],
)  # fmt: skip
def test_seeds_of_each_rank(seed: str) -> None:
    check_told(RULE, program(seed), reason=WHY)


def test_without_a_seed() -> None:
    source = program("pass").replace("def set_seed(seed):\n    torch.manual_seed(seed)", "")
    assert "without a seed" in check_told(RULE, source, reason=WHY).message


@pytest.mark.parametrize(
    "made", ["teacher = Average(student, 0.99)", "from timm.utils import ModelEma\n    teacher = ModelEma(student, decay=0.99)"]
)
def test_an_average_that_gives_targets(made: str) -> None:
    field = "kept" if "Average" in made else "ema"
    check_told(RULE, program(made=made, target=f"target = teacher.{field}(x)"), reason=WHY)
    check_nothing(RULE, program(made=made, target="target = x"))


def test_an_average_that_every_rank_validates_with() -> None:
    target = "target = x\n        check(teacher.kept, loader)"
    check_told(RULE, program(made="teacher = Average(student, 0.99)", target=target), reason=WHY)
    once = target.replace("check(", "if dist.get_rank() == 0:\n            check(")
    check_nothing(RULE, program(made="teacher = Average(student, 0.99)", target=once))


def test_a_trainer_that_keeps_both() -> None:
    trainer = """class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed + dist.get_rank())
        self.net = Net()
        self.slow = copy.deepcopy(self.net)
        self.net = DDP(self.net)

    def train(self, loader):
        for x in loader:
            nn.functional.mse_loss(self.net(x), self.slow(x)).backward()
"""
    check_told(RULE, f"{HEAD}{trainer}", reason=WHY)
    check_nothing(RULE, f"{HEAD}{trainer}".replace("self.slow(x)", "x"))
    check_nothing(RULE, f"{HEAD}{trainer}".replace("DDP(self.net)", "DDP(self.net)\n        self.slow = DDP(self.slow)"))


@pytest.mark.parametrize(
    "seed",
    ["torch.manual_seed(args.seed)", "set_seed(args.seed)", "pass", "torch.manual_seed(dist.get_rank())\n    set_seed(args.seed)",
     "set_seed(dist.get_rank())\n    set_seed(args.seed)", "if args.seed is not None:\n        set_seed(args.seed)"],
)  # fmt: skip
def test_seeds_that_are_the_same(seed: str) -> None:
    check_nothing(RULE, program(seed, after=SEED))


@pytest.mark.parametrize(
    "made",
    ["student.load_state_dict(torch.load(args.start))\n    teacher = copy.deepcopy(student)",
     "teacher = Net()\n    teacher.load_state_dict(torch.load(args.teacher))",
     "student = torch.load(args.start)\n    teacher = copy.deepcopy(student)",
     "for p in student.parameters():\n        dist.broadcast(p.data, 0)\n    teacher = copy.deepcopy(student)",
     "teacher = torch.optim.swa_utils.AveragedModel(student)",
     "from timm.utils import ModelEmaV3\n    teacher = ModelEmaV3(student)"],
)  # fmt: skip
def test_copies_that_are_equal(made: str) -> None:
    check_nothing(RULE, program(made=made))


@pytest.mark.parametrize(
    "after",
    ["teacher.load_state_dict(student.module.state_dict())", "follow(teacher, student.module, 0)", "teacher = DDP(teacher)",
     "teacher = copy.deepcopy(student.module)", "for p in teacher.parameters():\n        dist.broadcast(p.data, 0)",
     "teacher.load_state_dict(torch.load(args.teacher))"],
)  # fmt: skip
def test_copies_that_are_made_equal(after: str) -> None:
    check_nothing(RULE, program(after=after))


def test_a_resume_that_is_no_rule() -> None:
    after = "if args.resume:\n        teacher.load_state_dict(torch.load(args.resume))"
    check_told(RULE, program(after=after), reason=WHY)


@pytest.mark.parametrize(
    ("old", "new"),
    [("alpha=1 - rate)", "alpha=1 - min(1 - 1 / (rate + 1), 0.99))"), ("nn.Linear(4, 4)", "torch.load('a')"),
     ("DDP(student)", "DDP(student, init_sync=False)"), ("= teacher(x)", "= x"), ("DDP(student)", "student.cuda()")],
)  # fmt: skip
def test_programs_that_are_no_matter(old: str, new: str) -> None:
    check_nothing(RULE, program().replace(old, new))


def test_an_average_that_counts_its_steps() -> None:
    made, target = "teacher = Average(student, 0.99)", "target = teacher.kept(x)"
    source = program(made=made, target=target)
    check_nothing(RULE, source.replace("def update(self, net):", "def update(self, net):\n        self.steps += 1"))


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program(), path="tests/test_teacher.py")
