"""DDP118: a running sum that is reduced again in each round."""

from __future__ import annotations

import pytest

from codemods.metrics.running_sum_reduced_again import RunningSumReducedAgain
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = RunningSumReducedAgain
HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\n\n"
HELPERS = (
    "def reduce_sum(x):\n    if not dist.is_initialized():\n        return x\n"
    "    x = x.clone()\n    dist.all_reduce(x)\n    return x\n\n\n"
    "def reduce_mean(x):\n    x = x.clone()\n    dist.all_reduce(x)\n    return x / dist.get_world_size()\n\n\n"
)
WHY = "go on with the own sum"


def program(*lines: str, above: str = "total = torch.zeros(1)", head: str = HEAD) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    start = "def train(model, loader, args):\n    dist.init_process_group('nccl')\n"
    return f"{head}{HELPERS}{start}    {above}\n    for x in loader:\n{body}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "lines",
    [("total += model(x)", "dist.all_reduce(total)"), ("total = total + model(x)", "dist.all_reduce(total)"),
     ("total += model(x)", "dist.all_reduce(total, op=dist.ReduceOp.SUM)"), ("total += model(x)", "total = reduce_sum(total)"),
     ("total += model(x)", "if args.distributed:", "    dist.all_reduce(total)"),
     ("if args.count:", "    total += model(x)", "    dist.all_reduce(total)"),
     ("total += model(x)", "dist.all_reduce(total)", "if total > 255:", "    total.mul_(0)"),
     ("total += model(x)", "dist.all_reduce(total)", "if total > 255:", "    total = torch.zeros(1)"),
     ("for y in x:", "    total += model(y)", "dist.all_reduce(total)", "print(total)")],
)  # fmt: skip
def test_a_sum_that_is_reduced_in_each_round(lines: tuple[str, ...]) -> None:
    check_told(RULE, program(*lines), reason=WHY)


def test_two_sums_at_once() -> None:
    lines = ("hits += model(x)", "seen += len(x)", "hits, seen = reduce_sum(hits), reduce_sum(seen)", "print(hits / seen)")
    source = program(*lines, above="hits, seen = torch.zeros(1), torch.zeros(1)")
    assert "`hits` and `seen`" in check_told(RULE, source, reason=WHY).message
    assert len(findings_of(RULE, source)) == 1, "one statement is one thing to tell"


def test_the_accelerator_sums_by_itself() -> None:
    head = "import torch\nfrom accelerate import Accelerator\n\naccelerator = Accelerator()\n\n\n"
    source = head + (
        "def train(model, loader):\n    total = torch.zeros(1)\n    for x in loader:\n        total += model(x)\n"
        "        total = accelerator.reduce(total{})\n"
    )
    check_told(RULE, source.format(""), reason=WHY)
    check_told(RULE, source.format(", reduction='sum'"), reason=WHY)
    check_nothing(RULE, source.format(", reduction='mean'"))


@pytest.mark.parametrize(
    "lines",
    [("total = torch.zeros(1)", "total += model(x)", "dist.all_reduce(total)"),
     ("total += model(x)", "mine = total.clone()", "dist.all_reduce(mine)"),
     ("total += model(x)", "mine = reduce_sum(total)"), ("total += model(x)", "total = reduce_mean(total)"),
     ("total += model(x)", "dist.all_reduce(total)", "print(total)", "total.zero_()"),
     ("total += model(x)", "dist.all_reduce(total)", "total /= dist.get_world_size()"),
     ("total += model(x)", "if args.last:", "    dist.all_reduce(total)"),
     ("total += model(x)", "dist.all_reduce(total)", "break"),
     ("total += model(x)", "dist.all_reduce(total, op=dist.ReduceOp.MAX)"),
     ("total += model(x)", "dist.all_reduce(total, op=dist.ReduceOp.AVG)"),
     ("total += model(x)", "dist.all_reduce(total, group=args.group)"),
     ("total = model(x)", "dist.all_reduce(total)"), ("args.total += model(x)", "dist.all_reduce(args.total)"),
     ("if args.every:", "    total = torch.zeros(1)", "    total += model(x)", "    dist.all_reduce(total)"),
     ("total += model(x)", "print(total)"), ("dist.all_reduce(total)",)],
)  # fmt: skip
def test_sums_that_are_right_or_not_known(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, program(*lines))


def test_a_sum_that_is_reduced_behind_the_loop() -> None:
    check_nothing(RULE, program("total += model(x)") + "    dist.all_reduce(total)\n    return total\n")


def test_a_sum_of_each_epoch() -> None:
    source = (
        f"{HEAD}def train(model, loader):\n    dist.init_process_group('nccl')\n    for epoch in range(3):\n"
        "        total = torch.zeros(1)\n"
        "        for x in loader:\n            total += model(x)\n        dist.all_reduce(total)\n"
    )
    check_nothing(RULE, source)


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("total += model(x)", "dist.all_reduce(total)"), path="tests/test_sums.py")
