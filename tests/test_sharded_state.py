"""DDP301: a state of which each rank holds a part, and that only some ranks put together."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = CollectiveUnderRankGuard
HEAD = """import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

"""
COLLECTED = """
def collected(model, optimizer):
    with FSDP.state_dict_type(model, StateDictType.KIND, FullStateDictConfig(rank0_only=True)):
        return PARTS

"""
TRAINS = """
def train(model, optimizer):
    dist.init_process_group("nccl")
    for step in range(100):
        if dist.get_rank() == 0 and step % 10 == 0:
            torch.save(collected(model, optimizer), "last.pt")
"""
ZERO = "import torch\nimport torch.distributed as dist\n\n\ndef keep(sharded):\n    dist.init_process_group('gloo')\n"


def collected(kind: str = "FULL_STATE_DICT", state: str = "model.state_dict()") -> str:
    return COLLECTED.replace("KIND", kind).replace("PARTS", state)


@pytest.mark.parametrize("state", ["model.state_dict()", "FSDP.optim_state_dict(model, optimizer)"])
def test_the_full_state_that_a_helper_collects(state: str) -> None:
    check_told(RULE, HEAD + collected(state=state) + TRAINS, reason="waits for every rank")


def test_the_full_state_that_a_helper_of_another_file_collects() -> None:
    trains = f"import torch\nimport torch.distributed as dist\n\nfrom saving import collected\n{TRAINS}"
    check_told(RULE, trains, files={"saving.py": HEAD + collected()}, reason="collected() -> model.state_dict")


def test_parameters_that_are_put_together_on_rank_0() -> None:
    source = (
        f"{HEAD}\ndef show(model):\n    dist.init_process_group('nccl')\n    if dist.get_rank() == 0:\n        before()\n"
        "        with FSDP.summon_full_params(model):\n            print(model.head.weight.norm())\n"
    )
    check_told(RULE, source, reason="FSDP.summon_full_params waits for every rank")


def test_the_state_of_a_sharded_optimizer() -> None:
    guard = "    if dist.get_rank() == 0:\n"
    ask = "sharded.consolidate_state_dict(to=0)\n"
    write = "        torch.save(sharded.state_dict(), 'o.pt')\n"
    check_transformed(RULE, f"{ZERO}{guard}        {ask}{write}", f"{ZERO}    {ask}{guard}{write}")


ENGINE = """import deepspeed
import torch.distributed as dist


def train(model, settings):
    actor, optimizer, _, _ = deepspeed.initialize(model=model, config=settings)
    for step in range(100):
        actor.backward(actor(step))
        if dist.get_rank() == 0:
            KEEP
"""


def test_the_checkpoint_of_an_engine_by_any_name() -> None:
    kept = "    actor.save_checkpoint('out', tag=str(step))\n"
    before = ENGINE.replace("            KEEP\n", f"        {kept}")
    after = ENGINE.replace("        if dist.get_rank() == 0:\n            KEEP\n", f"    {kept}")
    check_transformed(RULE, before, after)


GIVEN = """import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import fully_shard


def restore(model, path):
    dist.init_process_group("nccl")
    fully_shard(model)
    options = StateDictOptions(full_state_dict=True, OPTION)
    if dist.get_rank() == 0:
        state = torch.load(path)
        set_model_state_dict(model, state, options=options)
"""


def test_a_state_that_rank_0_gives_out_alone() -> None:
    check_told(RULE, GIVEN.replace("OPTION", "broadcast_from_rank0=True"), reason="set_model_state_dict waits for every rank")


def test_a_state_that_each_rank_puts_in_for_itself() -> None:
    check_nothing(RULE, GIVEN.replace("OPTION", "strict=False"))


@pytest.mark.parametrize("kind", ["LOCAL_STATE_DICT", "SHARDED_STATE_DICT"])
def test_a_state_that_stays_in_its_parts(kind: str) -> None:
    check_nothing(RULE, HEAD + collected(kind) + TRAINS)


def test_a_model_that_each_rank_has_all_of() -> None:
    wrap = "\ndef wrap(net):\n    return FSDP(net, sharding_strategy=ShardingStrategy.NO_SHARD)\n"
    check_nothing(RULE, HEAD.replace("import FullState", "import ShardingStrategy, FullState") + wrap + collected() + TRAINS)


def test_a_strategy_of_several() -> None:
    wrap = "\ndef pick(name):\n    return S.NO_SHARD if name == 'none' else S.FULL_SHARD\n"
    head = HEAD + "from torch.distributed.fsdp import ShardingStrategy as S\n"
    check_told(RULE, head + wrap + collected() + TRAINS, reason="waits for every rank")


def test_the_state_of_another_model_in_that_context() -> None:
    check_nothing(RULE, HEAD + collected(state="average.state_dict()") + TRAINS)


def test_a_plain_state_dict() -> None:
    check_nothing(RULE, HEAD + collected().replace("FSDP.state_dict_type", "torch.profiler.record_function") + TRAINS)


def test_all_ranks_collect_and_rank_0_writes() -> None:
    trains = TRAINS.replace(
        "        if dist.get_rank() == 0 and step % 10 == 0:\n            torch.save(collected(model, optimizer), \"last.pt\")\n",
        "        state = collected(model, optimizer)\n"
        "        if dist.get_rank() == 0:\n            torch.save(state, \"last.pt\")\n",
    )
    check_nothing(RULE, HEAD + collected() + trains)


def test_the_engine_writes_on_all_ranks() -> None:
    guarded = "        if dist.get_rank() == 0:\n            KEEP\n"
    check_nothing(RULE, ENGINE.replace(guarded, "        actor.save_checkpoint('out')\n"))


def test_another_object_that_saves_checkpoints() -> None:
    check_nothing(RULE, ENGINE.replace("KEEP", "keeper.save_checkpoint('out')"))


def test_a_project_that_consolidates_by_its_own_method() -> None:
    own = "class Table:\n    def consolidate_state_dict(self, to):\n        return to\n"
    source = f"{ZERO}    if dist.get_rank() == 0:\n        sharded.consolidate_state_dict(to=0)\n"
    check_nothing(RULE, source, files={"tables.py": own})


SAVES = """import torch.distributed as dist
from deepspeed.runtime.zero import GatheredParameters


def keep(engine, path):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        with GatheredParameters(engine.module.parameters(), modifier_rank=0):
            engine.module.save(path)
"""


def test_parameters_that_zero_divides() -> None:
    for files in ({}, {"ds.json": '{"zero_optimization": {"stage": 3}}', "two.json": '{"zero_optimization": {"stage": 2}}'}):
        check_told(RULE, SAVES, reason="GatheredParameters waits for every rank", files=files)


def test_parameters_that_each_rank_has_whole() -> None:
    # below the third stage the context does nothing
    check_nothing(RULE, SAVES, files={"ds.json": '{"zero_optimization": {"stage": 2}}'})
    check_nothing(RULE, SAVES.replace("deepspeed.runtime.zero", "own.shards"))
    check_nothing(RULE, SAVES.replace("    if dist.get_rank() == 0:\n        with", "    if True:\n        with"))
