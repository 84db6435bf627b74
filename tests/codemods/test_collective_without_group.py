"""DDP306: a collective where there may be no process group."""

from __future__ import annotations

import pytest

from codemods.sync.collective_without_group import CollectiveWithoutGroup
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = CollectiveWithoutGroup
DIST = "import torch\nimport torch.distributed as dist\n\n"
START = "    if args.distributed:\n        dist.init_process_group('nccl')\n"
HELPER = (
    "import torch.distributed as dist\n\ndef get_rank():\n    if not dist.is_initialized():\n        return 0\n"
    "    return dist.get_rank()\n"
)


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


def test_the_end_of_a_script() -> None:
    before = """
    import os
    import torch
    from torch.distributed import destroy_process_group, init_process_group

    ddp = int(os.environ.get("RANK", -1)) != -1
    if ddp:
        init_process_group("nccl")
    train()
    destroy_process_group()
    """
    end = "    if torch.distributed.is_initialized():\n        destroy_process_group()\n"
    check_transformed(RULE, before, before.replace("    destroy_process_group()\n", end))


def test_a_barrier() -> None:
    before = f"{DIST}def main(args):\n{START}    train()\n    dist.barrier()\n"
    check_transformed(RULE, before, before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()"))


def test_another_collective_is_unsafe() -> None:
    before = f"{DIST}def main(args, loss):\n{START}    dist.all_reduce(loss)\n"
    after = before.replace("    dist.all_reduce(loss)", "    if dist.is_initialized():\n        dist.all_reduce(loss)")
    check_transformed(RULE, before, after, unsafe=True)


def test_a_helper_that_works_without_a_group() -> None:
    head = f"{DIST}from tools import get_rank\n\ndef validate(results):\n    rank = get_rank()\n"
    before = f"{head}    for r in results:\n        dist.reduce(r, 0)\n"
    after = before.replace("        dist.reduce(r, 0)", "        if dist.is_initialized():\n            dist.reduce(r, 0)")
    fixed = check_transformed(RULE, before, after, files={"tools.py": HELPER}, unsafe=True)
    assert "helper" in fixed[0].reason


def test_the_helper_of_mmcv() -> None:
    head = f"from mmcv.runner import get_dist_info\n{DIST}def validate():\n    rank, size = get_dist_info()\n"
    before = f"{head}    dist.barrier()\n"
    after = before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()")
    check_transformed(RULE, before, after, unsafe=True)


# Told


@pytest.mark.parametrize("line", ["work = dist.all_reduce(x, async_op=True)", "x = 1; dist.barrier()"])
def test_a_call_whose_result_is_used_or_that_shares_its_line(line: str) -> None:
    check_told(RULE, f"{DIST}def main(args, x):\n{START}    {line}\n", reason="used on the spot")


# Nothing to say


@pytest.mark.parametrize(
    "body",
    [f"{START}    if args.distributed:\n        dist.barrier()\n",
     f"{START}    if dist.is_initialized():\n        dist.barrier()\n",
     f"{START}    if args.world_size > 1:\n        dist.barrier()\n",
     f"{START}    if not args.distributed:\n        return\n    dist.barrier()\n",
     f"{START}    try:\n        dist.barrier()\n    except ValueError:\n        pass\n",
     f"{START}    dist.barrier(group=args.group)\n",
     "    dist.init_process_group('nccl')\n    dist.barrier()\n",
     "    if not dist.is_initialized():\n        dist.init_process_group('nccl')\n    dist.barrier()\n",
     "    if args.a:\n        dist.init_process_group('nccl')\n    else:\n        dist.init_process_group('gloo')\n"
     "    dist.barrier()\n",
     "    dist.barrier()\n"],
)  # fmt: skip
def test_right_or_not_shown_to_be_wrong(body: str) -> None:
    check_nothing(RULE, f"{DIST}def main(args, x):\n{body}")


def test_a_helper_that_needs_the_group() -> None:
    files = {"tools.py": "import torch.distributed as dist\n\ndef get_rank():\n    return dist.get_rank()\n"}
    check_nothing(RULE, f"{DIST}from tools import get_rank\n\ndef f():\n    rank = get_rank()\n    dist.barrier()\n", files=files)


def test_a_test_by_a_key_of_the_configuration() -> None:
    body = "def validate(opt):\n    rank, size = get_dist_info()\n    if opt['dist']:\n        dist.barrier()\n"
    check_nothing(RULE, f"from mmcv.runner import get_dist_info\n{DIST}{body}")


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_nothing(RULE, f"{DIST}def main(args):\n{START}    dist.barrier()\n", path="tests/test_main.py")
