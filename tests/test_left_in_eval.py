"""DDP308: a model that rank 0 alone puts into eval mode in the training loop, and that stays there."""

from __future__ import annotations

import pytest

from codemods.sync.rank_local_training_state import RankLocalTrainingState as Rule
from ddpfix.testing import check_nothing, check_told

HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
)
LOOP = """def run(batches, optimizer, rank, drop=0.1):
    net = DDP(nn.Sequential(nn.Linear(2, 2), nn.Dropout(drop)))

    @torch.no_grad()
    def score():
        net.module.eval()
        net.eval()
        return sum(net.module(x).mean() for x in batches)

    for step in range(90):
        {test}
            {inside}
        for x in batches:
            net(x).sum().backward()
        optimizer.step()
"""


def program(test: str = "if step % 9 == 0 and rank == 0:", inside: str = "print(score())") -> str:
    return HEAD + LOOP.format(test=test, inside=inside).replace("        net.module.eval()\n", "")


def test_in_a_function_of_rank_zero() -> None:
    found = check_told(Rule, program(), reason="write `net.train()` behind it")
    assert "rank 0 alone puts `net` into eval mode" in found.message


def test_in_the_loop_itself() -> None:
    source = program(inside="net.eval()").replace("        net.eval()\n        return", "        return")
    check_told(Rule, source, reason="write `net.train()`")


def test_in_a_function_of_another_file() -> None:
    other = "def score(model, batches):\n    model.eval()\n    return [model.module(x) for x in batches]\n"
    source = HEAD + "from scores import score\n\n\n" + LOOP.format(test="if rank == 0:", inside="print(score(net, batches))")
    check_told(Rule, source.replace("def score(", "def unused("), reason="write `net.train()`", files={"scores.py": other})


@pytest.mark.parametrize(
    ("test", "inside"),
    [
        ("if True:", "print(score())"),  # all ranks
        ("if rank == 0:", "print(score()); net.train()"),
        ("if rank == 0:", "score()\n            break"),  # nobody trains on
        ("net.train()\n        if rank == 0:", "score()"),  # the next round begins in train mode
        ("net.eval()\n        if rank == 0:", "score()"),  # every rank trains in eval mode
    ],
)
def test_what_leaves_no_rank_apart(test: str, inside: str) -> None:
    check_nothing(Rule, program(test, inside))


def test_a_model_without_layers_of_two_modes() -> None:
    check_nothing(Rule, program().replace("nn.Dropout(drop)", "nn.ReLU()").replace("drop=0.1", "width=2"))


def test_the_mode_is_kept_and_put_back() -> None:
    kept = program().replace("        net.eval()\n", "        was = net.training\n        net.eval()\n")
    check_nothing(Rule, kept.replace("        return sum(", "        net.train(was)\n        return sum("))


def test_another_model_than_the_one_that_trains() -> None:
    check_nothing(Rule, program().replace("        net.eval()", "        average.eval()"))
