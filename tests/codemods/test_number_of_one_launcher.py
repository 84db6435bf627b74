"""DDP712: a number that only one launcher's branch sets."""

from __future__ import annotations

import pytest

from codemods.launch.number_of_one_launcher import NumberOfOneLauncher
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = NumberOfOneLauncher
HEAD = "import os\nimport sys\nimport torch\nimport torch.distributed as dist\n\n\ndef begin(args):\n"
TORCHRUN = (
    "    if 'RANK' in os.environ:\n        args.rank = int(os.environ['RANK'])\n"
    "        args.world_size = int(os.environ['WORLD_SIZE'])\n"
)
SLURM = "    elif 'SLURM_PROCID' in os.environ:\n        args.rank = int(os.environ['SLURM_PROCID'])\n"
START = "    dist.init_process_group('nccl', world_size=args.world_size, rank=args.rank)\n"
TASKS = '        args.world_size = int(os.environ["SLURM_NTASKS"])\n'


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    "behind",
    [
        "",
        "    else:\n        sys.exit('start this with srun')\n",
        "    elif torch.cuda.is_available():\n        args.rank, args.world_size = 0, 1\n",
    ],
)
def test_the_tasks_of_slurm(behind: str) -> None:
    before = HEAD + TORCHRUN + SLURM + behind + START
    check_transformed(RULE, before, before.replace(SLURM, SLURM + TASKS), unsafe=True)


def test_what_the_launcher_of_torch_sets() -> None:
    before = (
        f"{HEAD}    if args.local_rank != -1:\n        args.gpu = args.local_rank\n    elif 'SLURM_LOCALID' in os.environ:\n"
        "        args.gpu = int(os.environ['SLURM_LOCALID'])\n        args.rank = int(os.environ['SLURM_PROCID'])\n"
        "    dist.init_process_group('nccl', world_size=8, rank=args.rank)\n"
    )
    given = "        args.gpu = args.local_rank\n"
    check_transformed(RULE, before, before.replace(given, f'{given}        args.rank = int(os.environ["RANK"])\n'), unsafe=True)


def test_a_branch_that_is_told() -> None:
    rank = "        args.rank = int(os.environ['SLURM_NODEID']) * torch.cuda.device_count() + args.local\n"
    slurm = "    elif 'SLURM_PROCID' in os.environ:\n        print(os.environ['SLURM_PROCID'])\n" + rank
    check_told(RULE, HEAD + TORCHRUN + slurm + START, reason="in every branch")


def test_a_device_that_one_branch_sets() -> None:
    torchrun = TORCHRUN + "        args.gpu = int(os.environ['LOCAL_RANK'])\n"
    slurm = SLURM + "        args.world_size = int(os.environ['SLURM_NTASKS'])\n"
    source = HEAD + torchrun + slurm + "    torch.cuda.set_device(args.gpu)\n" + START
    check_told(RULE, source, reason="set `args.gpu` in every branch")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SLURM, SLURM + TASKS),
        (SLURM, SLURM + "        raise SystemExit('not under Slurm')\n"),
        (SLURM, SLURM + "        return\n"),
        (SLURM, SLURM + "        fill(args)\n"),
        (SLURM, SLURM + "        setattr(args, 'world_size', 8)\n"),
        (START, "    dist.init_process_group('nccl')\n"),
        (START, "    if 'RANK' in os.environ:\n    " + START),
        (START, START + "\n\ndef parser(p):\n    p.add_argument('--world_size', default=1)\n"),
        (START, START + "\n\ndef parser(p):\n    p.add_argument('--world-size', default=1)\n"),
        (START, START + "\n\ndef main(args):\n    args.world_size = 1\n    begin(args)\n"),
        ("def begin(args):\n", "def begin(args):\n    args.world_size = 1\n"),
        ("'SLURM_PROCID' in os.environ", "args.single"),
    ],
)
def test_numbers_that_are_there(old: str, new: str) -> None:
    source = HEAD + TORCHRUN + SLURM + START
    assert old in source
    check_nothing(RULE, source.replace(old, new))


def test_a_number_from_elsewhere() -> None:
    source = HEAD + TORCHRUN + SLURM + START
    check_nothing(RULE, source, files={"configs/a.yaml": "world_size: 8\n"})
    check_nothing(RULE, source, files={"options.py": "def add(p):\n    p.add_argument('--world_size', type=int)\n"})
    main = "from module import begin\n\n\ndef main(args):\n    args.world_size = 1\n    begin(args)\n"
    check_nothing(RULE, source, files={"main.py": main})
    check_nothing(RULE, source, path="tests/test_run.py")


def test_the_caller_in_the_same_file() -> None:
    before = HEAD + TORCHRUN + SLURM + START + "\n\ndef main(args):\n    begin(args)\n"
    check_transformed(RULE, before, before.replace(SLURM, SLURM + TASKS), unsafe=True)


def test_a_setting_of_another_file_and_a_copy_of_the_helper() -> None:
    source = HEAD + TORCHRUN + SLURM + START
    check_nothing(RULE, source, files={"config.py": "from yacs.config import CfgNode\n\n_C = CfgNode()\n_C.world_size = 1\n"})
    copy = {"other.py": source.replace("def begin", "def start")}
    check_transformed(RULE, source, source.replace(SLURM, SLURM + TASKS), unsafe=True, files=copy)


def test_a_helper_that_no_program_calls() -> None:
    source = HEAD + TORCHRUN + SLURM + START
    main = "from {} import {}\n\n\nif __name__ == '__main__':\n    {}(parsed())\n"
    check_nothing(RULE, source, files={"main.py": main.format("other", "run", "run")})
    called = {"main.py": main.format("module", "begin", "begin")}
    check_transformed(RULE, source, source.replace(SLURM, SLURM + TASKS), unsafe=True, files=called)


def test_a_field_that_a_class_of_settings_gives() -> None:
    main = "from helper import begin\nfrom settings import Settings\n\nsettings = Settings()\nbegin(settings)\n"
    given = "class Settings:\n    def __init__(self):\n        self.world_size = 1\n"
    source = HEAD + TORCHRUN + SLURM + START
    check_nothing(RULE, source, files={"main.py": main, "settings.py": given}, path="helper.py")
    other = given.replace("world_size", "epochs")
    assert findings_of(RULE, source, {"main.py": main, "settings.py": other}, path="helper.py")
