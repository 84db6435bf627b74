"""DDP703: ranks that all work on the first GPU."""

from __future__ import annotations

import pytest

from codemods.launch.missing_set_device import MissingSetDevice
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = MissingSetDevice
HEAD = "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
START = "    dist.init_process_group('nccl', rank=rank, world_size=world)\n"
SPAWN = "\n\nif __name__ == '__main__':\n    mp.spawn(worker, args=(2,), nprocs=2)\n"

EACH = """

if __name__ == '__main__':
    cards = torch.cuda.device_count()
    mp.spawn(worker, args=(cards,), nprocs=cards)
"""


def script(body: str = "    net = build().cuda()\n", *, start: str = START, end: str = SPAWN) -> str:
    return f"{HEAD}def worker(rank, world):\n{start}{body}    train(rank, net){end}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("move", ["net = build().cuda()", "net = build().to('cuda')", "x = x.cuda()"])
def test_what_goes_to_the_current_gpu(move: str) -> None:
    before = script(f"    {move}\n")
    check_transformed(RULE, before, before.replace(START, f"{START}    torch.cuda.set_device(rank)\n"), unsafe=True)


def test_a_rank_for_each_gpu_that_meets_over_gloo() -> None:
    gloo = START.replace("nccl", "gloo")
    before = script(start=gloo, end=EACH)
    check_transformed(RULE, before, before.replace(gloo, f"{gloo}    torch.cuda.set_device(rank)\n"), unsafe=True)
    (found,) = findings_of(RULE, before)
    assert "in every process that is the first GPU" in found.message


@pytest.mark.parametrize(
    "use", ["x.cuda()", "x.to('cuda')", "dist.broadcast_object_list(x, src=0)", "dist.all_gather_object(y, x)"]
)
def test_what_a_function_of_another_file_does(use: str) -> None:
    steps = f"import torch.distributed as dist\n\ndef run(net):\n    for x in net:\n        step(x)\n\ndef step(x):\n    {use}\n"
    files = {"steps.py": steps}
    before = script("    run(rank)\n").replace("import os\n", "import os\nfrom steps import *\n")
    check_transformed(RULE, before, before.replace(START, f"{START}    torch.cuda.set_device(rank)\n"), files=files, unsafe=True)
    chooses = {"steps.py": steps + "import cards\n", "cards.py": "import torch\n\ndef take(n):\n    torch.cuda.set_device(n)\n"}
    check_nothing(RULE, before, files=chooses)
    check_nothing(RULE, before, files={"steps.py": steps.replace("step(x)", "other(x)", 1)})


def test_a_method_of_the_object_that_starts_the_group() -> None:
    source = (
        f"{HEAD}class Base:\n    def score(self):\n"
        "        if dist.is_initialized():\n            dist.broadcast_object_list([1])\n\n\n"
        "class Driver(Base):\n    def __init__(self, rank, world):\n"
        "        dist.init_process_group('nccl', rank=rank, world_size=world)\n\n\n"
        "def worker(rank, world):\n    drive(Driver(rank, world))\n\n\ndef drive(driver):\n    driver.{asked}()\n" + SPAWN
    )
    (found,) = findings_of(RULE, source.replace("{asked}", "score"))
    assert "broadcast_object_list" in found.message
    check_nothing(RULE, source.replace("{asked}", "train"))


def test_a_helper_that_starts_the_group() -> None:
    helper = f"def setup(rank, world):\n    os.environ['MASTER_PORT'] = '29500'\n{START}\n\n"
    before = script(start="    setup(rank, world)\n").replace("def worker", f"{helper}def worker")
    check_transformed(RULE, before, before.replace(START, f"{START}    torch.cuda.set_device(rank)\n"), unsafe=True)


def test_a_rank_that_is_worked_out() -> None:
    check_told(RULE, script(start=START.replace("rank=rank", "rank=rank + 8 * node")), reason="set_device")


def test_a_script_of_several_nodes() -> None:
    option = "parser = argparse.ArgumentParser()\nparser.add_argument('--nodes', type=int)\n\n\n"
    check_told(RULE, script().replace("def worker", f"{option}def worker"), reason="within the node")


@pytest.mark.parametrize(
    "source",
    [
        script("    torch.cuda.set_device(rank)\n    net = build().cuda()\n"),
        script("    with torch.cuda.device(rank):\n        net = build().cuda()\n"),
        script("    os.environ['CUDA_VISIBLE_DEVICES'] = str(rank)\n    net = build().cuda()\n"),
        script("    net = build().cuda(rank)\n"),
        script("    net = build().to(f'cuda:{rank}')\n"),
        script("    if distributed:\n        net = build().cuda(rank)\n    else:\n        net = build().cuda()\n"),
        script(start=START.replace("nccl", "gloo")),
        script(start=START.replace("'nccl'", "backend")),
        script(start=START.replace("nccl", "gloo"), end=EACH.replace("nprocs=cards", "nprocs=cards * 2")),
        script("    dist.all_gather_object(rows, rank, group=few)\n"),
        script("    if rank < 2:\n        dist.all_gather_object(rows, rank)\n"),
        script(end="\n\nworker(0, 1)\n"),
    ],
)  # fmt: skip
def test_nothing_is_said(source: str) -> None:
    check_nothing(RULE, source)


def test_another_file_chooses_the_device() -> None:
    files = {"gpus.py": "import torch\n\ndef choose(rank):\n    torch.cuda.set_device(rank)\n"}
    source = script("    choose(rank)\n    net = build().cuda()\n").replace("import os\n", "import os\nfrom gpus import choose\n")
    check_nothing(RULE, source, files=files)


def test_own_tests_of_a_repository() -> None:
    check_nothing(RULE, script(), path="tests/test_ranks.py")
