"""DDP715: a constant for the GPUs at the top of a script that a command starts on more processes than it names."""

from __future__ import annotations

import pytest

from codemods.launch.launcher_variable_overwritten import LauncherVariableOverwritten
from ddpfix.testing import check_nothing, check_told

SET = 'os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n'
REST = """import torch
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


if __name__ == "__main__":
    main()
"""
SOURCE = f"import os\n\n{SET}{REST}"
PREPARED = f"import os\n{SET}from accelerate import Accelerator\n\naccelerator = Accelerator()\n"
JOB = {"run.sh": "torchrun --nproc_per_node=4 module.py\n"}


@pytest.mark.parametrize(
    ("source", "command", "starts"),
    [
        (SOURCE, "torchrun --nproc_per_node=4 module.py", "starts 4 on the machine"),
        (SOURCE.replace('"0"', '"0,1"'), "torchrun --standalone --nproc-per-node 3 module.py", "the same 2 GPUs"),
        (SOURCE, "python -m torch.distributed.launch --nproc_per_node=2 module.py", "starts 2 on the machine"),
        (SOURCE, "torchrun --nnodes=2 --nproc_per_node=2 module.py", "starts 2 on the machine"),
        (PREPARED, "nohup accelerate launch --num_processes 2 --gpu_ids 6,8 module.py &", "starts 2 on the machine"),
        (
            SOURCE.replace(SET, f"import torch\nimport numpy as np\n{SET}"),
            "torchrun --nproc_per_node=4 module.py",
            "“Duplicate GPU",
        ),
    ],
)
def test_fewer_gpus_than_processes(source: str, command: str, starts: str) -> None:
    found = check_told(LauncherVariableOverwritten, source, files={"run.sh": f"{command}\n"}, reason="leave the line out")
    assert starts in found.message, found.message
    assert found.severity == "crash"


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node=1 module.py",
        "torchrun --nproc_per_node=$1 module.py",  # whoever runs it says how many
        "torchrun --nproc_per_node=gpu module.py",  # as many as the launcher sees, not the script
        "torchrun --nnodes=2 module.py",  # one on each machine
        "python module.py",
        "accelerate launch module.py",
        "accelerate launch --num_machines 2 --num_processes 2 module.py",
        "torchrun --nproc_per_node=4 other.py",
    ],
)
def test_no_more_processes_than_gpus_are_shown(command: str) -> None:
    check_nothing(LauncherVariableOverwritten, SOURCE, files={"run.sh": f"{command}\n", "other.py": "x = 1\n"})
    check_nothing(LauncherVariableOverwritten, PREPARED, files={"run.sh": f"{command}\n", "other.py": "x = 1\n"})


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace('"0"', '"0,1,2,3"'),
        SOURCE.replace('"0"', '""'),  # no GPU at all
        SOURCE.replace('"0"', "args.gpus"),
        SOURCE.replace(SET, f"if not distributed:\n    {SET}"),
        SOURCE.replace(SET, 'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")\n'),
        SOURCE.replace(SET, f'{SET}os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["GPUS"]\n'),  # set anew
        SOURCE.replace(SET, f"import torch\nfree = torch.cuda.mem_get_info()\n{SET}"),  # CUDA has seen the devices
        SOURCE.replace(SET, f"from parts import gpu\n{SET}"),  # the file may have asked for them
        SOURCE.replace(SET, f"import unheard_of\n{SET}"),
        SOURCE.replace('"nccl"', '"gloo"'),  # works on the CPU, or shares the GPU
        SOURCE.replace('dist.init_process_group("nccl")', "pass"),
    ],
)
def test_where_the_line_may_do_no_harm(source: str) -> None:
    check_nothing(LauncherVariableOverwritten, source, files={**JOB, "parts.py": "import torch\n\ngpu = torch.device('cuda')\n"})


def test_in_a_file_that_the_script_imports() -> None:
    check_nothing(
        LauncherVariableOverwritten, SOURCE, files={"run.sh": "torchrun --nproc_per_node=4 start.py\n", "start.py": "x = 1\n"}
    )
