"""What cannot come to a collective is told by the names of its calls, before anything is interpreted."""

from __future__ import annotations

import pytest

from codemods.analysis.variance.may_meet import may_meet
from codemods.store.project import Project

_LOADING = """
import json
import os

import numpy as np


class Reader:
    def __init__(self, path):
        self.path = path
        self.rows = self._rows()

    def _rows(self):
        with open(self.path) as handle:
            return json.load(handle)


def read(path):
    if not os.path.exists(path):
        return np.zeros(3)
    table = np.abs(Reader(path).rows)
    return [x.strip() for x in table.max() if x]
"""
_HELPERS = """
import torch.distributed as dist


def mean(x):
    return total(x) / dist.get_world_size()


def total(x):
    dist.all_reduce(x)
    return x


class Loss:
    @property
    def value(self):
        dist.all_reduce(self.sum)
        return self.sum
"""


def asked(body: str, **others: str) -> bool:
    """The answer for the function `f` of a file with that body."""
    files = {"train.py": body, **{f"{name}.py": text for name, text in others.items()}}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("train.py")
    assert module is not None
    function = next(f for f in module.functions if f.name == "f")
    return may_meet(project, module, function.body)


@pytest.mark.parametrize(
    "body",
    [
        "from loading import read\ndef f(path):\n    return read(path)\n",
        "from loading import Reader\ndef f(path):\n    return Reader(path).rows\n",
        "import cv2\ndef f(path):\n    picture = cv2.imread(path)\n    return picture.max()\n",
        "def f(n):\n    return f(n - 1) if n else len(str(n))\n",
        "def f(rows):\n    return sorted(rows).index(3)\n",
    ],
    ids=["function", "class", "package", "itself", "built-in"],
)
def test_reading_and_changing_comes_to_no_collective(body: str) -> None:
    assert not asked(body, loading=_LOADING, helpers=_HELPERS)


@pytest.mark.parametrize(
    "body",
    [
        "import torch.distributed as dist\ndef f(x):\n    dist.barrier()\n",
        "from helpers import mean\ndef f(x):\n    return mean(x)\n",
        "def f(model, x):\n    return model(x)\n",
        "def f(loss):\n    loss.backward()\n",
        "def f(metric):\n    return metric.compute()\n",
        "def f(loss):\n    return loss.value\n",
        "def f(meter):\n    return meter.total(3)\n",
        "class A:\n    def f(self, x):\n        return self.net(x)\n",
        "class A:\n    def f(self, x):\n        return self.g(x)\n    def g(self, x):\n        raise NotImplementedError\n",
        "import helpers\nCALLS = {'mean': helpers.mean}\ndef f(x):\n    return CALLS['mean'](x)\n",
    ],
    ids=["own", "two files away", "parameter", "backward", "metric", "property", "method by name", "field", "left open", "table"],
)
def test_what_may_wait_or_is_not_followed_is_left_to_the_interpretation(body: str) -> None:
    assert asked(body, loading=_LOADING, helpers=_HELPERS)


