"""No option twice in a command, under any spelling, and every word that the parser demands."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches
from ddpfix.summary.spellings import option_of, same_options

FIELDS = {"-g": "gpus", "--gpus": "gpus", "--grad_clip": "grad_clip", "--grad_norm": "grad_norm"}
HEAD = """import argparse
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("-g", "--gpus", type=str, default=None)
parser.add_argument("-e", "--epochs", type=int, default=100)
"""
LISTED = "args = parser.parse_args()\ngpus = [int(one) for one in args.gpus.split(',')]\nmp.spawn(print, nprocs=gpus)\n"
JOINED = "import torch.distributed as dist\ndist.init_process_group('gloo')\nargs = parser.parse_args()\n"
JOINED += "for epoch in range(args.epochs):\n    print(epoch)\n"


def shown(body: str, command: str, head: str = HEAD) -> Launch:
    files = {"main.py": (head + body).encode(), "run.sh": f"{command}\n".encode()}
    (found,) = launches(files, files.get, {"main.py": files["main.py"]})
    return found


@pytest.mark.parametrize(
    ("flag", "name"),
    [("-g", "gpus"), ("-g0", "gpus"), ("--gpu", "gpus"), ("--gpus", "gpus"), ("--grad", ""), ("-x", ""), ("--more", "")],
)
def test_the_option_that_a_flag_stands_for(flag: str, name: str) -> None:
    assert option_of(flag, FIELDS) == name


def test_all_spellings_of_what_a_command_gives() -> None:
    assert same_options(["-g0", "--other"], FIELDS) == {"-g0", "--other", "-g", "--gpus"}


@pytest.mark.parametrize("given", ["", " -g0", " -g 0", " --gpus 3", " --gpu 3", " --gpus=0,1,2"])
def test_the_devices_are_given_once_and_as_a_list(given: str) -> None:
    command = shown(LISTED, f"python main.py{given}").command
    assert command.endswith("0,1") and command.count("-g") == 1


def test_a_number_of_devices_stays_a_number() -> None:
    body = "args = parser.parse_args()\nmp.spawn(print, nprocs=int(args.gpus))\n"
    assert shown(body, "python main.py -g8").command == "python main.py --gpus 2"
    counted = "args = parser.parse_args()\nmp.spawn(print, nprocs=len(args.gpus.split(',')))\n"
    assert shown(counted, "python main.py -g 0,1,2").command == "python main.py -g 0,1"


@pytest.mark.parametrize("given", [" -e 300", " -e300", ""])
def test_a_short_run_replaces_the_length_that_is_there(given: str) -> None:
    assert shown(JOINED, f"torchrun main.py{given}").command == "torchrun --nproc_per_node=2 main.py --epochs 1"


@pytest.mark.parametrize(
    ("asked", "given", "is_whole"),
    [
        ('"data_dir"', "", False),
        ('"data_dir"', ' "$@"', False),
        ('"data_dir"', " data", True),
        ('"data_dir"', " -e 5 data", True),
        ('"data_dir", nargs="?"', "", True),
        ('"data_dir", nargs="+"', "", False),
        ('"--data", required=True', "", False),
        ('"--data", required=True', " --dat x", True),
        ('"-d", "--data", required=True', " -dx", True),
        ('"--data"', "", True),
    ],
)
def test_what_the_parser_demands(asked: str, given: str, is_whole: bool) -> None:
    head = f"{HEAD}parser.add_argument({asked})\n"
    assert bool(shown(JOINED, f"torchrun main.py{given}", head).command) is is_whole


def test_a_parser_in_another_file_demands_too() -> None:
    files = {
        "main.py": b"import torch.distributed as dist\nfrom given import parser\ndist.init_process_group('gloo')\nprint(1)\n",
        "given.py": b"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('data')\nparser.parse_args()\n",
        "run.sh": b"torchrun main.py\n",
    }
    (found,) = launches(files, files.get, {"main.py": files["main.py"]})
    assert not found.command and found.quoted == "torchrun main.py"
