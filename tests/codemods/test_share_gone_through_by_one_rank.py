from __future__ import annotations

import pytest

from codemods.data_loading.share_gone_through_by_one_rank import ShareGoneThroughByOneRank
from ddpfix.testing import check_nothing, check_told

TRAIN = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader


def train(model, optimizer, rows, held_out, score):
    accelerator = Accelerator()
    train_loader = DataLoader(rows, batch_size=8, shuffle=True)
    test_loader = DataLoader(held_out, batch_size=8)
    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)
    for batch in train_loader:
        accelerator.backward(model(batch).mean())
        optimizer.step()
    if accelerator.is_main_process:
        for batch in test_loader:
            score.add(batch)
"""
SHUFFLED = TRAIN.replace("DataLoader(held_out, batch_size=8)", "DataLoader(held_out, batch_size=8, shuffle=True)")

HELPER = """\
def paint(pipe, loader, folder):
    for i, batch in enumerate(loader):
        pipe(batch).save(folder / f"{i}.png")
"""
CALLS = "from paint import paint\n" + TRAIN.replace(
    "        for batch in test_loader:\n            score.add(batch)\n", "        paint(score, test_loader, score.folder)\n"
)

SAMPLED = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def embed(data, net, write):
    dist.init_process_group("nccl")
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))
    if dist.get_rank() == 0:
        for batch in loader:
            write(net(batch))
"""

TRAINER = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader


def endless(loader):
    while True:
        for batch in loader:
            yield batch


class Trainer:
    def __init__(self, net, rows, held_out):
        self.accelerator = Accelerator()
        self.loader = DataLoader(rows, batch_size=4, shuffle=True)
        self.valid_loader = DataLoader(held_out, batch_size=4, shuffle=True)
        (
            self.net,
            self.loader,
            self.valid_loader
        ) = self.accelerator.prepare(net, self.loader, self.valid_loader)
        self.batches = endless(self.loader)
        self.valid_batches = endless(self.valid_loader)

    @property
    def is_main(self):
        return self.accelerator.is_main_process

    def step(self, show):
        self.accelerator.backward(self.net(next(self.batches)).mean())
        if self.is_main:
            show(next(self.valid_batches))
"""


def test_example_of_the_page() -> None:
    sections = ShareGoneThroughByOneRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(ShareGoneThroughByOneRank, before, reason="gather what comes of it")
    check_nothing(ShareGoneThroughByOneRank, after)


def test_a_shuffled_loader_waits() -> None:
    check_told(ShareGoneThroughByOneRank, SHUFFLED, reason="not prepared")
    check_told(ShareGoneThroughByOneRank, TRAINER, reason="outside of the test")


def test_a_few_batches_of_a_shuffled_loader() -> None:
    source = SHUFFLED.replace("for batch in test_loader:\n            score.add(batch)", "score.add(next(iter(test_loader)))")
    check_told(ShareGoneThroughByOneRank, source, reason="outside of the test")


def test_a_helper_of_another_file() -> None:
    check_told(ShareGoneThroughByOneRank, CALLS, files={"paint.py": HELPER}, reason="gather what comes of it")


def test_a_helper_that_rank_0_alone_calls() -> None:
    source = CALLS.replace("        paint(score, test_loader", "        report(score, test_loader").replace(
        "def train(", "def report(pipe, loader, folder):\n    paint(pipe, loader, folder)\n\n\ndef train("
    )
    check_told(ShareGoneThroughByOneRank, source, files={"paint.py": HELPER}, reason="gather what comes of it")


def test_a_sampler_that_shares_out() -> None:
    check_told(ShareGoneThroughByOneRank, SAMPLED, reason="without the sampler")


LOOP = "for batch in test_loader:\n            score.add(batch)"
BROKEN_OFF = "score.add(batch)\n            break\n"
OTHER_ARM = "    else:\n        for batch in test_loader:\n            score.send(batch)\n"
PREPARE = "    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)\n"
BY_ONE = "    if accelerator.is_main_process:\n        test_loader = accelerator.prepare(test_loader)\n"
UNPREPARED = PREPARE.replace(", test_loader", "")


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("a few batches of a loader that does not shuffle", TRAIN.replace("score.add(batch)\n", BROKEN_OFF)),
        ("its first batch", TRAIN.replace(LOOP, "score.add(next(iter(test_loader)))")),
        ("every rank goes through it", TRAIN.replace("    if accelerator.is_main_process:", "    if score:")),
        ("the loader is not prepared", TRAIN.replace(PREPARE, UNPREPARED)),
        ("how long it is", TRAIN.replace(LOOP, "print(len(test_loader))")),
        ("the others go through their share in the other arm", TRAIN + OTHER_ARM),
        ("rank 0 alone prepares", TRAIN.replace(PREPARE, BY_ONE)),
        (
            "what is brought together is set, and a few batches are taken",
            SHUFFLED.replace("Accelerator()", "Accelerator(rng_types=[])").replace("score.add(batch)\n", BROKEN_OFF),
        ),
        (
            "all ranks take batches of the iterator",
            TRAINER.replace("        if self.is_main:", "        next(self.valid_batches)\n        if self.is_main:"),
        ),
        (
            "an iterator over a loader that does not shuffle",
            TRAINER.replace("held_out, batch_size=4, shuffle=True", "held_out, batch_size=4"),
        ),
        ("a plain sampler", SAMPLED.replace("sampler=DistributedSampler(data, shuffle=False)", "shuffle=False")),
        ("a batch to look at", SAMPLED.replace("write(net(batch))\n", "write(net(batch))\n            break\n")),
        ("the sampler is a matter of a setting", SAMPLED.replace("sampler=Dist", "sampler=None if net.whole else Dist")),
    ],
)
def test_refuses(what: str, source: str) -> None:
    check_nothing(ShareGoneThroughByOneRank, source)


def test_a_helper_that_takes_a_few() -> None:
    few = HELPER + "        if i > 3:\n            break\n"
    check_nothing(ShareGoneThroughByOneRank, CALLS, files={"paint.py": few})
    counts = "def paint(pipe, loader, folder):\n    pipe.total = len(loader)\n"
    check_nothing(ShareGoneThroughByOneRank, CALLS, files={"paint.py": counts})
    other = "def paint(pipe, loader, folder):\n    loader = loader.whole()\n    for batch in loader:\n        pipe(batch)\n"
    check_nothing(ShareGoneThroughByOneRank, CALLS, files={"paint.py": other})


def test_a_loader_that_a_helper_may_make_without_the_sampler() -> None:
    source = SAMPLED.replace(
        "    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))\n",
        "    loader = loader_of(data, shared=False)\n",
    ) + (
        "\n\ndef loader_of(data, shared):\n    sampler = DistributedSampler(data) if shared else None\n"
        "    return DataLoader(data, batch_size=4, sampler=sampler)\n"
    )
    check_nothing(ShareGoneThroughByOneRank, source)


def test_a_number_that_another_finding_tells() -> None:
    source = SAMPLED.replace("for batch in loader:\n            write(net(batch))", (
        "total = 0.0\n        for batch in loader:\n            total += net(batch).item()\n"
        "        loss = total / len(loader)\n        print(f\"validation loss {loss:.4f}\")"
    ))  # fmt: skip
    check_nothing(ShareGoneThroughByOneRank, source)


def test_the_tests_of_a_repository() -> None:
    check_nothing(ShareGoneThroughByOneRank, TRAIN, path="tests/test_train.py")


HELPED = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler


def data_sampler(data, shuffle, distributed):
    if distributed:
        return DistributedSampler(data, shuffle=shuffle)
    if shuffle:
        return RandomSampler(data)
    return SequentialSampler(data)


def embed(data, net, write, args):
    dist.init_process_group("nccl")
    loader = DataLoader(data, batch_size=4, sampler=data_sampler(data, shuffle=True, distributed=args.distributed))
    if dist.get_rank() == 0:
        for batch in loader:
            write(net(batch))
"""


def test_a_helper_that_is_told_of_the_other_processes() -> None:
    check_told(ShareGoneThroughByOneRank, HELPED, reason="whole set")


@pytest.mark.parametrize(
    ("old", "new"),
    [("distributed=args.distributed", "distributed=False"), ("distributed=args.distributed", "distributed=args.shared"),
     ("if distributed:", "if not distributed:"),
     ("    if distributed:", "    if not shuffle:\n        return SequentialSampler(data)\n    if distributed:"),
     ("return DistributedSampler(data, shuffle=shuffle)", "return SequentialSampler(data)")],
)  # fmt: skip
def test_a_helper_that_may_give_the_whole_set(old: str, new: str) -> None:
    check_nothing(ShareGoneThroughByOneRank, HELPED.replace(old, new))


CHOSEN = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from tqdm import tqdm


def score(net, loader, rank):
    shown = loader
    if rank == 0:
        shown = tqdm(loader)
    seen = []
    for batch in shown:
        seen.append(net(batch))
    return seen


def run(net, rows, held_out, write):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    sampler = DistributedSampler(held_out, shuffle=False) if held_out else None
    test_loader = DataLoader(held_out, batch_size=4, sampler=sampler) if held_out else None
    if test_loader and rank == 0:
        write(score(net, test_loader, rank))
"""
ENTRY = CHOSEN.replace("    if test_loader and", '    loaders = {"test": test_loader}\n    if test_loader and').replace(
    "score(net, test_loader,", 'score(net, loaders["test"],'
)


@pytest.mark.parametrize("source", [CHOSEN, ENTRY, CHOSEN.replace("if held_out else", "if held_out is not None else")])
def test_a_loader_that_is_made_where_there_is_data(source: str) -> None:
    check_told(ShareGoneThroughByOneRank, source, reason="without the sampler")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("the sampler hangs on something else", "if held_out else None\n    test", "if net.shared else None\n    test"),
        ("the data stay, the sampler goes", "sampler = Dist", "sampler = None if rows else Dist"),
        ("a few batches", "tqdm(loader)", "islice(loader, 4)"),
        ("another loader is gone through", "shown = loader\n", "shown = loader.whole()\n"),
        ("every rank calls it", "if test_loader and rank == 0:", "if test_loader:"),
        ("a loader of its own", "sampler=sampler)", "shuffle=False)"),
    ],
)
def test_refuses_a_chosen_loader(what: str, old: str, new: str) -> None:
    check_nothing(ShareGoneThroughByOneRank, CHOSEN.replace(old, new))
    check_nothing(ShareGoneThroughByOneRank, ENTRY.replace(old, new))


LEFT_OUT = SAMPLED.replace(
    "    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))\n",
    "    own = DistributedSampler(data, shuffle=False) if {asked} else None\n"
    "    loader = DataLoader(data, batch_size=4, sampler=own){made}\n",
)


@pytest.mark.parametrize(("asked", "made"), [("data", " if data else None"), ("dist.get_world_size() > 1", "")])
def test_a_sampler_that_is_left_out_where_there_is_no_share(asked: str, made: str) -> None:
    check_told(ShareGoneThroughByOneRank, LEFT_OUT.format(asked=asked, made=made), reason="give rank 0 a loader of the whole set")


@pytest.mark.parametrize(("asked", "made"), [("net.shares", " if data else None")])
def test_a_sampler_that_another_test_leaves_out(asked: str, made: str) -> None:
    check_nothing(ShareGoneThroughByOneRank, LEFT_OUT.format(asked=asked, made=made))
