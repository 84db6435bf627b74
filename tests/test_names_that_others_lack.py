"""DDP301, DDP305: a name that decides and that rank 0 alone has is told by DDP210, for the others end at its use."""

from __future__ import annotations

from codemods.ranks.value_of_one_rank import ValueOfOneRank
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told

RUN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def run(net, batches, optimizer):
    model = DDP(net)
    {above}
    if dist.get_rank() == 0:
        rounds = range(first_of("state.pt"), 9)
    for _ in rounds:
        loss = model(batches[0]).sum()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss)
"""


def test_a_name_that_the_others_lack_is_told_as_such() -> None:
    source = RUN.format(above="model.train()")
    for rule in (CollectiveUnderRankGuard, OneRankDecision):
        check_nothing(rule, source)
    assert "UnboundLocalError" in check_told(ValueOfOneRank, source, reason="give the other ranks a value").message


def test_a_name_that_all_ranks_have_decides() -> None:
    check_told(CollectiveUnderRankGuard, RUN.format(above="rounds = range(9)"), reason="")
