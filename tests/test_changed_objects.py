"""What a function puts into the fields of an object that it is handed is the caller's as well, wherever the function stands."""

from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

STATE = "class State:\n    def __init__(self):\n        self.best, self.seen, self.rows = 1e9, 0, []\n"
HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n"
)
LOOP = """
def main(dataset):
    dist.init_process_group("nccl")
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset), batch_size=4)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    state = State()
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        {}
        if {}:
            break
"""
LOWER = "def update(state, value):\n    state.best = min(state.best, value)\n"
REDUCED = (
    "def {}(state{}):\n    best = torch.tensor({})\n    dist.all_reduce(best, op=dist.ReduceOp.MIN)\n"
    "    state.best = best.item()\n"
)
SYNC = REDUCED.format("sync", "", "state.best")


def found(helpers: str, call: str, test: str, *, apart: bool = False) -> list[int]:
    """The lines of the findings of the program, with the helpers in its file or in another."""
    loop = LOOP.format(call, test)
    if not apart:
        return [f.span.line for f in findings_of(OneRankDecision, HEAD + STATE + helpers + loop)]
    bring = "from helpers import *\n"
    other = {"helpers.py": f"import torch\nimport torch.distributed as dist\n\n{STATE}{helpers}"}
    return [f.span.line for f in findings_of(OneRankDecision, HEAD + bring + loop, other)]


@pytest.mark.parametrize("apart", [False, True], ids=["in its file", "in another"])
@pytest.mark.parametrize(
    ("helpers", "call", "test"),
    [
        ("", "state.best = min(state.best, loss.item())", "state.best < 0.1"),
        (LOWER, "update(state, loss.item())", "state.best < 0.1"),
        ("def update(state, value):\n    if value < state.best:\n        state.best = value\n",
         "update(state, loss.item())", "state.best < 0.1"),
        ("def update(state, value):\n    state.rows.append(value)\n", "update(state, loss.item())", "sum(state.rows) < 1"),
        ("def update(state, value):\n    state.seen += int(value > 1)\n", "update(state, loss.item())", "state.seen > 5"),
        (LOWER + "def step(run, value):\n    update(run, value)\n", "step(state, loss.item())", "state.best < 0.1"),
        (LOWER + SYNC, "sync(state)\n        update(state, loss.item())", "state.best < 0.1"),
    ],
    ids=["by hand", "set", "set under a test", "a list", "a counter", "over two functions", "set behind the sync"],
)  # fmt: skip
def test_a_field_of_the_own_data_decides(helpers: str, call: str, test: str, *, apart: bool) -> None:
    assert len(found(helpers, call, test, apart=apart)) == 1


@pytest.mark.parametrize("apart", [False, True], ids=["in its file", "in another"])
@pytest.mark.parametrize(
    ("helpers", "call", "test"),
    [
        (REDUCED.format("update", ", value", "value"), "update(state, loss.item())", "state.best < 0.1"),
        (LOWER + SYNC, "update(state, loss.item())\n        sync(state)", "state.best < 0.1"),
        (SYNC, "state.best = min(state.best, loss.item())\n        sync(state)", "state.best < 0.1"),
        ("def update(state, value):\n    state.seen += 1\n", "update(state, loss.item())", "state.seen > 5"),
        (LOWER, "update(state, loss.item())", "state.seen > 5"),
        (LOWER, "update(State(), loss.item())", "state.best < 0.1"),
        ("def update(state, value):\n    state = State()\n    state.best = value\n", "update(state, loss.item())",
         "state.best < 0.1"),
    ],
    ids=["reduced", "reduced by another", "by hand, then reduced", "a number of rounds", "another field", "another object",
         "an object of its own"],
)  # fmt: skip
def test_a_field_that_is_the_same_on_all_ranks(helpers: str, call: str, test: str, *, apart: bool) -> None:
    assert found(helpers, call, test, apart=apart) == []
