"""DDP702: commands of torch.distributed.launch, written for torchrun together with what makes the script ready."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.launch.torch_distributed_launch import TorchDistributedLaunch
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = TorchDistributedLaunch
HEAD = "import argparse\nimport os\n\nimport torch\n\nparser = argparse.ArgumentParser()\n"
TAIL = "args = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)\n"
READY = f"{HEAD}parser.add_argument('--local_rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))\n{TAIL}"
OPTION = "parser.add_argument('--local_rank', type=int, default=0)\n"
OLD = f"{HEAD}{OPTION}{TAIL}"
NEW = OLD.replace("'--local_rank'", "'--local_rank', '--local-rank'").replace(
    "default=0", "default=int(os.environ.get('LOCAL_RANK', 0))"
)
FILES = {"train.py": READY}
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2"


def told(source: str, reason: str, files: dict[str, str], *, path: str = "run.sh") -> None:
    (found,) = findings_of(RULE, source, files, path=path)
    assert found.applicability is Applicability.DISPLAY
    assert reason in found.reason


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```bash\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, path="run.sh")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{LAUNCH} train.py --lr 1", "torchrun --nproc_per_node=2 train.py --lr 1"),
        (f"CUDA_VISIBLE_DEVICES=0,1 nohup {LAUNCH} train.py > log 2>&1 &",
         "CUDA_VISIBLE_DEVICES=0,1 nohup torchrun --nproc_per_node=2 train.py > log 2>&1 &"),
        ("srun python3 -m torch.distributed.launch --nnodes $N --node_rank=$R --master_addr a --master-port 1 train.py",
         "srun torchrun --nnodes $N --node_rank=$R --master_addr a --master-port 1 train.py"),
        ("python -u -m torch.distributed.launch --use_env train.py", "python -u -m torch.distributed.run train.py"),
        ("$PYTHON -m torch.distributed.launch --use-env --nproc_per_node 2 train.py",
         "$PYTHON -m torch.distributed.run --nproc_per_node 2 train.py"),
        ("/opt/bin/python -m torch.distributed.launch train.py", "/opt/bin/python -m torch.distributed.run train.py"),
        (f"{LAUNCH} \\\n    --use_env \\\n    train.py \\\n    --lr 1",
         "torchrun --nproc_per_node=2 \\\n    train.py \\\n    --lr 1"),
        ("python -m torch.distributed.launch \\\n    --use_env --nproc_per_node=2 train.py",
         "torchrun --nproc_per_node=2 train.py"),
        (f"{LAUNCH} ./train.py \"$@\"", 'torchrun --nproc_per_node=2 ./train.py "$@"'),
        (f"{LAUNCH} $CODE/train.py", "torchrun --nproc_per_node=2 $CODE/train.py"),
        ("ARGS=\"--nproc_per_node 2\"\npython -m torch.distributed.launch $ARGS train.py",
         "ARGS=\"--nproc_per_node 2\"\ntorchrun $ARGS train.py"),
        (f"{LAUNCH} --use_env $SCRIPT --lr 1", "torchrun --nproc_per_node=2 $SCRIPT --lr 1"),
    ],
)  # fmt: skip
def test_commands_of_a_shell(before: str, after: str) -> None:
    check_transformed(RULE, f"set -e\n{before}\n", f"set -e\n{after}\n", path="run.sh", files=FILES)


def test_a_module_and_a_script_beside_the_file() -> None:
    check_transformed(RULE, f"{LAUNCH} -m pack.main\n", "torchrun --nproc_per_node=2 -m pack.main\n", path="run.sh",
                      files={"pack/__init__.py": "", "pack/main.py": READY})  # fmt: skip
    before = f"{LAUNCH} $(dirname \"$0\")/train.py $1 ${{@:3}}\n"
    check_transformed(RULE, before, before.replace("python -m torch.distributed.launch", "torchrun"), path="tools/dist.sh",
                      files={"tools/train.py": READY, "train.py": OLD})  # fmt: skip


def test_in_other_files() -> None:
    check_transformed(RULE, f"train:\n\t@{LAUNCH} train.py\n", "train:\n\t@torchrun --nproc_per_node=2 train.py\n",
                      path="Makefile", files=FILES)  # fmt: skip
    document = f"Say `{LAUNCH} train.py`, or:\n\n1. so\n\n   ```bash\n   $ {LAUNCH} --use_env train.py\n   ```\n"
    check_transformed(RULE, document, document.replace(f"$ {LAUNCH} --use_env", "$ torchrun --nproc_per_node=2"),
                      path="README.md", files=FILES)  # fmt: skip
    image = f'FROM a\nRUN {LAUNCH} train.py\nCMD ["python", "-m", "torch.distributed.launch", "--use_env", "train.py"]\n'
    new = 'FROM a\nRUN torchrun --nproc_per_node=2 train.py\nCMD ["torchrun", "train.py"]\n'
    check_transformed(RULE, image, new, path="docker/Dockerfile", files=FILES)
    job = f"run:\n  command: >-\n    {LAUNCH}\n    --use_env\n    train.py\n"
    job += "  args: [python, -m, torch.distributed.launch, train.py]\n"
    new = "run:\n  command: >-\n    torchrun --nproc_per_node=2\n    train.py\n  args: [torchrun, train.py]\n"
    check_transformed(RULE, job, new, path="job.yaml", files=FILES)


def test_lists_of_a_program() -> None:
    before = "import sys\nc = [sys.executable, '-m', 'torch.distributed.launch', f'--nproc_per_node={n}', 'train.py']\n"
    check_transformed(RULE, before, before.replace("distributed.launch", "distributed.run"), files=FILES)
    before = 'c = ["python", "-m", "torch.distributed.launch", "--use_env", script]\n'
    check_transformed(RULE, before, 'c = ["python", "-m", "torch.distributed.run", script]\n')


def test_the_script_is_made_ready_in_the_same_fix() -> None:
    new = {"train.py": NEW}
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"train.py": OLD}, changed=new)  # fmt: skip
    needed = OLD.replace("default=0", "required=True")
    new = {"train.py": NEW.replace("int(os.environ.get('LOCAL_RANK', 0))", "os.environ.get('LOCAL_RANK')")}
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"train.py": needed}, changed=new)  # fmt: skip


NEW_TORCH = {"requirements.txt": "torch>=2.1\n"}  # which warns at each start, whatever the script takes


def test_an_option_for_each_spelling_is_left_to_the_user() -> None:
    """argparse ends each start where two options of a parser have a spelling in common."""
    two = OLD.replace(OPTION, OPTION + OPTION.replace("local_rank", "local-rank"))
    assert "--local-rank" in two
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": two, **NEW_TORCH})
    other = f"import argparse\n\n\ndef add_to(parser):\n    {OPTION.replace('local_rank', 'local-rank')}"
    apart = "import options\n" + OLD.replace(OPTION, f"{OPTION}options.add_to(parser)\n")
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": apart, "options.py": other, **NEW_TORCH})


def test_each_of_two_parsers_gets_both_spellings() -> None:
    again = "other = argparse.ArgumentParser()\n" + OPTION.replace("parser.", "other.")
    two = OLD.replace(OPTION, OPTION + again)
    (found,) = findings_of(RULE, f"{LAUNCH} train.py\n", {"train.py": two}, path="run.sh")
    assert sum("'--local_rank', '--local-rank'" in getattr(e, "code", "") for e in found.edits) == 2


@pytest.mark.parametrize(
    "script",
    [
        f"{HEAD}{OPTION}args = parser.parse_args()\nif 'LOCAL_RANK' in os.environ:\n"
        "    args.local_rank = int(os.environ['LOCAL_RANK'])\n",
        f"{HEAD}{OPTION}args = parser.parse_args()\nif 'LOCAL_RANK' not in os.environ:\n"
        "    os.environ['LOCAL_RANK'] = str(args.local_rank)\n",
        "import os\n\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n",
        "import torch\nimport torch.distributed as dist\n\ndist.init_process_group('nccl')\n"
        "torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())\n",
        "from transformers import HfArgumentParser, TrainingArguments\n\n"
        "HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n",
        "import os\nimport sys\n\nif len(sys.argv) == 2 and sys.argv[1].endswith('.json'):\n    print(sys.argv[1])\n"
        "local = os.environ['LOCAL_RANK']\n",
    ],
)
def test_scripts_that_are_ready(script: str) -> None:
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"train.py": script})  # fmt: skip


REFUSED = "passes `--local-rank` since torch 2.0, and the parser at train.py:7 takes `--local_rank` alone"
WORKED_OUT = OLD.replace("default=0", "default=first()")
LENIENT = OLD.replace("parser.parse_args()", "parser.parse_known_args()[0]")
FALLS_BACK = (
    f"{HEAD}parser.add_argument('--local_rank', type=int)\nargs = parser.parse_args()\nif args.local_rank is None:\n"
    "    args.local_rank = int(os.environ.get('LOCAL_RANK', '0'))\ntorch.cuda.set_device(args.local_rank)\n"
)


UNREAD = OLD.replace("args.local_rank", "dist.get_rank()") + "print(vars(args))\n"
IN_MAIN = (
    f"{HEAD}parser.add_argument('--local_rank', type=int)\n\nif __name__ == '__main__':\n    args = parser.parse_args()\n"
    "    if args.local_rank is None:\n        args.local_rank = int(os.environ.get('LOCAL_RANK', '0'))\n"
    "    torch.cuda.set_device(args.local_rank)\n"
)


@pytest.mark.parametrize("script", [UNREAD, IN_MAIN])
def test_a_parser_that_the_program_gets_along_without(script: str) -> None:
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"train.py": script})  # fmt: skip
    kept = UNREAD + "\n\ndef begin(local_rank, **others): ...\n\n\nbegin(**vars(args))\n"
    (found,) = findings_of(RULE, f"{LAUNCH} train.py\n", {"train.py": kept}, path="run.sh")
    assert found.fix is not None and {e.path for e in found.fix.edits} == {"run.sh", "train.py"}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (WORKED_OUT, "os.environ"),
        (OLD.replace("type=int, ", ""), "os.environ"),
        (READY.replace("type=int, ", "required=True, "), "os.environ"),
    ],
)
def test_scripts_that_end_with_torch_2_and_cannot_be_made_ready(script: str, reason: str) -> None:
    (found,) = findings_of(RULE, f"{LAUNCH} train.py\n", {"train.py": script}, path="run.sh")
    assert found.applicability is Applicability.DISPLAY
    assert REFUSED in found.message and reason in found.reason


@pytest.mark.parametrize(
    "script",
    [
        WORKED_OUT.replace("'--local_rank'", "'--local_rank', '--local-rank'"),
        WORKED_OUT.replace("parser.parse_args()", "parser.parse_known_args()[0]"),
        "import sys\n\nlocal = next(a for a in sys.argv if a == '--local_rank')\n",
        "import click\n\n\n@click.command()\n@click.option('--local_rank', type=int)\ndef main(local_rank):\n    pass\n",
        "import fire\n\n\ndef main(local_rank: int = 0):\n    pass\n\n\nfire.Fire(main)\n",
        "import sys\n\nname = sys.argv[1]\n",
        "print('rank 0')\n",
        "import os\nimport torch.multiprocessing as mp\n\nos.environ['LOCAL_RANK'] = '0'\nmp.spawn(print, nprocs=2)\n",
    ],
)
def test_no_error_today_and_no_way_to_make_it_ready(script: str) -> None:
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": script})


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (f"{LAUNCH} --logdir=out train.py", "no option `--logdir`"),
        ("ARGS='--use_env --nproc_per_node 2'\npython -m torch.distributed.launch $ARGS train.py", "may stand in $ARGS"),
    ],
)
def test_commands_that_are_told(command: str, reason: str) -> None:
    told(f"{command}\n", reason, FILES)


@pytest.mark.parametrize(
    "command",
    [f"{LAUNCH} other.py", f"{LAUNCH} $SCRIPT --config a.py", f'{LAUNCH} "$@"', f"{LAUNCH} --no_python --use_env train.py"],
)
def test_commands_of_which_nothing_is_known(command: str) -> None:
    check_nothing(RULE, f"{command}\n", path="run.sh", files=FILES)


def test_a_script_that_falls_back_to_the_environment_is_left() -> None:
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"train.py": FALLS_BACK})  # fmt: skip


def test_a_script_of_the_name_somewhere_else() -> None:
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"examples/a/train.py": "print('rank')\n"})
    check_nothing(RULE, f"cd examples/a\n{LAUNCH} train.py\n", path="run.sh", files={"examples/a/train.py": "print('rank')\n"})
    check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={"examples/a/train.py": READY})  # fmt: skip


def test_what_a_program_puts_in() -> None:
    source = "c = ['python', '-m', 'torch.distributed.launch', *more, 'train.py']\n"
    check_told(RULE, source, reason="not shown", files=FILES)


def test_every_place_that_the_command_may_mean_must_be_ready() -> None:
    files = {"train.py": READY, "sub/train.py": "print('rank')\n"}
    told(f"cd $WHERE\n{LAUNCH} train.py\n", "not seen to take", files)
    check_nothing(RULE, f"cd sub\n{LAUNCH} train.py\n", path="run.sh", files=files)  # this one has no such option


OLD_TORCH: list[dict[str, str]] = [
    {"requirements.txt": "torch==1.7.1\n"},
    {"requirements.txt": "torch<1.10\n"},
    {"requirements.txt": "torch==1.7.1\n", "README.md": "Needs PyTorch >= 1.6.\n"},
    {"requirements.txt": "torch==1.12.1\n"},
    {"setup.sh": "pip install torch==1.7.1+cu110 torchvision==0.8.2 -U | cat\n", "README.md": "timm==0.3.4, pytorch>=1.7\n"},
    {"README.md": "Needs PyTorch 1.6.\n"},
    {"README.md": "We use python 3.7, pytorch: 1.7.1, torchvision: 0.8.2\n"},
    {"README.md": "pip install torch==1.8.1+cu102\n"},
    {"README.md": "python ==3.6\npytorch ==1.80\nopencv-python ==4.5\n"},
    {"README.md": "- Pytorch>=1.5, <=1.8\n"},
    {"README.md": "| Package | Version |\n|---|---|\n| PyTorch | 1.8 |\n"},
    {"README.md": "* python 3.6\n* torch==1.71\n"},
    {"INSTALL.md": "conda install pytorch torchvision cudatoolkit=10.1 -c pytorch\n"},
    {"docs/install.rst": "conda install pytorch=1.8 cudatoolkit=11.1\n"},
    {"README.md": "pip install torch -f https://download.pytorch.org/whl/cu101/torch_stable.html\n"},
    {"Dockerfile": "FROM pytorch/pytorch:1.6.0-cuda10.1-cudnn7-runtime\n"},
    {"environment.yml": "dependencies:\n  - pytorch\n  - cudatoolkit=10.0\n"},
]


@pytest.mark.parametrize("files", OLD_TORCH)
def test_no_torch_that_refuses_it_is_named(files: dict[str, str]) -> None:
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": OLD, **files})


OLD_PYTHON = [
    {"README.md": "```bash\nconda create -n train python=3.7 -y\npip install torch torchvision\n```\n"},
    {"Dockerfile": "FROM python:3.6-slim\nRUN pip install torch\n"},
    {"environment.yml": "dependencies:\n  - python=3.7\n  - pip\n"},
    {"other.sh": "source activate pytorch_latest_p37\n"},
]


@pytest.mark.parametrize("files", OLD_PYTHON)
def test_a_python_for_which_no_torch_2_was_made(files: dict[str, str]) -> None:
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": OLD, **files})
    check_nothing(RULE, f"{LAUNCH} --use_env train.py\n", path="run.sh", files={**FILES, **files})


@pytest.mark.parametrize("environment", ["pytorch_latest_p37", "py36", "torch-python3.7"])
def test_an_environment_that_the_job_activates_and_names_after_an_old_python(environment: str) -> None:
    start = f"source activate {environment}\n{LAUNCH} --use_env train.py\n"
    check_nothing(RULE, start, path="run.sh", files=FILES)


@pytest.mark.parametrize(
    ("files", "environment"),
    [({"requirements.txt": "torch==2.1.0\n"}, "py37"), ({}, "pytorch_p310"), ({}, "mp37"), ({"a.md": "# python=3.7\n"}, "py39")],
)
def test_an_environment_that_says_nothing_of_an_old_torch(files: dict[str, str], environment: str) -> None:
    start = f"source activate {environment}\n{LAUNCH} --use_env train.py\n"
    assert findings_of(RULE, start, {**FILES, **files}, path="run.sh")


OPEN = {"README.md": "It needs a fix to work with PyTorch 1.8.1+.\n"}


@pytest.mark.parametrize(
    "line",
    [
        "conda create -n parts python=3.8 pytorch==1.9.0 torchvision -c pytorch -y",
        "pip install torch==1.9.0",
        "micromamba create -n parts -c pytorch pytorch=1.9.1",
        "Please install torch==1.9.0 first",
    ],
)
@pytest.mark.parametrize(
    "above", [OPEN, {"README.md": "pip install torch==2.3.0\n"}, {"INSTALL.md": "conda create -n a pytorch=2.1\n"}]
)
def test_a_page_of_the_folder_that_installs_an_older_one(line: str, above: dict[str, str]) -> None:
    files = {"parts/train.py": OLD, "parts/PARTS.md": f"## Environment\n```\n{line}\n```\n", **above}
    check_nothing(RULE, f"{LAUNCH} parts/train.py\n", path="parts/run.sh", files=files)
    beside = {**files, "other/train.py": OLD}
    assert findings_of(RULE, f"{LAUNCH} other/train.py\n", beside, path="other/run.sh")  # the page speaks for its folder alone


@pytest.mark.parametrize(
    "line", ["parts work with pytorch==1.9.0", "conda create -n parts python=3.8", "pip install torch==2.0.1"]
)
def test_a_page_of_the_folder_that_installs_no_older_one(line: str) -> None:
    files = {"parts/train.py": OLD, "parts/PARTS.md": f"{line}\n", **OPEN}
    assert findings_of(RULE, f"{LAUNCH} parts/train.py\n", files, path="parts/run.sh")


def test_a_page_of_the_folder_that_installs_a_newer_one() -> None:
    files = {"parts/train.py": OLD, "parts/PARTS.md": "pip install torch==2.3.0\n", "README.md": "pip install torch==1.7.1\n"}
    (found,) = findings_of(RULE, f"{LAUNCH} parts/train.py\n", files, path="parts/run.sh")
    assert "1.10" not in found.reason


MIXED: list[dict[str, str]] = [
    {"requirements.txt": "torch>=1.4\n"},
    {"README.md": "Needs PyTorch 1.6+.\n"},
    {"README.md": "Needs at least PyTorch 1.6.\n"},
    {"README.md": "Tested with PyTorch 1.7.1 and PyTorch 2.1.\n"},
    {"setup.sh": "pip install torch==1.7.1\n", "README.md": "pytorch>=1.8\n"},
    {"README.md": "PyTorch>=1.6\n", "INSTALL.md": "conda install pytorch cudatoolkit=10.1\n"},
]


@pytest.mark.parametrize("files", MIXED)
def test_a_torch_that_may_be_without_torchrun(files: dict[str, str]) -> None:
    (found,) = check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                                 files={"train.py": OLD, **files}, changed={"train.py": NEW}, unsafe=True)  # fmt: skip
    assert "1.10" in found.reason and any(path in found.reason for path in files)


@pytest.mark.parametrize("files", MIXED)
def test_a_warning_is_left_where_torchrun_may_be_missing(files: dict[str, str]) -> None:
    check_nothing(RULE, f"{LAUNCH} --use_env train.py\n", path="run.sh", files={**FILES, **files})
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files={"train.py": LENIENT, **files})


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "torch>=1.12\n"},
        {"requirements.txt": "torch==2.1.0\n", "README.md": "Written with PyTorch 1.7.\n"},
        {"requirements.txt": "torch>=2.0\n", "README.md": "pytorch 1.7\n"},
        {"CHANGELOG.md": "Support PyTorch 1.7.\n"},
        {"third/README.md": "pytorch 1.7\n", "README.md": "pytorch 2.2\n"},
        {"README.md": "torchvision 0.8, pytorch-lightning 1.5\n| torch | 0.73 |\nCUDA 10.1\nPyTorch 1.5x faster\n"},
    ],
)
def test_what_speaks_for_no_older_torch(files: dict[str, str]) -> None:
    check_transformed(RULE, f"{LAUNCH} --use_env train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                      files={**FILES, **files})  # fmt: skip


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (f"# {LAUNCH} train.py\n", "run.sh"),
        (f"echo {LAUNCH} train.py\n", "run.sh"),
        ("python -m torch.distributed.run train.py\n", "run.sh"),
        ("python tool.py -m torch.distributed.launch train.py\n", "run.sh"),
        (f"{LAUNCH} train.py\n", "README.md"),
        (f"```python\n{LAUNCH} train.py\n```\n", "README.md"),
        (f"```bash\n{LAUNCH} YOUR_SCRIPT.py\n```\n", "README.md"),
        (f"{LAUNCH} train.py\n", "tests/run.sh"),
        ("import torch.distributed.launch\n\nm = 'torch.distributed.launch'\n", "a.py"),
    ],
)
def test_nothing_is_said(source: str, path: str) -> None:
    check_nothing(RULE, source, path=path, files=FILES)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("os.environ['MASTER_PORT'] = '12355'", False),
        ("os.environ['MASTER_PORT'] = os.environ.get('MASTER_PORT', '12355')", True),
        ("os.environ.setdefault('MASTER_PORT', '12355')", True),
        ("if 'MASTER_PORT' not in os.environ:\n    os.environ['MASTER_PORT'] = '12355'", True),
    ],
)
def test_a_program_that_sets_the_port_itself_meets_nobody_under_torchrun(line: str, found: bool) -> None:
    head = "import os\nimport torch.distributed as dist\n\n"
    script = f"{head}{line}\nrank = int(os.environ['LOCAL_RANK'])\ndist.init_process_group()\n"
    assert bool(findings_of(RULE, f"{LAUNCH} train.py\n", {"train.py": script}, path="run.sh")) is found


def test_a_script_that_a_variable_of_the_job_file_names() -> None:
    before = f"method='train'\n{LAUNCH} $method.py\n"
    after = before.replace(LAUNCH, "torchrun --nproc_per_node=2")
    check_transformed(RULE, before, after, path="run.sh", files=FILES, unsafe=True)
    (found,) = findings_of(RULE, before, FILES, path="run.sh")
    assert found.reason == "assumes that `$method.py` stays train.py: others are not made ready"
    check_nothing(RULE, f"method=$1\n{LAUNCH} $method.py\n", path="run.sh", files=FILES)


def test_a_command_means_the_script_of_the_folder_it_runs_in() -> None:
    other = "print('rank')\n"
    files = {"train.py": READY, "more/a/train.py": other, "more/b/train.py": other}
    found = findings_of(RULE, f"{LAUNCH} train.py\n", files, path="scripts/run.sh")
    assert [f.applicability.value for f in found] == ["safe"]
    assert not findings_of(RULE, f"{LAUNCH} train.py\n", files, path="more/a/scripts/run.sh")
    assert not findings_of(RULE, f"cd more/b\n{LAUNCH} train.py\n", files, path="run.sh")


@pytest.mark.parametrize(
    "options", ["--nproc_per_node=1", "--nproc-per-node 1 --master_port 2000", "--use_env --nproc_per_node=1"]
)
def test_a_command_for_one_process_is_left_alone(options: str) -> None:
    command = "python -m torch.distributed.launch {} train.py\n"
    files = {"train.py": "import os\nrank = int(os.environ['LOCAL_RANK'])\n"}
    check_nothing(RULE, command.format(options), path="run.sh", files=files)
    for more in (f"{options} --nnodes=2", options.replace("1", "16", 1)):
        assert findings_of(RULE, command.format(more), files, path="run.sh")


def test_a_command_that_its_line_cuts_off() -> None:
    command = "python -m torch.distributed.launch --nproc_per_node=2 train.py{}\n    --name a \\\n    --lr 1\n"
    files = {"train.py": "import os\nrank = int(os.environ['LOCAL_RANK'])\n"}
    check_nothing(RULE, command.format(""), path="run.sh", files=files)
    assert findings_of(RULE, command.format(" \\"), files, path="run.sh")
    assert findings_of(RULE, command.format("\necho done"), files, path="run.sh")


@pytest.mark.parametrize(
    ("heading", "told_there"),
    [("### 2. Using torch.distributed.launch (deprecated)", 0), ("### Training", 1),
     ("# torch.distributed.launch\n## Training", 1),
     ("### torch.distributed.launch\n```python\n# train\n```", 0)],
)  # fmt: skip
def test_a_heading_that_names_the_launcher(heading: str, told_there: int) -> None:
    text = f"{heading}\n\n```bash\n{LAUNCH} --use_env train.py\n```\n"
    assert len(findings_of(RULE, text, FILES, path="README.md")) == told_there
    assert findings_of(RULE, text.replace(" --use_env", ""), {"train.py": OLD}, path="README.md")  # it ends in an error


def test_a_copy_beside_the_script_that_nothing_names() -> None:
    source, beside = f"{LAUNCH} train.py\n", {**FILES, "jobs/run.sh": "python train.py\n"}
    check_nothing(RULE, source, path="jobs/run copy.sh", files=beside)
    check_nothing(RULE, source, path="jobs/run_old.sh", files=beside)
    assert findings_of(RULE, source, {**beside, "README.md": "bash jobs/run_old.sh\n"}, path="jobs/run_old.sh")
    assert findings_of(RULE, source, FILES, path="jobs/run copy.sh")  # there is no other
    assert findings_of(RULE, source, beside, path="jobs/run_8.sh")


def test_a_command_that_a_here_document_comments_out() -> None:
    check_nothing(RULE, f": <<!\n{LAUNCH} train.py\n!\n", path="run.sh", files=FILES)


def test_a_torch_that_has_both_launchers_warns_at_use_env() -> None:
    readme = {**FILES, "README.md": "## Needs\n* PyTorch (= 1.10.0)\n"}
    assert findings_of(RULE, f"{LAUNCH} --use_env train.py\n", readme, path="run.sh")
    check_nothing(RULE, f"{LAUNCH} train.py\n", path="run.sh", files=readme)
    check_nothing(RULE, f"{LAUNCH} --use_env train.py\n", path="run.sh", files={**FILES, "README.md": "PyTorch (= 1.8)\n"})


# Parsers that make options of fields

FIELDS = (
    "from transformers import HfArgumentParser, TrainingArguments\n\n\ndef main():\n"
    "    parser = HfArgumentParser((TrainingArguments,))\n    (args,) = parser.parse_args_into_dataclasses()\n\n\nmain()\n"
)
BEFORE_BOTH = {"requirements.txt": "transformers==4.30.2\ntorch==2.0.1\n"}
STRICT = "the HfArgumentParser at train.py:6 takes `--local_rank` alone before transformers 4.46 (requirements.txt:1)"


def test_a_parser_of_fields_that_refuses_the_option_of_the_launcher() -> None:
    files = {**BEFORE_BOTH, "train.py": FIELDS}
    (found,) = check_transformed(RULE, f"{LAUNCH} train.py\n", "torchrun --nproc_per_node=2 train.py\n", path="run.sh",
                                 files=files)  # fmt: skip
    assert STRICT in found.message and found.severity == "crash"
    (one,) = findings_of(RULE, "python -m torch.distributed.launch --nproc_per_node=1 train.py\n", files, path="run.sh")
    assert one.severity == "crash"
    imported = {**BEFORE_BOTH, "options.py": FIELDS.replace("main()\n", "options()\n"), "train.py": "import options\n"}
    (other,) = findings_of(RULE, f"{LAUNCH} train.py\n", imported, path="run.sh")
    assert STRICT.replace("train.py", "options.py") in other.message
    open_torch = {**files, "requirements.txt": "transformers<4.46\ntorch>=1.3\n"}
    (unsure,) = findings_of(RULE, f"{LAUNCH} train.py\n", open_torch, path="run.sh")
    assert unsure.applicability is Applicability.UNSAFE and unsure.severity == "crash"
    own = FIELDS.replace("def main", "@dataclass\nclass Place:\n    local_rank: int = -1\n\n\ndef main").replace(
        "TrainingArguments", "Place").replace("HfArgumentParser, Place", "HfArgumentParser")  # fmt: skip
    (told_of,) = findings_of(RULE, f"{LAUNCH} train.py\n", {**files, "train.py": own}, path="run.sh")
    assert told_of.applicability is Applicability.DISPLAY and told_of.severity == "crash" and "a field makes" in told_of.reason


@pytest.mark.parametrize(
    ("script", "pins"),
    [
        (FIELDS, "transformers==4.46.0\ntorch==2.0.1\n"),
        (FIELDS, "transformers>=4.17\ntorch==2.0.1\n"),  # the newest takes both
        (FIELDS, "torch==2.0.1\n"),
        (FIELDS.replace("dataclasses()", "dataclasses(return_remaining_strings=True)"), BEFORE_BOTH["requirements.txt"]),
        (FIELDS.replace("dataclasses()", "dataclasses(args=[])"), BEFORE_BOTH["requirements.txt"]),
        (FIELDS.replace("transformers import Hf", "mine import Hf"), BEFORE_BOTH["requirements.txt"]),
        (FIELDS.replace("def main", "class Lenient(HfArgumentParser):\n    pass\n\n\ndef main"), BEFORE_BOTH["requirements.txt"]),
    ],
)
def test_a_parser_of_fields_that_takes_it_or_may(script: str, pins: str) -> None:
    found = findings_of(RULE, f"{LAUNCH} train.py\n", {"train.py": script, "requirements.txt": pins}, path="run.sh")
    assert all(f.severity == "noise" and "HfArgumentParser" not in f.message for f in found)


def test_one_of_two_scripts_that_a_command_may_mean() -> None:
    other = FIELDS.replace("dataclasses()", "dataclasses(return_remaining_strings=True)")
    files = {**BEFORE_BOTH, "train.py": FIELDS, "sub/train.py": other}
    (found,) = findings_of(RULE, f"cd $WHERE\n{LAUNCH} train.py\n", files, path="run.sh")
    assert found.severity == "noise" and "HfArgumentParser" not in found.message


def test_a_parser_of_fields_for_an_old_launcher() -> None:
    files = {"train.py": FIELDS, "requirements.txt": "transformers==4.30.2\ntorch==1.13.1\n"}
    assert findings_of(RULE, f"{LAUNCH} train.py\n", files, path="run.sh") == []
