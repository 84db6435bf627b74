"""DDP703: ranks that all work on the first GPU."""

from __future__ import annotations

import pytest

from codemods.launch.missing_set_device import MissingSetDevice
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = MissingSetDevice
HEAD = "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
START = "    dist.init_process_group('nccl', rank=rank, world_size=world)\n"
SPAWN = "\n\nif __name__ == '__main__':\n    mp.spawn(worker, args=(2,), nprocs=2)\n"


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
