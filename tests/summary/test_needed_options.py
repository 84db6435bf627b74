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
        "if args.mode.lower() == 'test':\n    test(args)\n",
        "if args.mode.split('-')[0] == 'test':\n    test(args)\n",
        "def go(testing):\n    if testing:\n        test(args)\n\n\ngo(args.mode == 'test')\n",
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
    assert is_untold(body, "", " -r", jobs=job.replace("self.args.resume", "self.other.resume"))


def test_another_name_for_an_option() -> None:
    body = "given = parser.parse_args()\nsettings = {}\nsettings['again'] = given.resume\n"
    body += "if settings['again']:\n    print('NEW')\n"
    assert line(body, "", " --resume") == 2
    assert is_untold(body.replace("if ", "settings['again'] = True\nif "), "", " --resume")


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
    assert not found.command
    assert found.needs == (f"main.py:{HEAD.count(chr(10)) + 3} needs {need}",)


@pytest.mark.parametrize(
    ("test", "command", "given"),
    [
        ("args.resume", "", "--resume"),
        ("args.kind == 'b'", " --mode train", "--kind b"),
        ("args.resume and args.kind == 'b'", "", "--resume --kind b"),
        ("args.resume or args.kind == 'b'", "", "--resume"),
        ("args.resume or ready()", "", "--resume"),
        ("args.mode != 'train' and args.mode == 'test'", "", "--mode test"),
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
    assert found.comes_to == f"main.py:{HEAD.count(chr(10)) + 5}"


def test_a_line_behind_the_options_that_were_added() -> None:
    body = "args = parser.parse_args()\nif args.resume:\n    print('NEW')\n    if ready():\n        print('NEW too')\n"
    (found,) = shown(body, "")
    at = HEAD.count(chr(10)) + 3
    assert found.command.endswith(" --resume") and found.comes_to == f"main.py:{at}"
    assert not found.needs


def test_a_function_that_another_program_alone_calls() -> None:
    jobs = "def one():\n    print('NEW')\n\n\nclass Job:\n    def two(self):\n        print('NEW')\n"
    other = "import jobs\njobs.one()\njobs.Job().two()\n"
    assert not any(found.command for found in shown("import jobs\njobs.Job()\n", "", jobs=jobs, other=other))
    (found,) = shown("import jobs\njobs.Job().two()\n", "", jobs=jobs, other=other)
    assert (found.comes_to, found.needs) == ("jobs.py:7", ())
    hook = jobs.replace("class Job:", "import lib\n\n\nclass Job(lib.Base):").replace("def one():\n    print('NEW')", "")
    assert is_untold("import jobs\njobs.Job()\n", "", jobs=hook)  # the base may call it


def test_a_decorator_is_run_with_its_function() -> None:
    body = TEST.replace("    print('NEW')", "    pass").replace("def test", "@NEW\ndef test")
    call = "if args.mode == 'train':\n    train(args)\nelse:\n    test(args)\n"
    assert line(body + call, " --mode train", " --mode test") == 2


def is_untold(body: str, *commands: str, **beside: str) -> bool:
    """No command is made for the line, and no test of the code is told; how the repository starts the program is."""
    (found,) = shown(body, *commands, **beside)
    return not found.command and not found.needs and found.quoted.startswith("torchrun main.py")


@pytest.mark.parametrize(
    "body",
    [
        "args.resume = True\nif args.resume:\n    print('NEW')\n",  # the program gives it itself
        "model = make()\nif model.resume:\n    print('NEW')\n",
        "if args.resume and ready():\n    print('NEW')\n",
        "for i in range(3):\n    if i % 2 == 1:\n        print('NEW')\n",
        "for i in range(3):\n    if i > 2:\n        break\n    print('NEW')\n",
        "try:\n    go()\nexcept OSError:\n    print('NEW')\n",
        "def go():\n    print('NEW')\n\n\nTASKS = {'a': go}\nTASKS[read()]()\n",
        "def go(x):\n    if x:\n        print('NEW')\n\n\ngo(read())\n",
        "given = vars(args)\ngiven.update(read())\nif not args.resume:\n    print('NEW')\n",
    ],
)
def test_what_no_option_answers_is_not_shown(body: str) -> None:
    assert is_untold("args = parser.parse_args()\n" + body, "")


NET = "class Net:\n    def __init__(self, a, mask):\n        self.a = a\n\n\n"


@pytest.mark.parametrize(
    "body",
    [
        "net = Net(1)\nprint('NEW')\n",
        "if args.kind == 'a':\n    net = Net(1)\nelse:\n    net = Net(1, 2)\nprint('NEW')\n",
        "def go():\n    net = Net(1)\n    for _ in range(3):\n        print('NEW')\n\n\ngo()\n",
        "def go(net):\n    print('NEW')\n\n\nnet = Net(1)\ngo(net)\n",
        "print(args.nodes)\nprint('NEW')\n",
    ],
)
def test_a_line_above_that_fails_in_each_run(body: str) -> None:
    assert is_untold(f"{NET}args = parser.parse_args()\n{body}", "")


@pytest.mark.parametrize(
    "body",
    [
        "net = Net(1, 2)\nprint('NEW')\n",
        "if args.kind == 'b':\n    net = Net(1)\nprint('NEW')\n",
        "print('NEW')\nnet = Net(1)\n",
        "def other():\n    return Net(1)\n\n\nprint('NEW')\n",
        "try:\n    net = Net(1)\nexcept TypeError:\n    net = None\nprint('NEW')\n",
    ],
)
def test_a_line_that_is_not_run_before_it_may_fail(body: str) -> None:
    (found,) = shown(f"{NET}args = parser.parse_args()\n{body}", "")
    assert found.command == "torchrun --nproc_per_node=2 main.py"


@pytest.mark.parametrize(
    "body",
    [
        "print('NEW')\n",
        "if dist.get_rank() == 0:\n    print('NEW')\n",
        "if dist.is_initialized():\n    print('NEW')\n",
        "import os\nif 'RANK' not in os.environ:\n    raise SystemExit\nif 'RANK' in os.environ:\n    print('NEW')\n",
        "if __name__ == '__main__':\n    print('NEW')\n",
        "VERBOSE = True\nif VERBOSE:\n    print('NEW')\n",
        "for i in range(9):\n    if i % args.every == 0:\n        print('NEW')\n",
        "for i, _ in enumerate(read()):\n    if i % 10 == 0:\n        print('NEW')\n",
        "if not read():\n    raise ValueError\nprint('NEW')\n",
        "for x in read():\n    if x:\n        continue\n    print('NEW')\n",
        "def go():\n    print('NEW')\n\n\nif args.resume:\n    go()\ngo()\n",
        "def go(x=True):\n    if x:\n        print('NEW')\n\n\ngo()\n",
        "def go(x):\n    if x == 'a':\n        print('NEW')\n\n\ngo(args.kind)\n",
        "class Job:\n    def __init__(self):\n        print('NEW')\n\n\nJob()\n",
        "def go(n):\n    if n:\n        go(n - 1)\n    print('NEW')\n\n\ngo(3)\n",
    ],
)
def test_what_is_no_obstacle(body: str) -> None:
    (found,) = shown("args = parser.parse_args()\n" + body, "")
    assert found.command == "torchrun --nproc_per_node=2 main.py" and not found.needs


def test_the_main_block_of_another_file_is_not_run() -> None:
    jobs = "if __name__ == '__main__':\n    print('NEW')\n"
    assert not any(found.command for found in shown("import jobs\n", "", jobs=jobs))


@pytest.mark.parametrize("field", ["kind: str = field(default='a')", "kind: str = 'a'"])
def test_options_that_a_parser_makes_of_a_class(field: str) -> None:
    head = "from dataclasses import dataclass, field\nfrom transformers import HfArgumentParser, TrainingArguments\n\n\n"
    head += f"@dataclass\nclass Given:\n    {field}\n    last: str = None\n    fresh: bool = False\n\n\n"
    head += "mine, training = HfArgumentParser((Given, TrainingArguments)).parse_args_into_dataclasses()\n"
    body = "if mine.kind == 'b':\n    print('NEW')\n"
    assert line(body, " --kind a", " --kind b", head=head) == 2
    assert line(body.replace("== 'b'", "== 'a'"), " --kind b", "", head=head) == 2
    fresh = "if mine.fresh and training.do_train:\n    print('NEW')\n"
    assert line(fresh, " --do_train", " --fresh --do_train False", " --fresh True --do_train", head=head) == 3


def test_a_local_rank_is_given_by_the_launcher() -> None:
    body = 'parser.add_argument("--local_rank", type=int, default=-1)\nargs = parser.parse_args()\n'
    (found,) = shown(body + "if args.local_rank == 0:\n    print('NEW')\n", "")
    assert not found.needs


def test_one_command_for_each_place_that_another_does_not_reach() -> None:
    body = TEST.replace("    pass", "    print('NEW too')") + "if args.mode == 'test':\n    test(args)\nelse:\n    train(args)\n"
    assert [found.line for found in shown(body, " --mode test", " --mode train", " --mode train --kind b")] == [1, 2]
