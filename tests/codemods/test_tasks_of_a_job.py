"""DDP716: jobs whose tasks are not those of their launcher or their Trainer."""

from __future__ import annotations

import pytest

from codemods.launch.tasks_of_a_job import TasksOfAJob
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = TasksOfAJob
LAUNCH = "srun torchrun --nproc_per_node=4 train.py"


def job(*options: str, command: str = LAUNCH) -> str:
    return "#!/bin/bash\n" + "".join(f"#SBATCH {o}\n" for o in options) + f"\n{command}\n"


def lines_of(source: str, files: dict[str, str] | None = None) -> list[str]:
    return [f.message for f in findings_of(RULE, source, files, path="run.sbatch")]


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (("--nodes=1", "--ntasks-per-node=4"), LAUNCH),
        (("-N 2", "--ntasks-per-node 4 # one for each GPU"), LAUNCH),
        (("--nodes=1", "--ntasks=4"), LAUNCH),
        (("--tasks-per-node=4",), "srun --export=ALL -u python -m torch.distributed.run --nproc-per-node 4 train.py"),
        (("--ntasks-per-node=4", "--gres=gpu:a100:4"), "srun torchrun --standalone --nproc_per_node=gpu train.py"),
        (("--ntasks-per-node=4", "--gpus-per-node=4"), "srun torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE train.py"),
        (("--ntasks-per-node=4",), "srun torchrun --nproc_per_node=${SLURM_NTASKS_PER_NODE} train.py"),
        (("--ntasks-per-node=1",), "srun --ntasks-per-node=4 torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun torchrun \\\n    --nproc_per_node=4 \\\n    train.py"),
    ],
)
def test_each_task_is_a_launcher(options: tuple[str, ...], command: str) -> None:
    (message,) = lines_of(job(*options, command=command))
    assert message.startswith("srun starts 4 tasks on each node, and each of them is a torchrun that starts 4 processes: 16 on")
    assert message.endswith("where 4 trainings run beside each other")


def test_with_a_port_the_others_find_it_in_use() -> None:
    command = "srun python -m torch.distributed.launch --nproc_per_node=4 --master_port=29511 --use_env train.py"
    source = job("--ntasks-per-node=4", command=command)
    found = check_told(RULE, source, reason="ask for one task on each node", path="run.sbatch")
    assert "is a torch.distributed.launch that starts 4 processes" in found.message
    assert "one launcher has the port, and the others end with an error" in found.message
    assert [e.line for e in found.evidence] == [2]


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (("--ntasks-per-node=1",), LAUNCH),
        (("--nodes=2",), LAUNCH),
        (("--nodes=2", "--ntasks=2"), LAUNCH),
        (("--ntasks=4",), LAUNCH),  # on how many nodes is not said
        (("--nodes=4", "--ntasks=4", "--ntasks-per-node=4"), LAUNCH),
        (("--ntasks-per-node=4",), "torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun --ntasks-per-node=1 torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun -n 1 torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun -N $SLURM_NNODES -n $SLURM_NNODES torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun $OPTIONS torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun torchrun --nproc_per_node=1 --nnodes=$SLURM_NTASKS train.py"),
        (("--ntasks-per-node=2",), LAUNCH),
        (("--ntasks-per-node=4",), "srun torchrun --nproc_per_node=4 --node_rank=$SLURM_PROCID train.py"),
        (("--ntasks-per-node=4", "--gpus-per-task=4"), LAUNCH),
        (("--ntasks-per-node=4", "--gpus-per-node=8"), "srun torchrun --nproc_per_node=gpu train.py"),
        (("--ntasks-per-node=4",), "GPUS=4\nsrun torchrun --nproc_per_node=$GPUS train.py"),  # people change it
        (("--ntasks-per-node=4",), "unset SLURM_NTASKS_PER_NODE\nsrun torchrun --nproc_per_node=4 train.py"),
        (("--ntasks-per-node=4",), "srun python train.py"),
        (("--ntasks-per-node=4",), "echo srun torchrun --nproc_per_node=4 train.py"),
    ],
)
def test_nothing_is_said_of_one_launcher_on_each_node(options: tuple[str, ...], command: str) -> None:
    check_nothing(RULE, job(*options, command=command), path="run.sbatch")


# Lightning


def trainer(given: str = "devices=4", more: str = "") -> dict[str, str]:
    return {"train.py": f"import lightning as L\n\ntrainer = L.Trainer(max_epochs=3, {given})\n{more}trainer.fit(Net())\n"}


RUN = "srun python train.py"


@pytest.mark.parametrize("given", ["devices=4", "devices='4', strategy='ddp'", "devices=[0, 1, 2, 3], num_nodes=2"])
def test_the_trainer_is_told_of_another_number(given: str) -> None:
    source = job("--nodes=2", "--ntasks-per-node=2", command=RUN)
    found = check_told(RULE, source, reason="give both the same number", files=trainer(given), path="run.sbatch")
    assert "srun starts 2 tasks on each node, and the Trainer of train.py is given 4 devices" in found.message
    assert [(e.path, e.line) for e in found.evidence] == [("run.sbatch", 3), ("train.py", 3)]


def test_one_task_for_four_devices() -> None:
    (message,) = lines_of(job("--ntasks-per-node=1", command=RUN), trainer())
    assert message.startswith("srun starts 1 task on each node")


@pytest.mark.parametrize(
    "given",
    ["devices=2", "devices=1", "devices=args.devices", "devices='auto'", "devices=-1",
     "devices=4, plugins=[LightningEnvironment()]", "devices=4, strategy='ddp_spawn'",
     "devices=4, strategy=chosen", "devices=4, **more"],
)  # fmt: skip
def test_nothing_is_said_of_a_trainer_that_fits_or_is_not_known(given: str) -> None:
    check_nothing(RULE, job("--ntasks-per-node=2", command=RUN), files=trainer(given), path="run.sbatch")


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (("--nodes=2",), RUN),
        (("--nodes=1", "--ntasks=2"), RUN),  # Lightning says something else of it
        (("--ntasks-per-node=2",), "python train.py"),
        (("--ntasks-per-node=2", "--job-name=interactive"), RUN),
        (("--ntasks-per-node=2",), "srun python other.py"),
    ],
)
def test_nothing_is_said_of_another_start(options: tuple[str, ...], command: str) -> None:
    check_nothing(RULE, job(*options, command=command), files={**trainer(), "other.py": ""}, path="run.sbatch")


def test_nothing_is_said_of_one_of_two_trainers_or_of_an_older_lightning() -> None:
    source = job("--ntasks-per-node=2", command=RUN)
    check_nothing(RULE, source, files=trainer(more="tester = L.Trainer(devices=1)\n"), path="run.sbatch")
    check_nothing(RULE, source, files={**trainer(), "requirements.txt": "lightning>=2.0\n"}, path="run.sbatch")


def test_nothing_is_said_in_a_test_of_the_repository() -> None:
    check_nothing(RULE, job("--ntasks-per-node=4"), path="tests/run.sbatch")


READS = """\
import os

import torch.distributed as dist


def setup():
    local = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
    return local


if __name__ == "__main__":
    setup()
"""
SRUN = job("--nodes=2", "--ntasks-per-node=4", command="srun --mpi=pmi2 \\\n    python -u train.py --epochs 3")


def test_srun_sets_no_variables_of_torchrun() -> None:
    (message,) = lines_of(SRUN, {"train.py": READS})
    assert message == "srun sets SLURM_LOCALID, and no LOCAL_RANK: each task of train.py ends with KeyError in line 7"
    (message,) = lines_of(SRUN, {"train.py": READS.replace('int(os.environ["LOCAL_RANK"])', "0")})
    assert message == "srun sets SLURM_PROCID, and no RANK: each task of train.py ends with ValueError in line 8"


@pytest.mark.parametrize(
    ("source", "train"),
    [
        (SRUN.replace("srun", "export LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID\nsrun", 1), READS),
        (SRUN.replace("\nsrun", "\nsource cluster.env\nsrun", 1), READS),  # it may set them
        (SRUN.replace("python -u", "torchrun --nproc_per_node=2"), READS),
        (SRUN.replace("srun --mpi=pmi2 \\\n    ", ""), READS),  # not by srun
        (SRUN, READS.replace("import os\n", 'import os\n\nos.environ["RANK"] = os.environ["SLURM_PROCID"]\n')),
        (SRUN, READS.replace("import os\n", "import os\nimport deepspeed\n")),
        (SRUN, READS.replace('os.environ["LOCAL_RANK"]', 'os.environ.get("LOCAL_RANK", 0)').replace('"nccl"', '"nccl", store=S')),
        (SRUN, READS.replace("    setup()", "    if os.environ.get('RANK'):\n        setup()")),  # asked for first
        (SRUN, READS.replace("    setup()", "    main()")),  # not called
    ],
)
def test_variables_that_may_be_there(source: str, train: str) -> None:
    assert not lines_of(source, {"train.py": train})


ALONE = "srun python -m torch.distributed.run --standalone --nproc_per_node=gpu train.py --out runs"
OWN_GPUS = ("--nodes=1", "--ntasks-per-node=4", "--gpus-per-task=1")
TAKEN = "import os\n\nrank = int(os.environ['SLURM_PROCID'])\n"


@pytest.mark.parametrize("script", ["import torch\n", TAKEN])
def test_launchers_that_stand_alone_in_tasks_with_gpus_of_their_own(script: str) -> None:
    (message,) = lines_of(job(*OWN_GPUS, command=ALONE), {"train.py": script})
    assert "each of them is a torchrun of its own (`--standalone`): 4 trainings run beside each other" in message


@pytest.mark.parametrize(
    ("options", "command", "script"),
    [
        (OWN_GPUS, f"{ALONE} --seed $SLURM_PROCID", "import torch\n"),
        (OWN_GPUS, ALONE, TAKEN.replace("rank", "fold")),  # the script tells its task apart
        (OWN_GPUS, ALONE.replace("srun ", ""), "import torch\n"),
        (OWN_GPUS, ALONE.replace("--standalone ", "--rdzv_endpoint=$HOST:29500 --nnodes=4 "), "import torch\n"),
        (("--ntasks-per-node=1", "--gpus-per-task=4"), ALONE, "import torch\n"),
        (OWN_GPUS, ALONE.replace("srun", "srun -n 1 -N 1"), "import torch\n"),
        (OWN_GPUS, ALONE.replace("train.py", "absent.py"), "import torch\n"),
    ],
)
def test_tasks_that_are_meant_or_told_apart(options: tuple[str, ...], command: str, script: str) -> None:
    check_nothing(RULE, job(*options, command=command), path="run.sbatch", files={"train.py": script})
