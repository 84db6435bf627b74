from __future__ import annotations

import pytest

from codemods.launch.input_on_every_rank import InputOnEveryRank
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import getpass
import pdb
import sys

import click
import torch.distributed as dist
import torch.multiprocessing as mp


"""


def script(*lines: str, start: str = "dist.init_process_group('nccl')", below: str = "") -> str:
    return HEAD + f"def main(run):\n    {start}\n" + "".join(f"    {line}\n" for line in lines) + below


def test_example_of_the_page() -> None:
    sections = InputOnEveryRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(InputOnEveryRank, before, reason="broadcast_object_list")
    check_nothing(InputOnEveryRank, after)


@pytest.mark.parametrize(
    "line",
    ["a = input('go on? ')", "p = getpass.getpass()", "ok = click.confirm('go on?')", "while input() != 'q':",
     "if run and not input():"],
)  # fmt: skip
def test_questions(line: str) -> None:
    check_told(InputOnEveryRank, script(line, *(["    pass"] if line.endswith(":") else [])), reason="ask on rank 0")


@pytest.mark.parametrize("line", ["breakpoint()", "pdb.set_trace()"])
def test_debuggers(line: str) -> None:
    check_told(InputOnEveryRank, script(line), reason="torch.distributed.breakpoint")


def test_in_a_helper() -> None:
    below = "    sure(run)\n\n\ndef sure(run):\n    return input(run) == 'y'\n"
    check_told(InputOnEveryRank, script(below=below), reason="ask on rank 0")


def test_above_the_group_and_in_what_is_spawned() -> None:
    check_told(InputOnEveryRank, script("dist.init_process_group('gloo')", start="name = input()"), reason="ask on rank 0")
    worker = HEAD + "def worker(rank):\n    train(input())\n\n\nif __name__ == '__main__':\n    mp.spawn(worker, nprocs=2)\n"
    check_told(InputOnEveryRank, worker, reason="ask on rank 0")


@pytest.mark.parametrize(
    "lines",
    [
        ("if dist.get_rank() == 0:", "    a = input()"),
        ("if dist.get_rank() != 0:", "    return", "a = input()"),
        ("a = input() if dist.get_rank() == 0 else None",),
        ("if sys.stdin.isatty():", "    a = input()"),
        ("if run.debug:", "    breakpoint()"),
        ("try:", "    a = input()", "except EOFError:", "    a = ''"),
        ("try:", "    train(run)", "except ValueError:", "    pdb.set_trace()"),
        ("input = run.batch", "train(input)"),
        ("run.input('a')",),
        ("train(input=1)",),
    ],
)
def test_questions_of_one_rank_or_none(lines: tuple[str, ...]) -> None:
    check_nothing(InputOnEveryRank, script(*lines))


def test_programs_of_one_process() -> None:
    check_nothing(InputOnEveryRank, script("a = input()", start="print(run)"))
    starter = "def main():\n    if input() == 'y':\n        mp.spawn(worker, nprocs=2)\n\n\n"
    worker = "def worker(rank):\n    dist.init_process_group('nccl', rank=rank, world_size=2)\n"
    check_nothing(InputOnEveryRank, HEAD + starter + worker)


def test_a_helper_of_one_rank() -> None:
    below = "    if dist.get_rank() == 0:\n        sure(run)\n\n\ndef sure(run):\n    return input(run) == 'y'\n"
    check_nothing(InputOnEveryRank, script(below=below))


def test_a_function_of_the_project() -> None:
    check_nothing(InputOnEveryRank, "def input(x):\n    return x\n\n\n" + script("a = input(1)"))


def test_tests_of_a_repository_stay() -> None:
    check_nothing(InputOnEveryRank, script("a = input()"), path="tests/test_run.py")


@pytest.mark.parametrize(
    "lines", [("if run.check:", "    pdb.set_trace()"), ("if not run.check:", "    return", "breakpoint()")]
)
def test_a_debugger_behind_a_setting(lines: tuple[str, ...]) -> None:
    check_nothing(InputOnEveryRank, script(*lines))


def test_a_question_behind_a_setting() -> None:
    check_told(InputOnEveryRank, script("if run.resume:", "    input('from which step? ')"), reason="ask on rank 0")


NET = (
    "import pdb\nimport torch\nimport torch.distributed as dist\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
    "    def forward(self, x):\n        h = self.layer(x)\n{lines}        return h\n\n\n"
    "def size():\n    return dist.get_world_size()\n"
)


@pytest.mark.parametrize(
    "lines",
    [("if torch.isnan(h).any():", "    breakpoint()"), ("if h.max() > 1e4:", "    print(h)", "    pdb.set_trace()")],
)
def test_a_debugger_for_bad_numbers_in_a_network(lines: tuple[str, ...]) -> None:
    check_told(InputOnEveryRank, NET.format(lines="".join(f"        {x}\n" for x in lines)), reason="raise an error there")


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.isnan(h).any():", "    raise ValueError('nan')"),
        ("if self.check:", "    breakpoint()"),
        ("if self.debug and torch.isnan(h).any():", "    breakpoint()"),
        ("if torch.isnan(h).any() and dist.get_rank() == 0:", "    breakpoint()"),
    ],
)
def test_networks_that_stop_nobody(lines: tuple[str, ...]) -> None:
    check_nothing(InputOnEveryRank, NET.format(lines="".join(f"        {x}\n" for x in lines)))


HELPED = (
    "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
    "    def forward(self, x):\n        return self.scaled(self.layer(x))\n\n"
    "    def scaled(self, h):\n        if torch.isnan(h.sum()):\n            import pdb; pdb.set_trace()\n"
    "        return h / h.max()\n\n"
    "    def shown(self, h):\n        if torch.isnan(h).any():\n            breakpoint()\n"
)
ZOO = "from module import Net\n\n\ndef build():\n    return Net()\n"
TRAINS = (
    "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\nfrom zoo import build\n\n\n"
    "def main():\n    dist.init_process_group('nccl')\n    model = DistributedDataParallel(build())\n"
    "    model(1).sum().backward()\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
)


def test_a_debugger_in_a_method_of_forward_far_below_a_started_program() -> None:
    files = {"zoo.py": ZOO, "train.py": TRAINS, "run.sh": "torchrun --nproc_per_node=2 train.py\n"}
    found = check_told(InputOnEveryRank, HELPED, files=files, reason="raise an error there")
    assert found.span.line == 11


@pytest.mark.parametrize(
    "changed",
    [
        {"run.sh": "python train.py\n"},
        {"run.sh": "torchrun --nproc_per_node=1 train.py\n"},
        {"train.py": TRAINS.replace("DistributedDataParallel(build())", "build()")},
        {"zoo.py": ZOO.replace("from module", "from other"), "other.py": HELPED},
    ],
)
def test_a_network_that_no_command_is_seen_to_start_on_several(changed: dict[str, str]) -> None:
    files = {"zoo.py": ZOO, "train.py": TRAINS, "run.sh": "torchrun --nproc_per_node=2 train.py\n", **changed}
    check_nothing(InputOnEveryRank, HELPED, files=files)


def test_a_network_of_one_process() -> None:
    lines = "        if torch.isnan(h).any():\n            breakpoint()\n"
    alone = NET.format(lines=lines).replace("import torch.distributed as dist\n", "").partition("\n\n\ndef size")[0]
    check_nothing(InputOnEveryRank, alone)


def test_a_helper_that_the_ranks_call_under_a_test_and_a_single_process_without() -> None:
    single = "\n\ndef single(run):\n    sure(run)\n\n\ndef sure(run):\n    return input(run) == 'y'\n"
    check_nothing(InputOnEveryRank, script("if dist.get_rank() == 0:", "    sure(run)", below=single))
    check_told(InputOnEveryRank, script("if run:", "    sure(run)", below=single), reason="ask on rank 0")
