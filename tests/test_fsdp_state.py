"""DDP301: `state_dict()` of an FSDP wrapper on rank 0 alone, in a file that asks for no other kind of state."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = CollectiveUnderRankGuard
PROGRAM = """import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy


def train(net, loader, policy, strategy, args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    {wrap}
    for x in loader:
        model(x).sum().backward()
    {save}
"""
WRAP = "model = FSDP(net, auto_wrap_policy=policy)"
SAVE = 'if rank == 0:\n        torch.save(model.state_dict(), "last.pt")'


def program(*, wrap: str = WRAP, save: str = SAVE) -> str:
    return PROGRAM.format(wrap=wrap, save=save)


@pytest.mark.parametrize(
    "wrap",
    [
        WRAP,
        "model = torch.compile(FSDP(net, auto_wrap_policy=policy))",
        "model = FSDP(net, auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.FULL_SHARD)",
        "model = net\n    if args.many:\n        model = FSDP(model, auto_wrap_policy=policy)",
    ],
)
def test_rank_0_gathers_the_shards_alone(wrap: str) -> None:
    check_told(RULE, program(wrap=wrap), reason="model.state_dict waits for every rank")


def test_the_state_is_gathered_by_all() -> None:
    save = 'if rank == 0:\n        state = model.state_dict()\n        torch.save(state, "last.pt")'
    moved = 'state = model.state_dict()\n    if rank == 0:\n        torch.save(state, "last.pt")'
    check_transformed(RULE, program(save=save), program(save=moved))


@pytest.mark.parametrize(
    "wrap",
    [
        "model = FSDP(net)",  # after an evaluation rank 0 has the whole weights
        "model = FSDP(net, auto_wrap_policy=None)",
        "model = FSDP(net, auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
        "model = FSDP(net, auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.NO_SHARD)",
        "model = FSDP(net, auto_wrap_policy=policy, sharding_strategy=strategy)",  # which one, the file does not say
        "model = wrap(net, auto_wrap_policy=policy)",
        "model = FSDP(net, auto_wrap_policy=policy)\n    model = net",
        "FSDP.set_state_dict_type(net, kind)\n    model = FSDP(net, auto_wrap_policy=policy)",
    ],
)
def test_wraps_that_may_not_need_the_others(wrap: str) -> None:
    check_nothing(RULE, program(wrap=wrap))


@pytest.mark.parametrize(
    "save",
    [
        "state = model.state_dict()\n    if rank == 0:\n        torch.save(state, 'last.pt')",
        "if not args.fsdp:\n        if rank == 0:\n            torch.save(model.state_dict(), 'last.pt')",
        "if rank == 0 and not isinstance(model, FSDP):\n        torch.save(model.state_dict(), 'last.pt')",
        "if rank == 0:\n        torch.save(optimizer.state_dict(), 'last.pt')",
        "if rank == 0:\n        torch.save(net.state_dict(), 'last.pt')",
    ],
)
def test_states_that_wait_for_nobody(save: str) -> None:
    check_nothing(RULE, program(save=save))
