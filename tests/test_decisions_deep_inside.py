"""DDP305: exits below other tests, what is summed behind the exit, shares by a slice, trackers that a base class names."""

from __future__ import annotations

import pytest

from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = OneRankDecision
TRAINER = """
import torch
from accelerate import Accelerator


class Trainer:
    def __init__(self, model, loader, tracker=None):
        self.accelerator = Accelerator()
        self.model, self.loader = self.accelerator.prepare(model, loader)

    def train(self):
        for batch in self.loader:
            loss = self.model(batch).loss
            if TEST:
                if self.step > 0:
                    loss = torch.tensor(self.total)
                else:
                    del loss
                    LEAVE
            self.accelerator.wait_for_everyone()
            self.accelerator.backward(loss)
"""


@pytest.mark.parametrize("leave", ["continue", "break", "return"])
def test_an_exit_below_a_test_on_which_all_agree(leave: str) -> None:
    source = TRAINER.replace("TEST", "torch.isnan(loss)").replace("LEAVE", leave)
    found = check_told(RULE, source, reason="gather the deciding number")
    line = source.split("\n").index(f"                    {leave}") + 1
    assert f"a rank that leaves in line {line} does not call" in found.message


@pytest.mark.parametrize(
    ("test", "leave"), [("self.step % 10 == 0", "continue"), ("torch.isnan(loss)", "loss = self.model(batch).loss")]
)
def test_all_agree_on_the_outer_test_or_nobody_leaves(test: str, leave: str) -> None:
    check_nothing(RULE, TRAINER.replace("TEST", test).replace("LEAVE", leave))


def test_an_exit_that_only_one_process_takes() -> None:
    source = TRAINER.replace("TEST", "torch.isnan(loss)").replace("self.step > 0", "self.accelerator.num_processes > 1")
    check_nothing(RULE, source.replace("LEAVE", "continue"))


def test_an_exit_of_those_that_do_not_come_to_the_collective() -> None:
    """`generate()` of transformers: either all ranks go on together, or each one ends by itself."""
    source = """
import torch
import torch.distributed as dist


def generate(model, batch, done, synced=False):
    dist.init_process_group("gloo")
    while True:
        if FIRST:
            going = torch.tensor(0.0 if done else 1.0)
            dist.all_reduce(going)
        loss = model(batch).loss
        if loss.item() > 3:
            if not synced:
                break
            done = True
"""
    check_nothing(RULE, source.replace("FIRST", "synced"))
    check_told(RULE, source.replace("if FIRST:", "with torch.no_grad():"), reason="reduce the deciding number")


def test_a_continue_of_a_loop_in_the_arm_leaves_that_loop_alone() -> None:
    source = TRAINER.replace("TEST", "torch.isnan(loss)").replace("LEAVE", "for n in range(3):\n                        continue")
    check_nothing(RULE, source)


CODEBOOK = """
import torch
import torch.distributed as dist


class Codebook(torch.nn.Module):
    def forward(self, inputs):
        flat = inputs.reshape(-1, 8)
        if flat.abs().max() > self.limit:
            return inputs
        counts = torch.zeros(len(SUMMED))
        counts.index_add_(0, self.nearest(SUMMED), SUMMED)
        sums = counts @ SUMMED
        dist.all_reduce(sums)
        return inputs + sums.mean()


def main(loader):
    dist.init_process_group("gloo")
    book = torch.nn.parallel.DistributedDataParallel(Codebook())
    for batch in loader:
        book(batch).sum().backward()
"""


def test_what_is_summed_behind_the_exit_is_each_ranks_own() -> None:
    found = check_told(RULE, CODEBOOK.replace("SUMMED", "flat"), reason="reduce the deciding number")
    assert "torch.distributed.all_reduce" in found.message


TRACKED = """
from abc import ABC, abstractmethod

import torch
from accelerate import Accelerator


class Tracker(ABC):
    @abstractmethod
    def update(self, numbers):
        pass

    @abstractmethod
    def averages(self):
        pass


class Averages(Tracker):
    def __init__(self, accelerator):
        self.values, self.accelerator = {}, accelerator

    def update(self, numbers):
        for key, value in numbers.items():
            self.values[key] = value

    def averages(self):
        found = {}
        for key, value in self.values.items():
            value = SHARED
            found[key] = value
        return found


class Trainer:
    def __init__(self, model, loader, tracker=Averages):
        self.accelerator = Accelerator()
        self.model, self.loader = self.accelerator.prepare(model, loader)
        self.tracker TYPE = tracker(self.accelerator)

    def evaluate(self):
        for batch in self.loader:
            self.tracker.update(self.numbers(self.model(batch).loss))
        return self.tracker.averages()

    def train(self):
        for epoch in range(10):
            if self.evaluate()["loss"] > self.best:
                break
            self.accelerator.wait_for_everyone()
"""
GATHERED = "self.accelerator.gather(torch.tensor(value)).mean().item()"


@pytest.mark.parametrize("annotation", ["", ": Tracker"])
def test_a_class_that_is_handed_over_and_reduces_what_it_was_told(annotation: str) -> None:
    check_nothing(RULE, TRACKED.replace(" TYPE", annotation).replace("SHARED", GATHERED))


def test_a_class_that_is_handed_over_and_keeps_what_it_was_told() -> None:
    check_told(RULE, TRACKED.replace(" TYPE", "").replace("SHARED", "value * 1.0"), reason="gather the deciding number")


SHARE = """
import torch.distributed as dist


def train(model, rows, names):
    rank = dist.get_rank()
    mine = slice(rank * 8, (rank + 1) * 8)
    part = rows[mine]
    FIRST
    if TEST:
        dist.all_reduce(names)
"""


def test_a_slice_by_the_rank_is_its_own_share() -> None:
    found = check_told(RULE, SHARE.replace("FIRST", "loss = model(part)").replace("TEST", "loss.mean() > 3"), reason="reduce")
    assert "each rank's own data decide" in found.message


def test_a_name_that_a_batch_has_is_on_all_ranks() -> None:
    first = 'name = getattr(model, "input_name", "ids")\n    batch = {"ids": part}'
    check_nothing(RULE, SHARE.replace("FIRST", first).replace("TEST", "name in batch"))


def test_what_is_not_summed_behind_the_exit_is_a_guess() -> None:
    check_nothing(RULE, CODEBOOK.replace("SUMMED", "self.weight"))


HANDLER = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def evaluate(model, loader):
    total = 0.0
    for batch in loader:
        try:
            total += model(batch).item()
BEHIND
        except Exception as error:
            print(error)
            dist.barrier()
            continue
    dist.barrier()
    return total


def main(loader):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
    evaluate(model, loader)
"""


def test_a_barrier_in_a_handler_is_one_more_than_the_others_make() -> None:
    found = check_told(RULE, HANDLER.replace("BEHIND\n", ""), reason="take the call out of the handler")
    assert "this rank alone calls torch.distributed.barrier" in found.message


def test_a_barrier_in_a_handler_that_stands_for_the_one_of_the_body() -> None:
    check_nothing(RULE, HANDLER.replace("BEHIND", "            dist.barrier()"))


STEPS = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Log:
    def log_every(self, first, source):
        step = first
        for batch in source:
            yield step, batch
            step += 1


def main(rows, model):
    dist.init_process_group("nccl")
    loader = DataLoader(rows, sampler=DistributedSampler(rows))
    for step, batch in Log().log_every(0, loader):
        loss = model(batch).mean()
        if TEST:
            dist.all_reduce(loss)
"""


def test_the_counter_that_a_generator_hands_out_beside_a_batch_is_the_same() -> None:
    check_nothing(RULE, STEPS.replace("TEST", "step % 100 == 0"))
    check_told(RULE, STEPS.replace("TEST", "batch.mean() > 3"), reason="reduce")


STARTED = """
import torch.distributed as dist


def start():
    if not dist.is_initialized():
        FIRST


def main(model, batch):
    try:
        start()
        dist.barrier()
    except RuntimeError:
        print("alone")
    model(batch)
"""


def test_a_start_of_the_group_that_fails_fails_on_all_ranks() -> None:
    check_nothing(RULE, STARTED.replace("FIRST", 'dist.init_process_group("nccl")'))
    check_told(RULE, STARTED.replace("FIRST", "print(open('rank.txt').read())"), reason="let the exception end the process")


REDUCED = """
import torch
import torch.distributed as dist


def reduce_dict(losses):
    if not losses:
        return losses
    keys = sorted(losses.keys())
    values = torch.stack([losses[k] for k in keys])
    dist.all_reduce(values)
    return dict(zip(keys, values))


def main(model, loader):
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
    for batch in loader:
        losses = {"a": model(batch).mean(), "b": model(batch).sum()}
        reduce_dict(losses)
        sum(losses.values()).backward()
"""


def test_whether_a_dict_has_entries_is_no_matter_of_what_they_hold() -> None:
    check_nothing(RULE, REDUCED)
    check_told(RULE, REDUCED.replace("if not losses:", "if losses['a'] > 3:"), reason="reduce the deciding number")


SPAWNED = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, model, loader):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(model)
    for batch in loader:
        model(batch).sum().backward()


def main(model, loader):
    try:
        START
    except Exception:
        worker(0, model, loader)


if __name__ == "__main__":
    main(1, 2)
"""


def test_the_process_that_starts_the_ranks_is_none_of_them() -> None:
    check_nothing(RULE, SPAWNED.replace("START", "mp.spawn(worker, (model, loader), nprocs=2)"))


INNER = """
import os
import torch
from accelerate import Accelerator


def main(model, loader, folder):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    if accelerator.is_main_process:
        INNER
    for batch in loader:
        accelerator.backward(model(batch).mean())
"""


def test_a_function_in_the_arm_returns_from_itself_alone() -> None:
    inner = "def first(rows):\n            for row in rows:\n                return row\n        print(first([1]))"
    check_nothing(RULE, INNER.replace("INNER", inner))
    assert not findings_of(EarlyReturnBeforeCollective, INNER.replace("INNER", inner))
    left = "if folder:\n            return"
    assert findings_of(EarlyReturnBeforeCollective, INNER.replace("INNER", left))


VALIDATED = """
import torch
import torch.distributed as dist


def train(model, loader, val_loader, optimizer):
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
    for batch in loader:
        model(batch).sum().backward()
    if val_loader:
        for batch in val_loader:
            model(batch)


def main(model, data, args):
    sampler = torch.utils.data.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, sampler=sampler)
    train(model, loader, torch.utils.data.DataLoader(data, sampler=sampler) if args.validate else None, 3)
"""


def test_whether_there_is_a_loader_is_asked_alike_everywhere() -> None:
    check_nothing(RULE, VALIDATED)


AGREED = """
import torch
from accelerate import Accelerator


def main(model, loader):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    for batch in loader:
        loss = model(batch).mean()
        try:
            flag = torch.tensor(batch.skip, device=accelerator.device)
            stop = accelerator.reduce(WORK, reduction="sum").item() > 0
        except Exception:
            stop = True
        if not stop:
            accelerator.backward(loss)
"""


def test_an_error_in_the_collective_itself_meets_all_ranks() -> None:
    assert not [f for f in findings_of(RULE, AGREED.replace("WORK", "flag")) if "is caught" in f.message]
    assert [f for f in findings_of(RULE, AGREED.replace("WORK", "prepared(flag)")) if "is caught" in f.message]


OPTIONS = """
import os
import torch
import torch.distributed as dist


def train(**options):
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(options["model"])
    if options["KEY"] == "a":
        model(torch.zeros(1)).sum().backward()


def main(model, args):
    settings = {"model": model, "name": args.name, "rank": int(os.environ["RANK"])}
    train(**settings)
"""


def test_a_key_of_keywords_is_not_what_another_key_holds() -> None:
    check_nothing(RULE, OPTIONS.replace("KEY", "name"))


def test_a_batch_alone_that_a_generator_hands_out() -> None:
    source = STEPS.replace("yield step, batch", "yield batch").replace("for step, batch in Log()", "for batch in Log()")
    check_told(RULE, source.replace("TEST", "batch.mean() > 3"), reason="reduce")
