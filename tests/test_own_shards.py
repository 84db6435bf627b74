"""DDP502: an optimizer's own state that rank 0 saves beside the full state of an FSDP model."""

from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_nothing, check_told

PROGRAM = """\
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def save_on_master(*args, **kwargs):
    if dist.get_rank() == 0:
        torch.save(*args, **kwargs)


def save_model(path, model, optimizer, sharded):
    policy = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.{kind}, policy):
        weights = model.state_dict()
    {save}
"""
UNDER_A_TEST = 'if dist.get_rank() == 0:\n        torch.save({"model": weights, "optimizer": optimizer.state_dict()}, path)'
HELPER = 'save_on_master({"model": weights, "optimizer": optimizer.state_dict()}, path)'
NAMED = 'state = {"model": weights, "optim": optimizer.state_dict()}\n    save_on_master(state, path)'


def program(save: str, kind: str = "FULL_STATE_DICT") -> str:
    return PROGRAM.replace("{save}", save).replace("{kind}", kind)


@pytest.mark.parametrize("save", [UNDER_A_TEST, HELPER, NAMED, UNDER_A_TEST.replace("optimizer.s", "trainer.optimizer.s")])
def test_the_shards_of_rank_zero(save: str) -> None:
    check_told(WrappedStateDict, program(save), reason="FSDP.optim_state_dict(")


@pytest.mark.parametrize(
    "save",
    [
        "moments = FSDP.optim_state_dict(model, optimizer)\n    " + UNDER_A_TEST.replace("optimizer.state_dict()", "moments"),
        'torch.save({"optimizer": optimizer.state_dict()}, f"{path}-{dist.get_rank()}")',  # each rank its own
        UNDER_A_TEST.replace("optimizer", "scheduler"),  # the same on every rank
        UNDER_A_TEST.replace(', "optimizer": optimizer.state_dict()', ""),
        "print(optimizer.state_dict())",
        "strategy = 'NO_SHARD'\n    " + HELPER,
    ],
)
def test_states_that_are_whole_or_of_each_rank(save: str) -> None:
    check_nothing(WrappedStateDict, program(save))


def test_other_states_and_other_arms() -> None:
    check_nothing(WrappedStateDict, program(HELPER, kind="SHARDED_STATE_DICT"))
    text = program("pass").replace("    with FSDP", "    if sharded:\n     with FSDP")
    text = text.replace("        weights", "         weights")
    other = "    else:\n        save_on_master({'optimizer': optimizer.state_dict()}, path)\n"
    check_nothing(WrappedStateDict, text.replace("    pass\n", other))
