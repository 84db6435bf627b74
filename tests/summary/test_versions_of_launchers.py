"""The launcher that works under the torch of the repository."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

PROGRAM = """import argparse
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument({})
args = parser.parse_args()
dist.init_process_group("gloo")
"""
RANK, BOTH, NONE = "'--local_rank', type=int", "'--local_rank', '--local-rank', type=int", "'--seed', type=int"
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2"
BY_SHELL = "torchrun --standalone --nproc_per_node=2 --no_python bash -c 'exec python \"$@\" --local_rank=$LOCAL_RANK' -"


def shown(option: str, command: str, pin: str = "", more: str = "") -> Launch:
    files = {"main.py": PROGRAM.format(option) + more, "run.sh": f"{command}\n", "requirements.txt": f"torch{pin}\n"}
    every = {path: text.encode() for path, text in files.items()}
    (found,) = launches(every, every.get, {"main.py": every["main.py"]})
    return found


@pytest.mark.parametrize(
    ("option", "pin", "launcher"),
    [
        (RANK, "", BY_SHELL),
        (RANK, ">=1.8", BY_SHELL),
        (RANK, "==1.7.1", LAUNCH),
        (RANK, "<2", LAUNCH),
        (BOTH, "", LAUNCH),
        (NONE, "==1.7.1", f"{LAUNCH} --use_env"),
        (NONE, "==1.13.1", "torchrun --standalone --nproc_per_node=2"),
        (NONE, "", "torchrun --standalone --nproc_per_node=2"),
    ],
)
def test_in_place_of_plain_python(option: str, pin: str, launcher: str) -> None:
    assert shown(option, "python main.py", pin).command == f"{launcher} main.py"


def test_a_program_that_reads_the_environment_needs_no_option() -> None:
    found = shown(RANK, "python main.py", more="import os\nrank = os.environ['LOCAL_RANK']\n")
    assert found.command == "torchrun --standalone --nproc_per_node=2 main.py"


@pytest.mark.parametrize(
    ("option", "pin", "command"),
    [
        (RANK, "", f"{BY_SHELL} main.py"),
        (RANK, "==1.7.1", f"{LAUNCH} main.py"),
        (BOTH, "", f"{LAUNCH} main.py"),
    ],
)
def test_a_launcher_whose_option_the_parser_refuses(option: str, pin: str, command: str) -> None:
    found = shown(option, "python -m torch.distributed.launch --nproc_per_node=8 main.py", pin)
    assert found.command == command
    told = "by torchrun: the launcher of torch 2 gives --local-rank, which its parser refuses"
    assert found.edits == ((told,) if command.startswith("torchrun") else ())


def test_a_launcher_that_gives_no_option_is_kept() -> None:
    command = f"{LAUNCH} --use_env main.py"
    assert shown(RANK, command).command == command
