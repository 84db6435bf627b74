"""DDP715: constants over what torchrun has given each process."""

from __future__ import annotations

import pytest

from codemods.launch.launcher_variable_overwritten import LauncherVariableOverwritten
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = LauncherVariableOverwritten
JOB = {"run.sh": "torchrun --nproc_per_node=4 module.py --epochs 3\n"}
HEAD = "import os\n\nimport torch.distributed as dist\n\n\n"
TAIL = '\n\nif __name__ == "__main__":\n    main()\n'
GROUP = 'dist.init_process_group("nccl")'
PORT = 'os.environ["MASTER_PORT"] = "12355"'
KEPT = 'os.environ.setdefault("MASTER_PORT", "12355")'


def program(*lines: str, above: str = "") -> str:
    return f"{HEAD}{above}def main():\n" + "".join(f"    {line}\n" for line in lines) + TAIL


def job(command: str) -> dict[str, str]:
    return {"run.sh": f"{command}\n"}


def test_the_port_is_kept() -> None:
    before = program("# where the ranks meet", f"{PORT}  # any free one", GROUP)
    after = program("# where the ranks meet", f"{KEPT}  # any free one", GROUP)
    (found,) = check_transformed(RULE, before, after, files=JOB)
    assert found.severity == "hang"
    assert "waits in init_process_group for one that nobody opens" in found.message


@pytest.mark.parametrize(
    "command",
    [
        "python -m torch.distributed.launch --nproc_per_node=2 --use_env module.py",
        "torchrun --standalone --nproc-per-node=gpu module.py",
        "torchrun --nproc_per_node 2 --master_port 29777 module.py",
        "srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_endpoint=node1:29999 --rdzv_backend=c10d module.py",
        "$PYTHON -m torch.distributed.run module.py",
    ],
)
def test_each_launcher_of_torch_has_a_store_at_a_port_of_its_own(command: str) -> None:
    check_transformed(RULE, program(PORT, GROUP), program(KEPT, GROUP), files=job(command))


def test_in_a_function_that_the_program_calls() -> None:
    helper = f"import os\n\nimport torch.distributed as dist\n\n\ndef set_up():\n    {PORT}\n    {GROUP}\n"
    main = "from module import set_up\n\n\ndef main():\n    set_up()\n\n\nif __name__ == '__main__':\n    main()\n"
    files = {"run.sh": "torchrun --nproc_per_node=2 train.py\n", "train.py": main}
    check_transformed(RULE, helper, helper.replace(PORT, KEPT), files=files)


def test_the_group_may_be_started_by_another_function_behind_it() -> None:
    above = f"def begin():\n    if not dist.is_initialized():\n        {GROUP}\n\n\n"
    check_transformed(RULE, program(PORT, "begin()", above=above), program(KEPT, "begin()", above=above), files=JOB)


def test_each_process_is_a_group_of_its_own() -> None:
    before = program("os.environ['RANK'] = '0'", "os.environ['WORLD_SIZE'] = '1'", GROUP)
    after = program("os.environ.setdefault('RANK', '0')", "os.environ.setdefault('WORLD_SIZE', '1')", GROUP)
    (found,) = check_transformed(RULE, before, after, files=JOB, unsafe=True)
    assert found.severity == "data"
    assert "each is rank 0 of a group of its own, and works alone" in found.message


def test_all_are_rank_0() -> None:
    (found,) = findings_of(RULE, program("os.environ['RANK'] = str(0)", GROUP), JOB)
    assert found.severity == "hang" and "all are rank 0, and wait" in found.message


def test_one_number_of_processes_for_a_second_rank() -> None:
    (found,) = findings_of(RULE, program("os.environ['WORLD_SIZE'] = '1'", GROUP), JOB)
    assert found.severity == "crash" and "their rank is not below 1" in found.message


def test_all_take_the_first_gpu() -> None:
    device = "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))"
    source = "import torch\n" + program("os.environ['LOCAL_RANK'] = '0'", GROUP, device)
    (found,) = findings_of(RULE, source, JOB)
    assert found.severity == "crash" and "take the first GPU" in found.message


OPTIONS = (
    "import argparse\n"
    + program(
        "parser = argparse.ArgumentParser()", "parser.add_argument('--rank', type=int, default=0)",
        "parser.add_argument('--port', default='12355')", "args = parser.parse_args()",
        "os.environ['RANK'] = str(args.rank)", "os.environ['MASTER_PORT'] = args.port", GROUP,
    )
)  # fmt: skip


def test_the_default_of_an_option_that_the_command_leaves_out() -> None:
    after = OPTIONS.replace("os.environ['RANK'] = str(args.rank)", "os.environ.setdefault('RANK', str(args.rank))")
    after = after.replace("os.environ['MASTER_PORT'] = args.port", "os.environ.setdefault('MASTER_PORT', args.port)")
    (found,) = check_transformed(RULE, OPTIONS, after, files=JOB, unsafe=True)
    assert "--rank and --port" in found.reason


@pytest.mark.parametrize(
    "update", ['os.environ.update({"RANK": "0", "WORLD_SIZE": "1"})', 'os.environ.update(RANK="0", WORLD_SIZE="1")',
               'os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}']
)  # fmt: skip
def test_an_update_is_reported(update: str) -> None:
    check_told(RULE, program(update, GROUP), reason="os.environ.setdefault", files=JOB)


def test_a_command_of_a_readme() -> None:
    files = {"README.md": "Train:\n\n```bash\ntorchrun --nproc_per_node=8 module.py\n```\n"}
    check_transformed(RULE, program(PORT, GROUP), program(KEPT, GROUP), files=files)


# What is right


@pytest.mark.parametrize(
    "lines",
    [
        (KEPT, GROUP),
        ('os.environ["MASTER_PORT"] = os.environ.get("MASTER_PORT", "12355")', GROUP),
        ('if "MASTER_PORT" not in os.environ:', f"    {PORT}", GROUP),
        ("if not args.distributed:", f"    {PORT}", GROUP),
        ("try:", "    int(os.environ['RANK'])", "except KeyError:", f"    {PORT}", GROUP),
        ('if "RANK" in os.environ:', f"    {GROUP}", "    return", PORT, GROUP),
        ('os.environ["MASTER_ADDR"] = "localhost"', GROUP),
        ('os.environ["MASTER_PORT"] = "29500"', GROUP),
        ('os.environ["MASTER_PORT"] = str(free_port())', GROUP),
        ('os.environ["RANK"] = os.environ["SLURM_PROCID"]', 'os.environ["WORLD_SIZE"] = os.environ["SLURM_NTASKS"]', GROUP),
        ('os.putenv("RANK", "0")', GROUP),
        (PORT, 'dist.init_process_group("nccl", init_method="tcp://localhost:23456", rank=0, world_size=1)'),
        (PORT, "dist.init_process_group('nccl', store=store, rank=0, world_size=1)"),
        (PORT, 'dist.init_process_group("nccl", init_method=args.dist_url)'),
        (GROUP, PORT),
        (PORT, "subprocess.run(['python', 'serve.py'])", GROUP),
        ('os.environ["RANK"] = "0"', 'dist.init_process_group("nccl", rank=rank, world_size=4)'),
        ('os.environ["LOCAL_RANK"] = "0"', GROUP),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]', 'os.environ["LOCAL_RANK"] = "0"', GROUP,
         'device = int(os.environ["LOCAL_RANK"])'),
        ('os.environ["WORLD_SIZE"] = "4"', GROUP),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_keeps_the_launcher_or_is_not_read(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, "import subprocess\n" + program(*lines), files=JOB)


@pytest.mark.parametrize(
    "command",
    [
        "python module.py",
        "accelerate launch --num_processes 2 module.py",
        "torchrun --nproc_per_node=2 --master_port=12355 module.py",
        "torchrun --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=localhost:12355 module.py",
        "torchrun --nproc_per_node=2 --master_port=$PORT module.py",
        "torchrun --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=$HOST module.py",
        "torchrun $OPTIONS module.py",
        "torchrun --nproc_per_node=2 other.py",
        "echo torchrun --nproc_per_node=2 module.py",
    ],
)
def test_nothing_is_said_where_no_launcher_of_torch_is_shown_to_have_another_port(command: str) -> None:
    check_nothing(RULE, program(PORT, GROUP), files={**job(command), "other.py": ""})


def test_nothing_is_said_of_the_rank_of_one_process() -> None:
    source = program("os.environ['RANK'] = '0'", "os.environ['WORLD_SIZE'] = '1'", GROUP)
    by_variable = "GPUS=1\ntorchrun --nproc_per_node=$GPUS module.py"
    for command in ("torchrun module.py", "torchrun --nproc_per_node=1 module.py", by_variable):
        check_nothing(RULE, source, files=job(command))


@pytest.mark.parametrize(
    "command", ["torchrun --nproc_per_node=2 module.py --rank 3 --port 29500", 'torchrun --nproc_per_node=2 module.py "$@"']
)
def test_nothing_is_said_of_options_that_the_command_may_give(command: str) -> None:
    check_nothing(RULE, OPTIONS, files=job(command))


def test_nothing_is_said_of_an_option_that_is_given_another_value() -> None:
    first = "    os.environ['RANK']"
    given = "    args.rank = args.port = int(os.environ['RANK'])\n"
    check_nothing(RULE, OPTIONS.replace(first, f"{given}{first}"), files=JOB)


def test_nothing_is_said_of_a_program_that_spawns_its_ranks() -> None:
    worker = (
        "import os\n\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\ndef worker(rank, size):\n"
        f"    {PORT}\n    dist.init_process_group('nccl', rank=rank, world_size=size)\n\n\ndef main():\n"
        f"    {PORT}\n    mp.spawn(worker, args=(2,), nprocs=2)\n"
    )
    check_nothing(RULE, worker + TAIL, files=JOB)


@pytest.mark.parametrize(
    ("command", "torch"),
    [
        ("torchrun --nproc_per_node=2 module.py", "torch==1.8.1"),
        ("torchrun --standalone --nproc_per_node=2 module.py", "torch>=2.0"),
        ("torchrun --nproc_per_node=2 module.py", "torch>=2.14"),
    ],
)
def test_nothing_is_said_for_a_torch_whose_ranks_may_open_the_port(command: str, torch: str) -> None:
    check_nothing(RULE, program(PORT, GROUP), files={**job(command), "requirements.txt": f"{torch}\n"})


def test_nothing_is_said_of_a_place_in_a_method_or_of_one_that_nobody_calls() -> None:
    method = f"{HEAD}class Run:\n    def begin(self):\n        {PORT}\n        {GROUP}\n"
    check_nothing(RULE, f"{method}\n\nif __name__ == '__main__':\n    Run().begin()\n", files=JOB)
    unused = f"{HEAD}def begin():\n    {PORT}\n    {GROUP}\n"
    check_nothing(RULE, f"{unused}\n\nif __name__ == '__main__':\n    print('no group')\n", files=JOB)


def test_nothing_is_said_in_a_test_of_the_repository() -> None:
    files = {"run.sh": "torchrun --nproc_per_node=2 tests/test_group.py\n"}
    assert not findings_of(RULE, program(PORT, GROUP), files, path="tests/test_group.py")
