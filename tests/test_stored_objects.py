"""A method of an object that stands in a dict of the class: what the project's own class does counts, not the method's name."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

METERS = """
import functools

import torch.distributed as dist


def on_master(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if dist.get_rank() == 0:
            return function(*args, **kwargs)
        return None
    return wrapper


class Meter:
    def __init__(self, name):
        self.name, self.values = name, []

    @on_master
    def write(self, value):
        self.values.append(value)
"""
TRAINER = """
import torch
import torch.distributed as dist

from meters import Meter


class Trainer:
    def __init__(self):
        dist.init_process_group("nccl")
        self.meters = {{}}

    def record(self, losses):
        for name, loss in losses.items():
            if name not in self.meters:
                self.meters[name] = {made}
            self.meters[name].write(loss)


if __name__ == "__main__":
    Trainer().record({{"loss": "1.0"}})
"""


def test_a_meter_of_the_project_writes_no_file() -> None:
    check_nothing(UnguardedFileIo, TRAINER.format(made="Meter(name)"), files={"meters.py": METERS})


@pytest.mark.parametrize("made", ['open("scores.txt", "w")', "handles.take(name)"])
def test_what_is_no_object_of_the_project_writes(made: str) -> None:
    assert findings_of(UnguardedFileIo, TRAINER.format(made=made), {"meters.py": METERS})


def test_a_meter_that_writes_a_file_on_every_rank() -> None:
    meters = METERS.replace("    @on_master\n", "").replace("self.values.append(value)", 'open("values.txt", "w").write(value)')
    files = {"train.py": TRAINER.format(made="Meter(name)")}
    assert findings_of(UnguardedFileIo, meters, files, path="meters.py")
