"""Of the commands of a program the one whose options lead to what was changed; else what is to be given."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

HEAD = """import argparse
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train")
parser.add_argument("-r", "--resume", action="store_true")
parser.add_argument("--last", default=None)
parser.add_argument("--kind", default="a")
dist.init_process_group("gloo")
"""


def shown(body: str, *commands: str, head: str = HEAD, **beside: str) -> list[Launch]:
    """The line with `OLD` becomes `NEW`."""
    after = {"main.py": head + body, **{f"{name}.py": text for name, text in beside.items()}}
    old = {path: text.replace("NEW", "OLD").encode() for path, text in after.items()}
    files = {**old, "run.sh": "".join(f"torchrun main.py{c}\n" for c in commands).encode()}
    changed = {path: text.encode() for path, text in after.items() if "NEW" in text}
    return list(launches(files, files.get, changed))


def line(body: str, *commands: str, head: str = HEAD, **beside: str) -> int:
    (found,) = shown(body, *commands, head=head, **beside)
    assert not found.needs
    return found.line


TEST = "\n\ndef test(args):\n    print('NEW')\n\n\ndef train(args):\n    pass\n\n\nargs = parser.parse_args()\n"


@pytest.mark.parametrize(
    "call",
    [
        "if args.mode == 'test':\n    test(args)\n",
        "if 'test' in args.mode:\n    test(args)\n",
        "if args.mode in ('test', 'both'):\n    test(args)\n",
        "if args.mode == 'train':\n    train(args)\nelse:\n    test(args)\n",
        "if args.mode != 'train':\n    test(args)\n",
        "if args.mode == 'train':\n    raise SystemExit\ntest(args)\n",
        "import torch.multiprocessing as mp\nif args.mode == 'test':\n    mp.spawn(test, nprocs=2)\n",
    ],
)
def test_the_command_for_the_function_that_was_changed(call: str) -> None:
    assert line(TEST + call, " --mode train", " --mode test") == 2
    assert line(TEST + call, " --mode test", "") == 1


def test_a_test_in_another_file_and_by_an_attribute() -> None:
    body = "import jobs\nargs = parser.parse_args()\njobs.Job(args).run()\n"
    job = "class Job:\n    def __init__(self, args):\n        self.args = args\n\n    def run(self):\n"
    job += "        if self.args.resume:\n            print('NEW')\n"
    assert line(body, "", " -r", jobs=job) == 2
    assert line(body, "", " -r", jobs=job.replace("self.args.resume", "self.other.resume")) == 1


def test_another_name_for_an_option() -> None:
    body = "given = parser.parse_args()\nsettings = {}\nsettings['again'] = given.resume\n"
    body += "if settings['again']:\n    print('NEW')\n"
    assert line(body, "", " --resume") == 2
    assert line(body.replace("if ", "settings['again'] = True\nif "), "", " --resume") == 1


@pytest.mark.parametrize(
    ("test", "command", "need"),
    [
        ("args.mode == 'test'", " --mode train", "--mode test"),
        ("not args.resume", " -r", "no --resume"),
        ("args.last is not None", "", "--last LAST"),
        ("args.last is None", " --last x", "no --last"),
        ("args.mode != 'train'", "", "another --mode"),
    ],
)
def test_what_no_command_gives_is_told(test: str, command: str, need: str) -> None:
    (found,) = shown(f"args = parser.parse_args()\nif {test}:\n    print('NEW')\n", command)
    assert found.needs == (f"main.py:{HEAD.count(chr(10)) + 3} needs {need}",)


@pytest.mark.parametrize(
    ("test", "command", "given"),
    [
        ("args.resume", "", "--resume"),
        ("args.kind == 'b'", " --mode train", "--kind b"),
        ("args.resume and args.kind == 'b'", "", "--resume --kind b"),
        ("args.resume or args.kind == 'b'", "", "--resume"),
    ],
)
def test_what_a_command_lacks_is_put_behind_it(test: str, command: str, given: str) -> None:
    (found,) = shown(f"args = parser.parse_args()\nif {test}:\n    print('NEW')\n", command)
    assert found.command == f"torchrun --nproc_per_node=2 main.py{command} {given}"
    assert found.short == given.replace(" --kind", ", --kind") and not found.needs


def test_a_command_for_other_places_is_not_led_elsewhere() -> None:
    body = "args = parser.parse_args()\nif args.resume:\n    print('NEW')\n    raise SystemExit\nprint('NEW')\n"
    (found,) = shown(body, "")
    assert found.command == "torchrun --nproc_per_node=2 main.py" and found.needs


def test_a_function_that_another_program_alone_calls() -> None:
    jobs = "def one():\n    print('NEW')\n\n\nclass Job:\n    def two(self):\n        print('NEW')\n"
    other = "import jobs\njobs.one()\njobs.Job().two()\n"
    assert shown("import jobs\njobs.Job()\n", "", jobs=jobs, other=other) == []
    assert shown("import jobs\njobs.Job().two()\n", "", jobs=jobs, other=other)
    hook = jobs.replace("class Job:", "import lib\n\n\nclass Job(lib.Base):").replace("def one():\n    print('NEW')", "")
    assert shown("import jobs\njobs.Job()\n", "", jobs=hook, other=other)  # the base may call it


def test_a_decorator_is_run_with_its_function() -> None:
    body = TEST.replace("    print('NEW')", "    pass").replace("def test", "@NEW\ndef test")
    call = "if args.mode == 'train':\n    train(args)\nelse:\n    test(args)\n"
    assert line(body + call, " --mode train", " --mode test") == 2


@pytest.mark.parametrize(
    "body",
    [
        "args = parser.parse_args()\nargs.resume = True\nif args.resume:\n    print('NEW')\n",  # the program gives it itself
        "args = parser.parse_args()\nif args.resume or ready():\n    print('NEW')\n",
        "args = parser.parse_args()\nmodel = make()\nif model.resume:\n    print('NEW')\n",
        "args = parser.parse_args()\nprint('NEW')\n",
        "def go():\n    print('NEW')\n\n\nargs = parser.parse_args()\nif args.resume:\n    go()\ngo()\n",
    ],
)
def test_what_does_not_decide_is_no_reason(body: str) -> None:
    (found,) = shown(body, "")
    assert not found.needs


def test_a_local_rank_is_given_by_the_launcher() -> None:
    body = 'parser.add_argument("--local_rank", type=int, default=-1)\nargs = parser.parse_args()\n'
    (found,) = shown(body + "if args.local_rank == 0:\n    print('NEW')\n", "")
    assert not found.needs


def test_one_command_for_each_place_that_another_does_not_reach() -> None:
    body = TEST.replace("    pass", "    print('NEW too')") + "if args.mode == 'test':\n    test(args)\nelse:\n    train(args)\n"
    assert [found.line for found in shown(body, " --mode test", " --mode train", " --mode train --kind b")] == [1, 2]
