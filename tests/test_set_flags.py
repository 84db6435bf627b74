"""Flags that tests of the rank set, in branches and by keywords that a constructor makes fields of."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.ranks.makedirs_race import MakedirsRace
from ddpfix.testing import MAIN, check_nothing, findings_of, project_of


def ranks_here(source: str) -> Ranks:
    project = project_of("import torch.distributed as dist\n" + textwrap.dedent(source), {})
    module = project.module(MAIN)
    assert module is not None
    here = next(c for c in module.nodes(ast.Call) if dotted(c.func) == "here")
    return ranks_at(module, here, project=project)


FLAGS = [
    ("writes = False\n    if rank == 0:\n        writes = True", "writes", Ranks.ZERO),
    ("writes = True\n    if rank != 0:\n        writes = False", "writes", Ranks.ZERO),
    ("if rank == 0:\n        writes = True\n    else:\n        writes = False", "writes", Ranks.ZERO),
    ("if dry:\n        writes = False\n    elif rank == 0:\n        writes = True\n    else:\n        writes = False", "writes",
     Ranks.ZERO),
    ("quiet = False\n    if rank > 0:\n        quiet = True", "not quiet", Ranks.ZERO),
    ("if chosen is None:\n        writes = False\n    elif chosen == 'all' or chosen == rank:\n        writes = True\n    else:\n"
     "        writes = False", "writes", Ranks.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("given", "test", "ranks"), FLAGS)
def test_a_flag_of_branches_is_their_test(given: str, test: str, ranks: Ranks) -> None:
    assert ranks_here(f"def main(rank, dry, chosen):\n    {given}\n    if {test}:\n        here()\n") is ranks


@pytest.mark.parametrize(
    "given",
    ["writes = False\n    if dry:\n        writes = True", "writes = True\n    if rank == 0:\n        print()",
     "if rank == 0:\n        print()\n    writes = False\n    if dry:\n        writes = True",
     "if rank == 0:\n        writes = True\n    writes = False", "writes = False\n    if dry:\n        writes = True\n    else:\n"
     "        writes = False"],
)  # fmt: skip
def test_other_flags_are_none(given: str) -> None:
    assert ranks_here(f"def main(rank, dry):\n    {given}\n    if writes:\n        here()\n") is Ranks.ALL


def test_a_loop_may_set_the_flag_again() -> None:
    looped = "def main(rank, n):\n    seen = False\n    for i in range(n):\n        if rank == 0:\n            seen = True\n"
    assert ranks_here(f"{looped}    if seen:\n        here()\n") is Ranks.ALL


STORES = [
    "for key in kwargs:\n                setattr(self, key, kwargs[key])",
    "for key, value in kwargs.items():\n                setattr(self, key, value)",
    "self.__dict__.update(kwargs)",
    "self.__dict__.update(**kwargs)",
    "vars(self).update(kwargs)",
]
PASS = """
    import os

    class Pass:
        def __init__(self, **kwargs):
            {stores}

        def end(self, path):
            if {test}:
                if not os.path.exists(path):
                    os.makedirs(path)
    """
START = """
    import torch.distributed as dist
    from module import Pass

    def run(rank, kind):
        dist.init_process_group("nccl", rank=rank, world_size=2)
        if rank == 0:
            {name} = True
        else:
            {name} = False
        kind(folder="out", {name}={given}).end("out")

    run(dist.get_rank(), Pass)
    """


@pytest.mark.parametrize("stores", STORES)
@pytest.mark.parametrize("name", ["main", "main_one"])
def test_a_keyword_becomes_a_field(stores: str, name: str) -> None:
    source = PASS.format(stores=stores, test=f"self.{name}")
    check_nothing(MakedirsRace, source, files={"train.py": textwrap.dedent(START.format(name=name, given=name))})


@pytest.mark.parametrize(
    ("stores", "given"), [(STORES[1], "True"), ("self.main_one = kwargs.pop('folder')", "main_one")]
)
def test_another_field_is_no_test_of_the_rank(stores: str, given: str) -> None:
    source = PASS.format(stores=stores, test="self.loud_one")
    files = {"train.py": textwrap.dedent(START.format(name="loud_one", given=given).replace("rank == 0", "kind is None"))}
    assert findings_of(MakedirsRace, source, files)
