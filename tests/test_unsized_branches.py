"""DDP708: an arm that takes the rank from Slurm and leaves the number of processes at 1."""

from __future__ import annotations

import pytest

from codemods.launch.rendezvous_of_each_process import RendezvousOfEachProcess
from ddpfix.testing import check_nothing, check_transformed

RULE = RendezvousOfEachProcess
PARSER = "parser.add_argument('--world_size', default=1, type=int)\n"
HEAD = "import os\nimport torch.distributed as dist\n\n" + PARSER + "\n\ndef begin(args):\n"
TORCHRUN = (
    "    if 'RANK' in os.environ:\n        args.rank = int(os.environ['RANK'])\n"
    "        args.world_size = int(os.environ['WORLD_SIZE'])\n"
)
SLURM = "    elif 'SLURM_PROCID' in os.environ:\n        args.rank = int(os.environ['SLURM_PROCID'])\n"
SIZE = "        args.world_size = int(os.environ['SLURM_NTASKS'])\n"
JOB = {"job.sh": "srun python train.py\n"}
REST = "    else:\n        return\n    dist.init_process_group('nccl', rank=args.rank, world_size=args.world_size)\n"


def test_the_number_is_taken_from_slurm() -> None:
    check_transformed(RULE, HEAD + TORCHRUN + SLURM + REST, HEAD + TORCHRUN + SLURM + SIZE + REST, files=JOB, unsafe=True)


def test_the_arm_of_slurm_may_stand_first() -> None:
    slurm, torchrun = SLURM.replace("elif", "if"), TORCHRUN.replace("    if", "    elif", 1)
    check_transformed(RULE, HEAD + slurm + torchrun + REST, HEAD + slurm + SIZE + torchrun + REST, files=JOB, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        HEAD + TORCHRUN + SLURM + SIZE + REST,
        HEAD + TORCHRUN + SLURM + "        count(args)\n" + REST,  # it may set the number
        HEAD + TORCHRUN + SLURM + "        os.environ['WORLD_SIZE'] = tasks()\n" + REST,
        HEAD + "    args.world_size = tasks()\n" + TORCHRUN + SLURM + REST,
        HEAD + SLURM.replace("elif", "if") + REST,  # no arm beside it shows where the number comes from
        HEAD.replace(PARSER, "") + TORCHRUN + SLURM + REST,  # what it is else is not shown
        HEAD.replace("default=1", "default=-1") + TORCHRUN + SLURM + REST,
        HEAD + TORCHRUN + SLURM + REST.replace(", world_size=args.world_size", ""),  # the launcher's number
        HEAD + TORCHRUN + "    elif 'LSB_RANK' in os.environ:\n        args.rank = int(os.environ['LSB_RANK'])\n" + REST,
    ],
)  # fmt: skip
def test_arms_that_stay(source: str) -> None:
    check_nothing(RULE, source)


@pytest.mark.parametrize(
    "files",
    [
        {"job.sh": "srun python main.py --world_size 8\n"},
        {"submit.py": "def job(env, args):\n    args.world_size = env.num_tasks\n"},
    ],
)
def test_a_number_that_a_job_gives(files: dict[str, str]) -> None:
    check_nothing(RULE, HEAD + TORCHRUN + SLURM + REST, files=files)


def test_own_tests_stay() -> None:
    check_nothing(RULE, HEAD + TORCHRUN + SLURM + REST, path="tests/test_main.py")
