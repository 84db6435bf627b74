"""DDP305: a rank that ends with an error by its own data, where the launcher lets the others run on."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = OneRankDecision
HEAD = """\
import math
import sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def train(model, data, optimizer):
    model = torch.nn.parallel.DistributedDataParallel(model)
    for batch in DataLoader(data, sampler=DistributedSampler(data)):
        loss = model(batch).mean()
"""
TAIL = """\
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    train(*build())
"""
EXIT = """\
        value = loss.item()
        if not math.isfinite(value):
            print(f"the loss is {value}")
            sys.exit(1)
"""
REDUCED = """\
        value = loss.item()
        stop = torch.tensor(float(not math.isfinite(value)), device=loss.device)
        if dist.is_initialized():
            dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop.item() > 0:
            print(f"the loss is {value}")
            sys.exit(1)
"""
PROGRAM = HEAD + EXIT + TAIL
JOB = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\n\nsrun python fit.py --epochs 3\n"
OLD = {"README.md": "```\npython -m torch.distributed.launch --nproc_per_node=8 fit.py\n```\n"}


def repaired(source: str, files: dict[str, str]) -> None:
    [found] = findings_of(RULE, source, files, path="fit.py")
    assert found.applicability is Applicability.UNSAFE and "does not end the others" in found.message
    assert found.evidence[0].path in files


def with_exit(lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in lines.splitlines()) + TAIL


def test_an_exit_under_srun() -> None:
    files = {"jobs/train.sh": JOB}
    check_transformed(RULE, PROGRAM, HEAD + REDUCED + TAIL, unsafe=True, files=files, path="fit.py")


@pytest.mark.parametrize(
    "lines",
    [
        "if not math.isfinite(loss.item()):\n    raise ValueError('no number')",
        "if torch.isnan(loss):\n    raise RuntimeError('no number')",
        "if torch.isnan(loss):\n    print('no number')\n    sys.exit(-1)",
        "if torch.isnan(loss).any() or torch.isinf(loss).any():\n    quit('no number')",
    ],
)
@pytest.mark.parametrize(
    "files",
    [
        {"train.slurm": JOB},
        {"train.sh": "#SBATCH --ntasks=16 --nodes=2\nsrun --cpu-bind=none \\\n    python -u fit.py\n"},
        {"README.md": "Start it by\n```\nsrun -p gpu -n8 --gres=gpu:8 --ntasks-per-node=8 python -m fit\n```\n"},
        {"train.sh": "#SBATCH --ntasks-per-node=$N\nsrun /opt/conda/bin/python3 $HOME/fit.py\n"},
        {**OLD, "requirements.txt": "torch==1.7.1\n"},
        {**OLD, "environment.yaml": "dependencies:\n  - pytorch=1.6.0\n"},
        {**OLD, "INSTALL.md": "The code was written with Python 3.7 and PyTorch 1.7.1.\n"},
        {"train.sh": "python3 -m torch.distributed.launch --nproc_per_node 4 --use_env $DIR/fit.py\n", "setup.py":
         "from setuptools import setup\nsetup(name='x', install_requires=['torch==1.5.0'])\n"},
    ],
)  # fmt: skip
def test_starts_under_which_the_others_run_on(lines: str, files: dict[str, str]) -> None:
    repaired(with_exit(lines), files)


SUBMIT = """\
import submitit


class Job:
    def __call__(self):
        import fit
        fit.main()


def main(gpus):
    executor = submitit.AutoExecutor(folder="logs")
    executor.update_parameters(tasks_per_node=GPUS, gpus_per_node=gpus, nodes=2)
    executor.submit(Job())
"""
PARENT = """\
import torch.distributed as dist
from multiprocessing import Process

from fit import train


def worker(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    train(*build())


if __name__ == "__main__":
    children = []
    for rank in range(4):
        child = Process(target=worker, args=(rank, 4))
        child.start()
        children.append(child)
    for child in children:
        WAIT
"""


def test_an_exit_in_a_file_that_submitit_starts() -> None:
    repaired(PROGRAM, {"submit.py": SUBMIT.replace("GPUS", "gpus")})
    check_nothing(RULE, PROGRAM, files={"submit.py": SUBMIT.replace("GPUS", "1")}, path="fit.py")
    ends = SUBMIT.replace("GPUS", "gpus, slurm_srun_args=['--kill-on-bad-exit=1']")
    check_nothing(RULE, PROGRAM, files={"submit.py": ends}, path="fit.py")
    check_nothing(RULE, PROGRAM, files={"submit.py": SUBMIT.replace("GPUS", "gpus").replace("fit", "other")}, path="fit.py")


def test_an_exit_of_a_child_that_the_parent_joins_in_turn() -> None:
    repaired(PROGRAM, {"run.py": PARENT.replace("WAIT", "child.join()")})
    check_nothing(RULE, PROGRAM, files={"run.py": PARENT.replace("WAIT", "child.join(60)")}, path="fit.py")


def test_a_test_that_stands_in_a_helper() -> None:
    helper = "import math\nimport sys\nimport torch.distributed as dist\n\n\ndef check(loss):\n"
    helper += "    value = loss.item()\n    if not math.isfinite(value):\n        sys.exit(1)\n"
    source = with_exit("check(loss)").replace("import torch\n", "import torch\nfrom checks import check\n")
    files = {"fit.py": source, "train.sh": JOB}
    found = check_told(RULE, helper, reason="`srun --kill-on-bad-exit=1`", files=files, path="checks.py")
    assert "they wait in the next collective" in found.message
    check_nothing(RULE, helper, files={"fit.py": source, "train.sh": "torchrun fit.py\n"}, path="checks.py")


# Nothing to say


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"train.sh": "torchrun --nproc_per_node=8 fit.py\n"},
        {"train.sh": JOB.replace("srun", "srun --kill-on-bad-exit=1")},
        {"train.sh": JOB.replace("srun", "srun -K")},
        {"train.sh": JOB.replace("srun", "srun -W 60")},
        {"train.sh": "export SLURM_KILL_BAD_EXIT=1\n" + JOB},
        {"train.sh": JOB.replace("per-node=8", "per-node=1")},
        {"train.sh": JOB.replace("#SBATCH --ntasks-per-node=8\n", "")},
        {"train.sh": JOB.replace("--ntasks-per-node=8", "--ntasks=2")},
        {"train.sh": JOB.replace("python", "python -m torch.distributed.run")},
        {"train.sh": JOB.replace("python fit.py", "bash -c 'torchrun fit.py'")},
        {"train.sh": JOB.replace("srun", "# srun")},
        {"train.sh": JOB.replace("fit.py", "other.py")},
        {"train.sh": JOB.replace("srun", "mpirun")},
        OLD,
        {**OLD, "requirements.txt": "torch>=1.7\n"},
        {**OLD, "requirements.txt": "torch==1.8.1\n"},
        {**OLD, "requirements.txt": "torch==1.10.0\n", "INSTALL.md": "It was written with PyTorch 1.7.1.\n"},
        {**OLD, "INSTALL.md": "It needs PyTorch 1.6 or newer.\n"},
        {**OLD, "INSTALL.md": "It needs PyTorch >= 1.6, PyTorch 1.6+.\n"},
        {**OLD, "INSTALL.md": "It was run with PyTorch 1.7.1 and PyTorch 1.12.\n"},
        {"README.md": "torchrun fit.py\n", "requirements.txt": "torch==1.7.1\n"},
    ],
)
def test_starts_that_end_the_others_or_are_not_shown(files: dict[str, str]) -> None:
    check_nothing(RULE, PROGRAM, files=files, path="fit.py")


@pytest.mark.parametrize(
    "lines",
    [
        "dist.all_reduce(loss)\nif torch.isnan(loss):\n    raise ValueError('no number')",  # all ranks ask the same
        "if len(data) == 0:\n    raise ValueError('no data')",
        "if batch.shape[0] > 3:\n    raise ValueError('too many')",
        "try:\n    if torch.isnan(loss):\n        raise ValueError('no number')\nexcept ValueError:\n    loss = loss * 0",
        "if dist.get_rank() == 0:\n    if torch.isnan(loss):\n        raise ValueError('no number')",
    ],
)
def test_exits_that_say_nothing_of_one_rank(lines: str) -> None:
    check_nothing(RULE, with_exit(lines), files={"train.sh": JOB}, path="fit.py")


@pytest.mark.parametrize(
    ("made", "name", "told"),
    [
        ("{name} = meters.totals()", "loss_reduced", False),
        ("{name} = {{k: v.item() / ranks.count() for k, v in meters.totals().items()}}", "loss_dict_reduced", False),
        ("{name} = meters.totals()", "reduced_loss", False),
        ("{name} = meters.totals()", "total_loss", True),
        ("{name} = meters.totals()", "loss_irreducible", True),
    ],
)
def test_a_name_that_says_that_the_loss_was_reduced(made: str, name: str, told: bool) -> None:
    lines = f"{made.format(name=name)}\nif math.isnan({name}):\n    sys.exit(1)"
    source = with_exit(lines).replace("import torch\n", "import torch\nfrom package import meters, ranks\n", 1)
    assert bool(findings_of(RULE, source, {"train.sh": JOB}, path="fit.py")) is told
