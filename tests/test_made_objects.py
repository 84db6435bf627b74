"""Wrappers in the fields of an object that a function makes itself."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_nothing, findings_of

NETS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)

    def penalty(self):
        return self.body.weight.sum()
"""
TASK = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from nets import Net


class Task:
    def __init__(self, rank):
        self.rank = rank
        self.plain = Net()

    def build(self):
        net = Net()
        self.net = DDP(net, device_ids=[self.rank])

    def tell(self):
        print(self.rank)

    def __call__(self, batch):
        return self.net(batch)
"""
FILES = {"nets.py": NETS, "task.py": TASK}


def program(*lines: str, above: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        "import torch\nimport torch.distributed as dist\nfrom task import Task\n\n"
        f'{above}\ndef main(rank, path, loader):\n    dist.init_process_group("nccl")\n{body}'
    )


def told(source: str, files: dict[str, str] = FILES) -> None:
    found = findings_of(AttributeOfWrapper, source, files)
    assert ["penalty" in f.message and "DDP wrapper" in f.message for f in found] == [True]


def test_a_field_that_a_method_called_above_has_wrapped() -> None:
    told(program("task = Task(rank)", "task.build()", "for batch in loader:", "    loss = task(batch) + task.net.penalty()"))


def test_a_field_that_the_constructor_has_wrapped() -> None:
    files = {**FILES, "task.py": TASK.replace("self.plain = Net()", "self.plain = Net()\n        self.build()")}
    told(program("task = Task(rank)", "print(task.net.penalty())"), files)


def test_an_object_in_a_field_of_its_own() -> None:
    above = (
        "\nclass Trainer:\n    def __init__(self, rank):\n        self.task = Task(rank)\n        self.task.build()\n"
        "        print(self.task.net.penalty())\n\n"
    )
    told(program("Trainer(rank)", above=above))


@pytest.mark.parametrize(
    "lines",
    [("task = Task(rank)", "print(task.net.penalty())"),  # nothing has wrapped it yet: it is not there at all
     ("task = Task(rank)", "if rank:", "    task.build()", "print(task.net.penalty())"),  # wrapped on some runs
     ("task = Task(rank)", "task.tell()", "print(task.net.penalty())"),  # a method that wraps nothing
     ("task = Task(rank)", "task.build()", "print(task.plain.penalty())"),  # another field
     ("task = Task(rank)", "task.build()", "print(task.net.module.penalty())"),
     ("task = Task(rank)", "task.build()", "task.net = task.net.module", "print(task.net.penalty())"),  # taken out here
     ("task = Task(rank)", "task.build()", "task = other(task)", "print(task.net.penalty())"),  # another object
     ("task = make(rank)", "task.build()", "print(task.net.penalty())")],  # of which class is not seen
)  # fmt: skip
def test_fields_that_hold_no_wrapper_there_or_are_not_seen_to(lines: tuple[str, ...]) -> None:
    check_nothing(AttributeOfWrapper, program(*lines), files=FILES)


@pytest.mark.parametrize(
    "change",
    [("self.net = DDP(net, device_ids=[self.rank])", "self.net = DDP(net, device_ids=[self.rank])\n        self.net = net"),
     ("print(self.rank)", "self.net = self.plain"),  # a method that puts the bare one there
     ("self.net = DDP(net, device_ids=[self.rank])", "self.net = net")],
)  # fmt: skip
def test_classes_that_give_the_field_something_else_too(change: tuple[str, str]) -> None:
    source = program("task = Task(rank)", "task.build()", "print(task.net.penalty())")
    check_nothing(AttributeOfWrapper, source, files={**FILES, "task.py": TASK.replace(*change)})


STRIPS = "state = {key.replace('module.', ''): value for key, value in torch.load(path).items()}"


def test_keys_that_lose_the_prefix_in_front_of_the_wrapper_of_another_object() -> None:
    source = program("task = Task(rank)", "task.build()", STRIPS, "task.net.load_state_dict(state)")
    found = findings_of(WrappedStateDict, source, files=FILES)
    assert [f.message for f in found if "task.net" in f.message and "module." in f.message]


@pytest.mark.parametrize(
    "load", ["task.net.module.load_state_dict(state)", "task.plain.load_state_dict(state)"]
)
def test_keys_that_lose_the_prefix_in_front_of_a_bare_model(load: str) -> None:
    check_nothing(WrappedStateDict, program("task = Task(rank)", "task.build()", STRIPS, load), files=FILES)


def test_a_wrap_under_a_test_leaves_the_wrapper_open() -> None:
    wrap = "if dist.is_initialized():\n            net = DDP(net, device_ids=[self.rank])\n        self.net = net"
    files = {**FILES, "task.py": TASK.replace("self.net = DDP(net, device_ids=[self.rank])", wrap)}
    source = program("task = Task(rank)", "task.build()", STRIPS, "task.net.load_state_dict(state)")
    found = findings_of(WrappedStateDict, source, files)
    assert all("getattr(" in e.code for f in found for e in f.edits if hasattr(e, "code")) and found


