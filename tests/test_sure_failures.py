"""What stands behind an exception that every run raises: nothing is said of it."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.sure_failures import is_behind_a_failure
from codemods.launch.local_rank_argument import LocalRankArgument
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from codemods.sync.missing_destroy_process_group import MissingDestroyProcessGroup
from ddpfix.testing import check_nothing, findings_of, project_of

OPTIONS = """\
import argparse


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=10)
    group = parser.add_argument_group("data")
    group.add_argument("--folder", "-f", dest="data_dir")
    group.add_argument("files")
    {extra}
    return parser.parse_args()


def run(args):
{body}


def main():
    args = parse_args()
    run(args)


main()
"""


def is_dead(body: str, extra: str = "pass", others: dict[str, str] | None = None) -> bool:
    source = OPTIONS.format(extra=extra, body=textwrap.indent(body, "    "))
    files = {"train.py": source, **(others or {})}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("train.py")
    assert module is not None
    (call,) = module.calls_named("work")
    return is_behind_a_failure(project, module, call)


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        ("if args.global_step % 10 == 0:\n    work()", True),
        ("if args.max_steps and args.global_step > 3:\n    work()", True),
        ("print(args.global_step)\nwork()", True),
        ("with open(args.path) as f:\n    work()" + "\n" * 40, True),
        ("for row in args.rows:\n    work()" + "\n" * 40, True),
        ("for row in args.files:\n    work()" + "\n" * 40, False),
        ("step = args.global_step\nfor i in range(3):\n    work()", True),
        ("if args.max_steps or args.global_step > 3:\n    work()", False),  # the right side is not always asked
        ("if args.max_steps > 3 and args.data_dir and args.files:\n    work()", False),
        ("if args.max_steps > 3:\n    print(args.global_step)\nwork()", False),
        ("x = args.max_steps if args.files else args.global_step\nwork()", False),
        ("f = lambda: args.global_step\nwork()", False),
        ("try:\n    print(args.global_step)\nexcept AttributeError:\n    pass\nwork()", False),
        ("work()\nprint(args.global_step)", False),
        ("print(args.world_size)\nwork()", True),
        ("import deepspeed\nprint(args.world_size)\nwork()", False),  # such libraries set it
        ("if hasattr(args, 'global_step'):\n    pass\nprint(args.global_step)\nwork()", False),
        ("use(rate=args.global_step, steps=args.max_steps)\nwork()", True),
        ("args.global_step, other = 1, 2\nwork()", False),
        ("(args.global_step, other) = 1, 2\nwork()", False),
    ],
)
def test_an_option_that_no_parser_has(body: str, dead: bool) -> None:
    assert is_dead(body) is dead


READS = "print(args.global_step)\nwork()"


@pytest.mark.parametrize(
    "extra",
    [
        "parser.set_defaults(global_step=3)",
        "add_more(parser)",
        "parser.add_argument(*names)",
        "parser.add_argument('--step', dest='global_step')",
        "parser.add_subparsers()",
        "fill = lambda p: parser.parse_args(namespace=p)",
    ],
)
def test_options_that_may_come_from_elsewhere(extra: str) -> None:
    assert not is_dead(READS, extra)


@pytest.mark.parametrize(
    "setting",
    ["args.global_step = 4\n", "setattr(args, name, 4)\n", "vars(args).update(more)\n", "args.__dict__.update(more)\n"],
)
def test_attributes_that_a_file_of_the_program_sets(setting: str) -> None:
    others = {"tools.py": f"def fill(args, name, more):\n    {setting}"}
    assert not is_dead(f"import tools\n{READS}", others=others)
    assert is_dead(READS, others=others)  # a file that the program does not import


@pytest.mark.parametrize(
    ("extra", "dead"),
    [
        ("kept = filter(lambda parser: parser.requires_grad, rows)", True),  # another thing of that name
        ("kept = [add_more(r) for r in rows]", True),
        ("use = lambda rows: add_more(parser)", False),
    ],
)
def test_what_has_the_name_of_the_parser_elsewhere(extra: str, dead: bool) -> None:
    assert is_dead(READS, extra) is dead


def test_a_dict_of_an_object_s_own_says_nothing_of_options() -> None:
    own = "class Rate:\n    def state_dict(self):\n        return dict(self.__dict__)\n"
    assert is_dead(f"import tools\n{READS}", others={"tools.py": own})


def test_a_caller_with_other_options_keeps_the_place_alive() -> None:
    assert not is_dead(READS, others={"other.py": "from train import run\n\nrun(make())\n"})


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        ("glob.glob('*')\nwork()", True),
        ("import glob\nglob.glob('*')\nwork()", False),
        ("if xrange:\n    work()", False),  # of Python 2
        ("print(__file__)\nwork()", False),
        ("undefined_thing()\nwork()", False),  # nobody knows where it may come from
        ("made_elsewhere()\nwork()", True),
        ("try:\n    glob.glob('*')\nexcept NameError:\n    pass\nwork()", False),
        ("[glob for i in []]\nwork()", False),
        ("from helpers import *\nmade_elsewhere()\nwork()", False),
    ],
)
def test_an_import_that_was_forgotten(body: str, dead: bool) -> None:
    top = "from helpers import *\n" if "import *" in body else ""
    source = f"{top}def f():\n{textwrap.indent(body.removeprefix(top), '    ')}\n"
    project = Project.of({"a.py": source.encode(), "helpers.py": b"def made_elsewhere(): ...\n"})
    module = project.module("a.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert is_behind_a_failure(project, module, call) is dead


PROGRAM = """\
import argparse
import torch.distributed as dist


def refresh(rank):
    print("the targets are worked out again")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=10)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(100):
        if {test}:
            refresh(rank)


if __name__ == "__main__":
    main()
"""


def test_a_function_that_is_called_behind_a_lost_option_alone() -> None:
    (found,) = findings_of(UnguardedPrint, PROGRAM.format(test="step % args.every == 0"), path="train.py")
    assert "every rank prints in refresh" in found.message
    check_nothing(UnguardedPrint, PROGRAM.format(test="args.first and step % args.every == 0"), path="train.py")


def test_the_end_of_a_program_that_does_not_get_there() -> None:
    ends = PROGRAM.replace("gloo", "nccl")
    assert findings_of(MissingDestroyProcessGroup, ends.format(test="step % args.every == 0"), path="train.py")
    ends = ends.replace("            refresh(rank)\n", "            refresh(rank)\n    print(args.summary)\n    dist.barrier()\n")
    check_nothing(MissingDestroyProcessGroup, ends.format(test="step % args.every == 0"), path="train.py")


METHODS = """\
import torch.distributed as dist
from torch.utils.data import Dataset


class Pairs(Dataset):
    def refresh(self):
        rank = dist.get_rank()
        print("the targets are worked out again")


def main():
    dist.init_process_group("gloo")
    data = Pairs()
    lost = getattr(data, {name}, None)
    {call}


if __name__ == "__main__":
    main()
"""


def test_a_method_that_nothing_calls_beside_an_attribute_fetched_by_its_name() -> None:
    (found,) = findings_of(UnguardedPrint, METHODS.format(name='"lost"', call="data.refresh()"), path="train.py")
    assert "Pairs.refresh" in found.message
    check_nothing(UnguardedPrint, METHODS.format(name='"lost"', call="pass"), path="train.py")
    assert findings_of(UnguardedPrint, METHODS.format(name='"re" + kind', call="pass"), path="train.py")


def test_a_local_rank_option_in_a_file_that_cannot_be_imported() -> None:
    source = """\
        import argparse
        import torch
        from data import {}

        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=-1)
        args = parser.parse_args()
        torch.cuda.set_device(args.local_rank)
        torch.distributed.init_process_group("nccl")
        """
    files = {"data/__init__.py": "class Pairs: ...\n"}
    assert findings_of(LocalRankArgument, textwrap.dedent(source).format("Pairs"), files=files, path="train.py")
    check_nothing(LocalRankArgument, textwrap.dedent(source).format("Triples"), files=files, path="train.py")


CALLS = """\
def prepare(args):
{inner}


"""
TWICE = "def twice(args):\n    prepare(args)\n\n\n"


@pytest.mark.parametrize(
    ("inner", "body", "dead"),
    [
        ("print(args.global_step)", "prepare(args)\nwork()", True),
        ("print(args.global_step)", "twice(args)\nwork()", True),
        ("print(args.global_step)", "rate = prepare(args) + 1\nwork()", True),
        ("if args.max_steps:\n    return\nprint(args.global_step)", "prepare(args)\nwork()", False),
        ("return\nprint(args.global_step)", "prepare(args)\nwork()", False),
        ("for i in args.files:\n    print(args.global_step)", "prepare(args)\nwork()", False),
        ("yield args.global_step", "rows = prepare(args)\nwork()", False),  # nothing of it runs here
        ("print(args.global_step)", "try:\n    prepare(args)\nexcept AttributeError:\n    pass\nwork()", False),
        ("print(args.global_step)", "args.max_steps and prepare(args)\nwork()", False),
        ("print(args.global_step)", "work()\nprepare(args)", False),
    ],
)
def test_a_function_that_raises_in_every_run(inner: str, body: str, dead: bool) -> None:
    source = CALLS.format(inner=textwrap.indent(inner, "    ")) + (TWICE if "twice" in body else "")
    text = OPTIONS.format(extra="pass", body=textwrap.indent(body, "    ")).replace("def run(", f"{source}def run(")
    project = Project.of({"train.py": text.encode()})
    module = project.module("train.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert is_behind_a_failure(project, module, call) is dead
    decorated = Project.of({"train.py": text.replace("def prepare", "@safely\ndef prepare").encode()})
    module = decorated.module("train.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert not is_behind_a_failure(decorated, module, call)


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        ("if dist.get_rank() == 0:\n    print(args.global_step)\nwork()", True),
        ("if dist.get_rank() == 0:\n    args.save()\nelse:\n    print(args.global_step)\nwork()", True),
        ("if dist.get_rank() == 0 and args.files:\n    print(args.global_step)\nwork()", False),
        ("if dist.get_rank() == 0:\n    if args.files:\n        print(args.global_step)\nwork()", False),
        ("if dist.get_rank() == 0:\n    work()\n    print(args.global_step)", False),
    ],
)
def test_a_run_ends_with_the_first_rank_that_raises(body: str, dead: bool) -> None:
    assert is_dead("import torch.distributed as dist\n" + body) is dead


HOOK = """\
import lightning as L

class Net(L.LightningModule):
    def on_train_epoch_start(self):
        {read}
        print(self.trainer.current_epoch)
        work()
"""


@pytest.mark.parametrize(
    ("read", "dead"), [("trainer.current_epoch", True), ("self.trainer.max_epochs", False), ("fabric.x", False)]
)
def test_a_name_that_has_lost_its_self(read: str, dead: bool) -> None:
    project = Project.of({"train.py": HOOK.format(read=read).encode()})
    module = project.module("train.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert is_behind_a_failure(project, module, call) is dead


BY_SETTING = """\
import torch.distributed as dist
import own_settings as cfg


def main({parameter}):
    folder = cfg.{name} + "/runs"
    dist.init_process_group("nccl")
    print("begin")
    dist.barrier()


main()
"""


@pytest.mark.parametrize(
    ("name", "more", "behind"),
    [
        ("folder", {}, True),
        ("root", {}, False),
        ("folder", {"more.py": "import own_settings\n\nown_settings.folder = read()\n"}, False),
        ("folder", {"more.py": "import own_settings\n\nfor k, v in read():\n    setattr(own_settings, k, v)\n"}, False),
        ("folder", {"more.py": "KEYS = ['folder']\n"}, False),
        ("folder", {"lib/own_settings.py": "folder = 'out'\n"}, False),  # that one may be meant
    ],
)
def test_behind_a_setting_that_its_file_lacks(name: str, more: dict[str, str], behind: bool) -> None:
    files = {"own_settings.py": "root = '/data'\n", **more}
    for parameter, expected in (("", behind), ("cfg", False)):
        project = project_of(BY_SETTING.format(name=name, parameter=parameter), files)
        module = project.module("module.py")
        assert module is not None
        (call,) = module.calls_named("print")
        assert is_behind_a_failure(project, module, call) is expected
