"""Places under an option or a setting that keeps off all runs which a project shows: left out, and counted."""

from __future__ import annotations

import pytest

from codemods.engine.find import find_in
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import project_of

PROGRAM = """\
import argparse
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--find_lr", OPTION)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if TEST:
        print("the rate is found")
        args.lr = find(args)
    print("the training begins")
    train(rank)


if __name__ == "__main__":
    main()
"""
JOB = "".join(f"torchrun --nproc_per_node 4 train.py --lr 0.{i}\n" for i in range(1, 9))


def lines(
    files: dict[str, str], *, option: str = 'action="store_true"', test: str = "args.find_lr", program: str = PROGRAM
) -> list[str]:
    source = program.replace("OPTION", option).replace("TEST", test)
    project = project_of(source, {"run.sh": JOB, **files}, path="train.py")
    module = project.module("train.py")
    assert module is not None
    found = [module.text_at(f.span) for f in find_in(module, project, [UnguardedPrint()])]
    assert project.left_out["train.py"] == 2 - len(found)
    return found


BOTH = ['print("the rate is found")', 'print("the training begins")']


@pytest.mark.parametrize(
    ("option", "test"),
    [
        ('action="store_true"', "args.find_lr"),
        ('action="store_true", default=False', "args.find_lr and args.lr > 0"),
        ("default=None, type=str", "args.find_lr is not None"),
        ('default="", type=str', "args.find_lr"),
        ('default="none", type=str', "args.find_lr != 'none'"),
        ("default=-1, type=int", "args.find_lr > 0 and step % args.find_lr == 0"),
        ('action="store_true"', "vars(args).x or args.find_lr"),
        ('action="store_false"', "not args.find_lr"),
        ('dest="find_lr", action="store_true"', "getattr(args, 'find_lr', False)"),
    ],
)
def test_an_option_that_nobody_gives(option: str, test: str) -> None:
    expected = BOTH if "vars" in test else BOTH[1:]  # of one side nothing is known
    assert lines({}, option=option, test=test) == expected


@pytest.mark.parametrize(
    "files",
    [
        {"more.sh": "torchrun train.py --find_lr\n"},
        {"more.sh": "torchrun train.py --find-lr\n"},
        {"more.sh": "torchrun train.py --find\n"},  # argparse takes the beginning of a name
        {"more.sh": 'torchrun train.py "$@"\n'},
        {"README.md": "Add `--find_lr` to look for the rate.\n"},
        {"README.md": "The option find_lr looks for the rate.\n"},
        {"sweep.yaml": "find_lr: true\n"},
        {"sweep.yaml": "find_lr:\n  values: [true, false]\n"},
        {"launch.json": '{"args": ["--find_lr"]}\n'},
        {"search.py": 'import subprocess\n\nsubprocess.run(["torchrun", "train.py", "--find_lr"])\n'},
        {"search.py": "from train import main\n\ndef search(args):\n    args.find_lr = True\n"},
        {"search.py": "def search(args, word):\n    args.find_lr = word\n"},
        {"search.py": "def search(args):\n    setattr(args, 'find_lr', 1)\n"},
        {"search.py": "from argparse import Namespace\n\nNamespace(find_lr=True)\n"},
        {"settings.toml": "find_lr = true\n"},
        {"run.sh": "ls\n", "other.sh": "torchrun other.py\n"},  # no command of the program: whoever starts it says
    ],
)
def test_an_option_that_something_gives(files: dict[str, str]) -> None:
    program = PROGRAM.replace('"nccl")', '"nccl")\n    dist.barrier()')
    assert lines(files, program=program) == BOTH


@pytest.mark.parametrize(
    ("option", "test"),
    [
        ('action="store_true"', "not args.find_lr"),
        ("default=True, type=bool", "args.find_lr"),
        ("default=str(1)", "args.find_lr"),
        ("required=True", "args.find_lr"),
        ('action="store_true"', "model.find_lr"),  # another thing has a field of this name
        ("default=0, type=int", "args.find_lr < 1"),
        ("nargs='*', action='append'", "args.find_lr"),
    ],
)
def test_an_option_that_leads_there(option: str, test: str) -> None:
    assert lines({}, option=option, test=test) == BOTH


SETTINGS = """\
import torch.distributed as dist
import yaml


class Loop:
    def __init__(self, check_every):
        self.check_every = check_every

    def run(self, steps):
        rank = dist.get_rank()
        for step in range(steps):
            if self.check_every > 0 and step % self.check_every == 0:
                print("check")
                check(step)
        print("the end")
        finish(rank)


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    cfg = yaml.safe_load(open("a.yaml"))
    Loop(check_every=cfg["loop"]["check_every"]).run(100)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"a.yaml": "loop:\n  check_every: -1\n", "b.yaml": "loop:\n  check_every: 0\n"}, True),
        ({"a.yaml": "loop:\n  check_every: -1\n", "b.yaml": "loop:\n  check_every: 5\n"}, False),
        ({"a.yaml": "loop:\n  check_every: ${every}\n"}, False),
        ({"a.yaml": "loop: {}\n"}, False),
        ({"a.yaml": "loop:\n  check_every: -1\n", "more.sh": "torchrun train.py loop.check_every=10\n"}, False),
    ],
)
def test_a_key_that_has_one_value_in_all_settings(files: dict[str, str], left: bool) -> None:
    found = lines(files, program=SETTINGS)
    assert found == (['print("the end")'] if left else ['print("check")', 'print("the end")'])


def test_an_early_return() -> None:
    text = PROGRAM.replace("    if TEST:\n        print", "    if not args.find_lr:\n        return\n    if args:\n        print")
    assert not lines({}, program=text)
    assert lines({"more.sh": "torchrun train.py --find_lr\n"}, program=text) == BOTH


@pytest.mark.parametrize(
    ("job", "option", "test", "found"),
    [
        ("torchrun train.py --lr 0.2\n", 'action="store_true"', "args.find_lr", BOTH),  # one command is an example
        ("torchrun train.py --find_lr 0\n", "type=int", "args.find_lr", BOTH[1:]),
        ("torchrun train.py --no_find\n", 'action="store_true"', "args.find_lr", BOTH[1:]),
    ],
)
def test_few_commands(job: str, option: str, test: str, found: list[str]) -> None:
    off = PROGRAM.replace("    args =", '    parser.add_argument("--no_find", dest="find_lr", action="store_false")\n    args =')
    assert lines({"run.sh": job}, option=option, test=test, program=off if "no_find" in job else PROGRAM) == found


@pytest.mark.parametrize("name", ["resume_from", "ckpt_path", "verbose", "seed"])
def test_an_option_for_the_day(name: str) -> None:
    assert lines({}, test=f"args.{name}", program=PROGRAM.replace("find_lr", name)) == BOTH
