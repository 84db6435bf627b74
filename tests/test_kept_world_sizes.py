from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.kept_world_sizes import asks_for_kept_size
from codemods.analysis.ranks.several_processes import several_processes
from codemods.files.source import SourceModule

CLASS = """\
import os
import torch.distributed as dist


class Runner:
    def __init__(self, accelerator, options, group):
        self.accelerator = accelerator
        {given}

    @property
    def crew(self):
        return self.accelerator.num_processes

    @property
    def half(self):
        return self.accelerator.num_processes // 2

    def run(self, model, hands):
        if {test}:
            return model
"""


def answers(given: str, test: str) -> tuple[bool, bool | None]:
    module = SourceModule("runner.py", CLASS.format(given=given, test=test).encode())
    asked = next(iter(module.nodes(ast.If))).test
    return asks_for_kept_size(module, asked), several_processes(module, asked)


@pytest.mark.parametrize(
    ("given", "test", "several"),
    [
        ("self.hands = accelerator.num_processes", "self.hands > 1", True),
        ("self.hands = dist.get_world_size()", "self.hands == 1", False),
        ("self.hands = int(os.environ['WORLD_SIZE'])", "self.hands >= 2", True),
        ("self.hands = dist.get_world_size() if dist.is_initialized() else 1", "self.hands < 2", False),
        ("self.hands = 1\n        self.hands = dist.get_world_size()", "not self.hands > 1", False),
        ("total = accelerator.num_processes\n        self.hands = total", "self.hands != 1", True),
        ("pass", "self.crew > 1", True),
    ],
)
def test_a_number_of_processes_under_another_name(given: str, test: str, several: bool) -> None:
    assert answers(given, test) == (True, several)


def test_a_flag_that_such_a_comparison_gives() -> None:
    assert answers("self.together = accelerator.num_processes > 1", "self.together")[0]
    assert answers("self.together = dist.get_world_size() != 1", "options and not self.together")[0]


@pytest.mark.parametrize(
    ("given", "test"),
    [
        ("self.hands = options.hands", "self.hands > 1"),
        ("self.hands = accelerator.num_processes * 2", "self.hands > 1"),
        ("self.hands = dist.get_world_size(group)", "self.hands > 1"),
        ("self.hands = accelerator.num_processes\n        self.hands = options.hands", "self.hands > 1"),
        ("self.hands = 1", "self.hands > 1"),
        ("self.hands = accelerator.process_index", "self.hands > 1"),
        ("self.together = options.hands > 1", "self.together"),
        ("pass", "self.half > 1"),
        ("pass", "hands > 1"),
    ],
)
def test_what_is_not_seen_to_be_one(given: str, test: str) -> None:
    assert answers(given, test) == (False, None)


def test_a_comparison_with_another_number_tells_nothing_of_one_process() -> None:
    assert answers("self.hands = accelerator.num_processes", "self.hands > 4") == (True, None)
