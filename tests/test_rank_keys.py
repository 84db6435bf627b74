"""Tests of the rank that a mapping carries to another file: `params["verbose"] = rank == 0`."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_carriers import may_speak_of_ranks
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_tests import split_of
from ddpfix.testing import project_of

TRAINER = """
class Trainer:
    def __init__(self, params):
        self.params = params
        self.verbose = params["verbose"]

    def run(self):
        if {test}:
            here()
"""
MAIN = "import torch.distributed as dist\n\n\ndef main(params):\n    params['world_rank'] = dist.get_rank()\n    {}\n"


def answer(test: str, given: str) -> Ranks | None:
    project = project_of(TRAINER.format(test=test), {"train.py": MAIN.format(given)})
    module = project.module("module.py")
    assert module is not None
    asked = next(iter(module.nodes(ast.If))).test
    found = split_of(module, asked, project) if may_speak_of_ranks(module, asked, project) else None
    return found.true if found is not None else None


@pytest.mark.parametrize("test", ["self.verbose", "self.params['verbose']", "self.verbose and ready()"])
@pytest.mark.parametrize(
    "given",
    ["params['verbose'] = params['world_rank'] == 0", "params['verbose'] = dist.get_rank() == 0",
     "params['verbose'] = False\n    params['verbose'] = params['world_rank'] == 0",
     "params['verbose'] = (params['world_rank'] == 0) and params['log']"],
)  # fmt: skip
def test_an_item_that_is_given_a_test_of_the_rank(test: str, given: str) -> None:
    assert answer(test, given) is Ranks.ZERO, "the place stands under `rank == 0`"


def test_an_item_that_is_turned_round() -> None:
    assert answer("not self.verbose", "params['verbose'] = params['world_rank'] == 0") is Ranks.OTHERS
    assert answer("self.verbose", "params['verbose'] = params['world_rank'] != 0") is Ranks.OTHERS


@pytest.mark.parametrize(
    "given",
    ["params['verbose'] = True", "params['verbose'] = params['level'] > 1", "settings['verbose'] = params['world_rank'] == 0",
     "params['verbose'] = params['world_rank'] == 0\n    params['verbose'] = params['level']"],
)  # fmt: skip
def test_an_item_that_says_nothing_of_ranks(given: str) -> None:
    assert answer("self.verbose", given) is None, "nothing shows which ranks come to the place"


def test_an_item_by_the_name_of_a_rank() -> None:
    assert answer("self.params['world_rank'] == 0", "pass") is Ranks.ZERO
    assert answer("self.params['local_rank'] == 0", "pass") is Ranks.LOCAL_ZERO
    assert answer("self.params['rank'] == 0", "pass") is None, "a rank may be that of a search result"
