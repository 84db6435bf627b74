"""Process groups of as many ranks as a machine has GPUs, in a program that a launcher starts."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.worlds_of_devices import worlds_of_devices
from ddpfix.testing import project_of

HEAD = "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\n\n\n"
JOB = {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}
TAIL = "\n\nif __name__ == '__main__':\n    main()\n"
RANK = 'rank=int(os.environ["LOCAL_RANK"])'
GROUP = f'dist.init_process_group("nccl", world_size=torch.cuda.device_count(), {RANK})'


def program(*lines: str, above: str = "") -> str:
    return f"{HEAD}{above}def main():\n" + "".join(f"    {line}\n" for line in lines) + TAIL


def numbers(source: str, files: dict[str, str] | None = None) -> list[str]:
    project = project_of(source, JOB if files is None else files)
    module = project.module("module.py")
    assert module is not None
    return [found.command.number for found in worlds_of_devices(project, module)]


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("torchrun --nproc_per_node=2 module.py", "2"),
        ("torchrun --nnodes=1 --nproc-per-node 4 module.py", "4"),
        ("python -m torch.distributed.launch --nproc_per_node=$1 module.py", "$1"),
        ("GPUS=$1\ntorchrun --nproc_per_node=${GPUS} module.py", "${GPUS}"),
        ("n=3\ntorchrun --nproc_per_node $n module.py", "3"),
        ("torchrun module.py", "1"),
    ],
)
def test_the_command_says_how_many_come(command: str, number: str) -> None:
    assert numbers(program(GROUP), {"run.sh": f"{command}\n"}) == [number]


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node=gpu module.py",
        "torchrun --nproc_per_node=8 module.py",
        "torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) module.py",
        "GPUS=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node=$GPUS module.py",
        "GPUS=$1\nGPUS=$(count)\ntorchrun --nproc_per_node=$GPUS module.py",
        "torchrun --nproc_per_node=$GPUS module.py",
        "torchrun --nnodes=2 --nproc_per_node=2 module.py",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 module.py",
        "#SBATCH --gres=gpu:2\ntorchrun --nproc_per_node=2 module.py",
        "torchrun --nproc_per_node=2 other.py",
        "torchrun $OPTIONS module.py",
        "python module.py",
    ],
)
def test_nothing_where_as_many_gpus_may_be_visible(command: str) -> None:
    assert numbers(program(GROUP), {"run.sh": f"{command}\n", "other.py": "print(1)\n"}) == []


def test_the_number_comes_by_a_name_a_parameter_and_another_file() -> None:
    named = program("count = torch.cuda.device_count()", f'dist.init_process_group("nccl", world_size=count, {RANK})')
    assert numbers(named) == ["2"]
    begin = 'def begin(size):\n    dist.init_process_group("nccl", None, None, size, int(os.environ["LOCAL_RANK"]))\n\n\n'
    assert numbers(program("begin(torch.cuda.device_count())", above=begin)) == ["2"]
    start = "from module import begin\n\nbegin()\n"
    helper = f"{HEAD}def begin():\n    {GROUP}\n"
    files = {"run.sh": "torchrun --nproc_per_node=2 train.py\n", "train.py": start}
    assert numbers(helper, files) == ["2"]


def test_the_rank_may_be_an_option_or_stand_in_the_environment() -> None:
    option = "parser = argparse.ArgumentParser()", 'parser.add_argument("--local_rank", type=int)', "args = parser.parse_args()"
    given = 'dist.init_process_group("nccl", world_size=torch.cuda.device_count(), rank=args.local_rank)'
    assert numbers(program(*option, given)) == ["2"]
    assert numbers(program('dist.init_process_group("nccl", world_size=torch.cuda.device_count())')) == ["2"]


@pytest.mark.parametrize(
    "line",
    [
        f'dist.init_process_group("nccl", world_size=int(os.environ["WORLD_SIZE"]), {RANK})',
        f'dist.init_process_group("nccl", world_size=torch.cuda.device_count() if args.all else args.size, {RANK})',
        'dist.init_process_group("nccl", world_size=torch.cuda.device_count(), rank=0)',
        'dist.init_process_group("nccl", store=store, world_size=torch.cuda.device_count())',
    ],
)
def test_nothing_of_another_number_or_rank(line: str) -> None:
    assert numbers(program(line)) == []


def test_nothing_where_the_program_spawns_hides_gpus_or_asks_the_launcher() -> None:
    spawn = "import torch.multiprocessing as mp\n\n\ndef all_gpus(fn):\n    mp.spawn(fn, nprocs=2)\n\n\n"
    assert numbers(program(GROUP, above=spawn)) == []
    assert numbers(program('os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', GROUP)) == []
    assert numbers(program('print(os.environ["CUDA_VISIBLE_DEVICES"])', GROUP)) == ["2"]
    told = 'if "WORLD_SIZE" in os.environ:', '    dist.init_process_group("nccl")', "else:", f"    {GROUP}"
    assert numbers(program(*told)) == []
