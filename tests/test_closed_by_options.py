"""Places that no value of an option leads to."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.closed_by_options import closed_by_options
from codemods.analysis.ranks.sure_failures import is_behind_a_failure
from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """\
import argparse


def train(args):
    {statement}


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--length", type=int)
    parser.add_argument("--name", default="run")
    parser.add_argument("--data", required=True)
    parser.add_argument("--seen", nargs="?", default="a")
    parser.add_argument("--kind", type=to_kind, default="a")
    parser.add_argument("--found", default=look())
    parser.add_argument("--mode", choices=["fit", "test"], default="fit")
    parser.add_argument("--free", choices=["fit", "test"])
    parser.add_argument("--on", action="store_true", default=True)
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--set-later", type=int, default=2)
    {more}
    args = parser.parse_args()
    train(args)


if __name__ == "__main__":
    run()
"""


def is_closed(statement: str, more: str = "pass") -> bool:
    source = PROGRAM.format(statement=textwrap.indent(statement, "    ").lstrip(), more=more)
    project = Project.of({"run.py": source.encode()})
    module = project.module("run.py")
    assert module is not None
    (call,) = module.calls_named("place")
    return closed_by_options(project, module, call) is not None


@pytest.mark.parametrize(
    ("statement", "closed"),
    [
        ("beams = args.beams if args.beams is not None else place()", True),
        ("beams = place() if args.beams is None else args.beams", True),
        ("args.beams is not None or place()", True),
        ("args.beams is None and place()", True),
        ("if args.name is None:\n    place()", True),
        ("if args.name != None:\n    go()\nelse:\n    place()", True),
        ("beams = args.beams\nif beams is None and args.off:\n    place()", True),
        ("if args.data is None:\n    place()", True),
        ("if args.mode == 'export':\n    place()", True),
        ("if args.mode == 'fit':\n    go()\nelif args.mode == 'export':\n    place()", True),
        ("if not args.on:\n    place()", True),
        # these may come out either way
        ("length = args.length if args.length is not None else place()", False),
        ("if args.seen is None:\n    place()", False),  # `--seen` without a value
        ("if args.kind is None:\n    place()", False),  # its type may give None
        ("if args.found is None:\n    place()", False),
        ("if args.mode == 'test':\n    place()", False),
        ("if args.free is None:\n    place()", False),
        ("if not args.name:\n    place()", False),  # `--name ""`
        ("if args.off:\n    place()", False),
        ("if args.beams == 7:\n    place()", False),
        ("beams = place() if args.beams is not None else 1", False),
        ("beams = args.beams\nif args.off:\n    beams = None\nif beams is None:\n    place()", False),
        ("args.beams is None or place()", False),
        ("if args.beams is None:\n    go()\nplace()", False),
        # somebody else gives it a value
        ("args.set_later = None\nif args.set_later is None:\n    place()", False),
        ("setattr(args, 'beams', None)\nif args.beams is None:\n    place()", False),
        ("vars(args).update(read())\nif args.beams is None:\n    place()", False),
    ],
)
def test_what_an_option_can_be(statement: str, closed: bool) -> None:
    assert is_closed(statement) is closed


def test_a_parser_that_may_have_other_options_closes_nothing() -> None:
    assert is_closed("if args.beams is None:\n    place()")
    assert not is_closed("if args.beams is None:\n    place()", "add_more(parser)")
    assert not is_closed("if args.beams is None:\n    place()", "parser.set_defaults(beams=None)")
    assert is_closed("if args.beams is None:\n    place()", 'settings = {"beams": 1}')


WRAPPED = """\
import argparse
from accelerate import Accelerator
from transformers import AutoModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--beams", type=int{default})
    args = parser.parse_args()
    accelerator = Accelerator()
    model = AutoModel.from_pretrained("bert-base-uncased")
    model = accelerator.prepare(model)
    print(args.beams if args.beams is not None else model.config.num_beams)


main()
"""


def test_the_wrapper_is_not_asked_where_the_option_has_a_value() -> None:
    check_nothing(AttributeOfWrapper, WRAPPED.format(default=", default=1"))
    assert len(findings_of(AttributeOfWrapper, WRAPPED.format(default=""))) == 1


PRINTS = """\
import argparse
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="run"{more})
    args = parser.parse_args()
    dist.init_process_group("nccl")
    if args.name is None:
        print("no name is given")


main()
"""


def test_noise_where_no_value_of_an_option_leads() -> None:
    check_nothing(UnguardedPrint, PRINTS.format(more=""))
    assert findings_of(UnguardedPrint, PRINTS.format(more=', nargs="?"'))


SPAWNED = """\
import argparse
import torch.multiprocessing as mp


def run(rank, args, world):
    print(args.address)
    place()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", default="1")
    args = parser.parse_args()
    {starts}
"""


@pytest.mark.parametrize(
    ("starts", "fails"),
    [
        ("mp.spawn(run, args=(args, 2), nprocs=2)", True),
        ("mp.spawn(run, (args, 2), 2)", True),
        ("mp.Process(target=run, args=(0, args, 2)).start()", True),
        ("mp.spawn(run, args=(args, 2), nprocs=2)\n    run(0, args, 1)", True),
        ("mp.spawn(run, args=(args, 2), nprocs=2)\n    run(0, read(), 1)", False),
        ("mp.spawn(run, args=given(args), nprocs=2)", False),
        ("mp.spawn(run, args=(args, 2), nprocs=2)\n    start(run)", False),
        ("args.address = find()\n    mp.spawn(run, args=(args, 2), nprocs=2)", False),
    ],
)
def test_options_that_spawned_processes_are_handed(starts: str, fails: bool) -> None:
    project = Project.of({"run.py": SPAWNED.format(starts=starts).encode()})
    module = project.module("run.py")
    assert module is not None
    (call,) = module.calls_named("place")
    assert is_behind_a_failure(project, module, call) is fails
