"""DDP710: commands of a launcher that end before the training begins."""

from __future__ import annotations

import pytest

from codemods.launch.command_that_cannot_start import CommandThatCannotStart
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = CommandThatCannotStart
FILES = {"train.py": "import argparse\n", "tools/train.py": "import argparse\n"}
SH = {"path": "run.sh", "files": FILES}


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```bash\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, path="run.sh", files=FILES)


@pytest.mark.parametrize(
    "launcher",
    [
        "torchrun --nproc_per_node 2",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=gpu",
        "python3 -m torch.distributed.launch --nproc_per_node=2 --use_env",
        "accelerate launch --multi_gpu --num_processes 2",
        "deepspeed --num_gpus=2",
        "nohup srun torchrun --nnodes=2 --nproc_per_node=8",
    ],
)
@pytest.mark.parametrize(
    ("given", "kept"),
    [("python train.py --lr 1", "train.py --lr 1"), ("python3 tools/train.py", "tools/train.py"), ("python -m a.b", "-m a.b")],
)
def test_python_stands_where_the_script_is_looked_for(launcher: str, given: str, kept: str) -> None:
    (found,) = check_transformed(RULE, f"{launcher} {given}\n", f"{launcher} {kept}\n", path="run.sh", files=FILES)
    assert "can't open file 'python" in found.message


def test_over_lines_and_in_yaml() -> None:
    before = "torchrun --nproc_per_node=2 \\\n    python train.py \\\n    --lr 1\n"
    check_transformed(RULE, before, before.replace("python ", ""), path="run.sh", files=FILES)
    job = "steps:\n  - command: >-\n      torchrun --nproc_per_node=2\n      python train.py --lr 1\n"
    check_transformed(RULE, job, job.replace("python ", ""), path="job.yaml", files=FILES)


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node=2 train.py --data=$DATA",
        "torchrun --no_python --nproc_per_node=2 python train.py",
        "accelerate launch --no_python python train.py",
        "torchrun --nproc_per_node=2 -m tools.train",
        'torchrun --nproc_per_node=2 "$@"',
        "torchrun --nproc_per_node=2 ${SCRIPT} --lr 1",
        "torchrun $FLAGS",
        "torchrun --help",
        "LAUNCH=(torchrun --nproc_per_node 8)",
        "accelerate config",
        "accelerate launch train.py --data= --lr 1",
        "torchrun train.py --note='a= b'",
        "echo torchrun python train.py",
        "# torchrun --nproc_per_node=2 python train.py",
        "torchrun --nproc_per_node=2 my_entry --lr 1",
        "python -m torch.distributed.run --nproc_per_node=2 train.py",
        "python train.py --launcher torchrun python",
        "torchrun --numa-binding node --nproc_per_node 2 train.py",
    ],
)
def test_commands_that_start(command: str) -> None:
    check_nothing(RULE, f"{command}\n", path="run.sh", files=FILES)


@pytest.mark.parametrize("program", ["uv run train", "bash train.sh", "poetry run python train.py"])
def test_another_program_in_the_place_of_the_script(program: str) -> None:
    found = check_told(RULE, f"accelerate launch --num_processes 4 {program}\n", reason="call the launcher", **SH)  # type: ignore[arg-type]
    assert f"takes `{program.split()[0]}` for the training script" in found.message


@pytest.mark.parametrize("given", ["--root-log .log --arch resnet50 --gpus 0 1 2", "--lr 0.1"])
def test_no_script_and_options_of_one(given: str) -> None:
    command = f"python3 -m torch.distributed.launch --nproc_per_node=8 \\\n  {given}\n"
    assert "names no script" in check_told(RULE, command, reason="in front of its own options", **SH).message  # type: ignore[arg-type]


def test_a_blank_behind_the_equals_sign() -> None:
    before = 'torchrun --nproc_per_node=2 train.py \\\n    --data= "$DATA" \\\n    --lr=0.1\n'
    (found,) = check_transformed(RULE, before, before.replace("= ", "="), unsafe=True, **SH)  # type: ignore[arg-type]
    assert "--data=` is empty" in found.message and "without an option" in found.reason


@pytest.mark.parametrize("path", ["config.yaml", "./configs/two.yaml"])
def test_a_configuration_that_is_not_there(path: str) -> None:
    command = f"accelerate launch --config_file {path} train.py\n"
    assert "add the file" in check_told(RULE, command, reason="add the file", **SH).reason  # type: ignore[arg-type]
    there = {**FILES, "conf/other.yaml": "compute_environment: LOCAL_MACHINE\n"}
    assert "is conf/other.yaml meant?" in check_told(RULE, command, reason="meant", path="run.sh", files=there).reason


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("config.yaml", {"config.yaml": "compute_environment: LOCAL_MACHINE\n"}),
        ("conf/config.yaml", {"sub/conf/config.yaml": "compute_environment: LOCAL_MACHINE\n"}),
        ("$CONFIG", {}),
        ("/etc/config.yaml", {}),
        ("path/to/your_config.yaml", {}),
        ("config.yaml", {"README.md": "First `accelerate config --config_file config.yaml`.\n"}),
    ],
)
def test_a_configuration_that_is_there_or_made_elsewhere(path: str, files: dict[str, str]) -> None:
    check_nothing(RULE, f"accelerate launch --config_file={path} train.py\n", path="run.sh", files={**FILES, **files})


def test_a_configuration_of_deepspeed_that_is_not_there() -> None:
    source = "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nnum_processes: 2\n"
    found = check_told(RULE, source, reason="add the file", path="accelerate.yaml", files=FILES)
    assert "the repository has no ds.json" in found.message
    check_nothing(RULE, source, path="accelerate.yaml", files={**FILES, "ds.json": "{}"})


def test_python_is_not_read() -> None:
    assert not findings_of(RULE, "COMMAND = 'torchrun --nproc_per_node=2 python train.py'\n")


OPTIONS = """\
import argparse
from tools.more import more_options

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", "-b", type=int)
parser.add_argument("--learning_rate", type=float)
more_options(parser)
args = parser.parse_args()
"""
MORE = 'def more_options(parser):\n    group = parser.add_argument_group()\n    group.add_argument("--epochs", type=int)\n'
START = "torchrun --nproc_per_node=2 train.py {0}\n"


def with_options(text: str = OPTIONS) -> dict[str, str]:
    return {"train.py": text, "tools/more.py": MORE}


def test_an_option_that_no_parser_has() -> None:
    source = START.format("--batch-size 8 --momentum=0.9 --epochs 2")
    found = check_told(RULE, source, reason="add it to the parser", path="run.sh", files=with_options())
    assert found.message.startswith("train.py has no option `--momentum`")


def test_the_beginning_of_two_options() -> None:
    two = OPTIONS.replace("args = parser", 'parser.add_argument("--path1")\nparser.add_argument("--path2")\nargs = parser')
    source = START.format("--path a --momentum 0.9")
    found = check_told(RULE, source, reason="write out which", path="run.sh", files=with_options(two))
    assert '`--path1` and `--path2`, and no option `--path`: argparse ends each rank with "ambiguous option"' in found.message
    check_nothing(RULE, START.format("--path1 a"), path="run.sh", files=with_options(two))
    exact = two.replace('"--path2"', '"--path"')
    check_nothing(RULE, START.format("--path a"), path="run.sh", files=with_options(exact))
    other = two.replace("import argparse\n", "import argparse\n\nother = argparse.ArgumentParser()\n")
    check_nothing(RULE, START.format("--path a"), path="run.sh", files=with_options(other))


def test_an_option_with_the_other_stroke() -> None:
    before, after = (START.format(f"--epochs 2 {name}=8") for name in ("--batch_size", "--batch-size"))
    check_transformed(RULE, before, after, path="run.sh", files=with_options(), unsafe=True)


@pytest.mark.parametrize("given", ["--epochs 2 -b 8", "--learn 0.1", "--help", "$MORE --epochs 2"])
def test_options_that_argparse_takes(given: str) -> None:
    check_nothing(RULE, START.format(given), path="run.sh", files=with_options())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args = parser.parse_args()", "args, rest = parser.parse_known_args()"),
        ("args = parser.parse_args()", 'parser.add_argument("rest", nargs=argparse.REMAINDER)\nargs = parser.parse_args()'),
        ("more_options(parser)", "trainer.options_of(parser)"),
        ("more_options(parser)", "for name in NAMES:\n    parser.add_argument(f'--{name}')"),
        ("args = parser.parse_args()", "args = parser.parse_args(sys.argv[1:3])"),
        ("import argparse\n", "import argparse\nimport hydra\n"),
    ],
)
def test_a_program_whose_options_are_not_all_seen(old: str, new: str) -> None:
    assert old in OPTIONS
    check_nothing(RULE, START.format("--momentum 0.9"), path="run.sh", files=with_options(OPTIONS.replace(old, new)))


TREE = {"train_semi.py": "import torch\n", "tools/run.py": "import torch\n", "config/ds_zero2.json": "{}\n"}
LAUNCH = "torchrun --nproc_per_node=2"


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("ROOT=../..\npython -m torch.distributed.launch --nproc_per_node=2 $ROOT/train_semi_city.py --lr 1", "train_semi.py"),
        (f"{LAUNCH} train_semi_city.py", "train_semi.py"),
        (f"{LAUNCH} train_semi.py --deepspeed ./configs/ds_zero2.json", "config/ds_zero2.json"),
        (f"{LAUNCH} train_semi.py --ds-config 'configs/ds_zero2.json'", "config/ds_zero2.json"),
    ],
)
def test_a_name_that_no_folder_has_and_one_that_is_there(command: str, near: str) -> None:
    found = check_told(RULE, f"{command}\n", reason=f"is {near} meant?", path="jobs/a/run.sh", files=TREE)
    assert "no folder of the repository has" in found.message


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (f"{LAUNCH} ../../train_semi.py", {}),
        (f"{LAUNCH} run.py", {}),  # in some folder
        (f"{LAUNCH} train_other.py", {}),  # no name is near
        (f"{LAUNCH} /data/train_semi_city.py", {}),
        (f"{LAUNCH} fairseq/train_semi_city.py", {}),  # a folder of somebody else
        (f"{LAUNCH} train_semi_city.py", {"README.md": "wget https://a.b/train_semi_city.py\n"}),
        (f"{LAUNCH} train_semi_city.py", {".gitignore": "train_semi_city.py\n"}),
        (f"{LAUNCH} train_semi_city.py", {".gitmodules": "[submodule]\n"}),
        (f"{LAUNCH} train_semi_city.py", {"train_semi_city_2.py": "\n", "train_semi_ci.py": "\n", "train.py": "\n"}),
        (f"{LAUNCH} train_semi.py --output config/ds_zero2s.json", {}),
        (f"{LAUNCH} train_semi.py --config $CONFIGS/ds_zero2.json", {}),
        (f"{LAUNCH} train_semi.py --config configs/own.json", {}),
    ],
)
def test_a_name_that_is_there_or_may_come_from_elsewhere(command: str, files: dict[str, str]) -> None:
    check_nothing(RULE, f"{command}\n", path="jobs/run.sh", files={**TREE, **files})


# A backslash that ends the command

PARTS = "{} train.py --lr 1 \\{}\n    --epochs 2 \\\n    --data $DATA\n"
STARTERS = ["torchrun --nproc_per_node=2", "srun python", "accelerate launch", "deepspeed --num_gpus=2", "mpirun -np 2 python"]


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize("blank", [" ", "   ", "\t"])
def test_a_blank_behind_a_backslash(starter: str, blank: str) -> None:
    text = PARTS.format(starter, blank)
    check_told(RULE, text, reason="take the blank out", path="run.sh", files=FILES)
    assert "the shell runs `--epochs`" in findings_of(RULE, text, FILES, path="run.sh")[0].message


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize("path", ["run.sh", "README.md"])
def test_a_comment_behind_a_backslash(starter: str, path: str) -> None:
    command = PARTS.format(starter, "  # the rate")
    text = command if path == "run.sh" else f"# Training\n\n```bash\n{command}```\n"
    check_told(RULE, text, reason="on a line of its own", path=path, files=FILES)


def test_a_blank_behind_a_backslash_of_a_document() -> None:
    text = f"# Training\n\n```sh\n{PARTS.format('torchrun', ' ')}```\n"
    assert [f.span.line for f in findings_of(RULE, text, FILES, path="README.md")] == [4]


@pytest.mark.parametrize(
    "text",
    [
        PARTS.format("torchrun", ""),
        PARTS.format("python", " "),
        PARTS.format("echo torchrun", " "),
        "torchrun train.py --name a\\ b \\\n    --lr 1\n",
        "torchrun train.py --name '\\ ' \\\n    --lr 1\n",
        "torchrun train.py --name a \\ \n\necho done\n",
        "torchrun train.py --name a \\ \nsbatch next.sh\n",
        "# torchrun train.py --lr 1 \\ # the rate\n#   --epochs 2\n",
    ],
)
def test_backslashes_that_continue_or_mean_a_blank(text: str) -> None:
    check_nothing(RULE, text, path="run.sh", files=FILES)
    check_nothing(RULE, f"```bash\n{text}```\n", path="README.md", files=FILES)


def test_a_document_without_a_shell_block() -> None:
    check_nothing(RULE, f"```python\n{PARTS.format('torchrun', ' ')}```\n", path="README.md", files=FILES)
    check_nothing(RULE, "```bash\ntorchrun python train.py\n```\n", path="README.md", files=FILES)


# Programs that there are not


@pytest.mark.parametrize("name", ["torch", "torch-run", "torchrum"])
@pytest.mark.parametrize("given", ["--nnodes=1 --nproc_per_node=2 train.py --lr 1", "--nproc-per-node 2 tools/train.py"])
def test_options_of_torchrun_for_a_program_of_a_wrong_name(name: str, given: str) -> None:
    check_transformed(RULE, f"{name} {given}\n", f"torchrun {given}\n", path="run.sh", files=FILES)
    before, after = (f"```\nCUDA_VISIBLE_DEVICES=0,1 {n} {given}\n```\n" for n in (name, "torchrun"))
    check_transformed(RULE, before, after, path="README.md", files=FILES)


@pytest.mark.parametrize(
    "command",
    [
        "torch --version",
        "torch train.py --nproc_per_node=2",
        "torch --gpus 2 --nproc_per_node=2 train.py",
        "./torch --nproc_per_node=2 train.py",
        "pip install torch --nproc_per_node=2 train.py",
        "torchrun --nproc_per_node=2 train.py",
        "torch --nproc_per_node=2",
    ],
)
def test_programs_of_that_name_that_are_something_else(command: str) -> None:
    check_nothing(RULE, f"{command}\n", path="run.sh", files=FILES)


def test_lines_of_an_array_need_no_backslash() -> None:
    script = 'RUN=(\n  accelerate launch\n  --config_file a.yaml\n  run.py\n)\nexec "${RUN[@]}"\n'
    files = {"run.py": "print(1)\n", "a.yaml": "num_processes: 2\n"}
    assert not findings_of(CommandThatCannotStart, script, files, path="run.sh")
