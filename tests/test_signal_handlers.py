"""What a signal handler sets is each process's own, wherever the handler is written."""

from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told

HEAD = """import signal

import torch.distributed as dist; WORLD = dist.group.WORLD
from torch.nn.parallel import DistributedDataParallel as DDP


"""
LOOP = """    def epoch(self):
        for batch in self.loader:
            if self.leaving:
                return
            self.model(batch).sum().backward()
"""
CATCHES = """class Runner:
    def __init__(self, model, loader):
        self.model, self.loader, self.leaving = DDP(model), loader, False

    def catch(self):
        def on_signal(signum, frame):
            self.leaving = VALUE

        signal.signal(signal.SIGTERM, HANDLER)

"""


def catching(value: str = "True", handler: str = "on_signal") -> str:
    return CATCHES.replace("VALUE", value).replace("HANDLER", handler)


def test_a_handler_inside_of_a_method_sets_the_field() -> None:
    check_told(OneRankDecision, HEAD + catching() + LOOP, reason="reduce the deciding number")


def test_a_handler_inside_of_a_method_of_a_base_in_another_file() -> None:
    trainer = f"{HEAD}from catching import Runner\n\n\nclass Trainer(Runner):\n{LOOP}"
    check_told(OneRankDecision, trainer, files={"catching.py": HEAD + catching()}, reason="reduce the deciding number")


def test_a_function_inside_that_no_signal_calls() -> None:
    check_nothing(OneRankDecision, HEAD + catching(handler="signal.SIG_IGN") + LOOP)


def test_a_handler_that_sets_another_field() -> None:
    check_nothing(OneRankDecision, HEAD + catching().replace("self.leaving = True", "self.seen = True") + LOOP)


@pytest.mark.parametrize("reduced", ["dist.all_reduce(stop, op=dist.ReduceOp.MAX)", "dist.broadcast(stop, src=0)"])
def test_a_flag_that_all_ranks_share_before_they_leave(reduced: str) -> None:
    shared = f"stop = torch.tensor(float(self.leaving))\n            {reduced}\n            if stop > 0:"
    loop = LOOP.replace("if self.leaving:", shared)
    head = f"import torch\n{HEAD}"
    check_nothing(OneRankDecision, head + catching() + loop)
