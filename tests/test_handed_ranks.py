"""A rank that is handed into objects, records and decorators of files that say nothing of processes themselves."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability
from codemods.ranks.makedirs_race import MakedirsRace
from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, findings_of

DIST = "import os\nimport torch\nimport torch.distributed as dist\n"


def program(body: str) -> str:
    return DIST + textwrap.dedent(body)


TALKER = """
    class Talker:
        def __init__(self, folder, {name}):
            self.{name} = {name}

        def say(self, text):
            if self.{name} == 0:
                print(text)
    """
USES_IT = program("""
    from talker import Talker

    def main():
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        talker = Talker("out", {given})
        talker.say("begins")
        if rank == 0:
            print("here")
    """)


@pytest.mark.parametrize("name", ["rank", "rank_id", "my_rank"])
def test_an_object_that_is_handed_the_rank_sees_to_it_itself(name: str) -> None:
    files = {"talker.py": TALKER.format(name=name)}
    check_nothing(UnguardedPrint, USES_IT.format(given="rank"), files=files)
    other = {"talker.py": TALKER.format(name=name).replace(f"if self.{name} == 0:", "if text:")}
    assert findings_of(UnguardedPrint, USES_IT.format(given="rank"), other)


def test_a_size_that_is_handed_over_makes_no_guard() -> None:
    files = {"talker.py": TALKER.format(name="rank")}
    assert findings_of(UnguardedPrint, USES_IT.format(given="16"), files)


MASKED = """
    class Book:
        def __init__(self, path, rank_id=0):
            self.path, self.rank_id = path, rank_id

        def first(func):
            def inner(self, *args):
                if {test}:
                    return func(self, *args)
            return inner

        @first
        def note(self, text):
            print(text)
    """
NOTES = program("""
    from book import Book

    def main():
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        book = Book("notes.txt", rank)
        book.note("begins")
        if rank == 0:
            print("here")
    """)


def test_a_decorator_of_the_class_body_keeps_the_other_ranks_out() -> None:
    check_nothing(UnguardedPrint, NOTES, files={"book.py": MASKED.format(test="self.rank_id == 0")})
    assert findings_of(UnguardedPrint, NOTES, {"book.py": MASKED.format(test="text").replace("@first", "")})


RECORD = {
    "place.py": program("""
        from dataclasses import dataclass

        @dataclass
        class Place:
            size: int
            master: bool

        def enter():
            dist.init_process_group("nccl")
            return Place(size=dist.get_world_size(), master=(dist.get_rank() == 0))
        """)
}


def test_a_record_is_given_its_test_by_keyword() -> None:
    source = """
        import os
        from place import enter

        def begin(path):
            place = enter()
            if place.master:
                if not os.path.exists(path):
                    os.makedirs(path)
        """
    start = "import torch.distributed as dist\nfrom module import begin\n\ndist.init_process_group('nccl')\nbegin('out')\n"
    files = {**RECORD, "train.py": start}
    check_nothing(MakedirsRace, source, files=files)
    assert findings_of(MakedirsRace, source.replace("place.master", "place.size > 1"), files)


# Who comes there at all

HELPER = """
    import os

    def make(path):
        if not os.path.exists(path):
            os.makedirs(path)
    """


def test_a_helper_that_only_a_show_calls_makes_its_folder_on_one_process() -> None:
    training = {"train.py": program("from module import other\n\ndist.init_process_group('nccl')\n")}
    source = HELPER + "\n    def other():\n        return 1\n"
    check_nothing(MakedirsRace, source, files={**training, "show.py": "from module import make\n\nmake('pictures')\n"})
    training["train.py"] += "from module import make\nmake('out')\n"
    assert findings_of(MakedirsRace, source, training)


BAR = """
    from tqdm import tqdm

    def main(loader, ddp, fast):
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        if ddp:
            items = tqdm(loader, disable=rank != 0)
        else:
            items = tqdm(loader)
        for item in items:
            step(item)
        if rank == 0:
            print("done")
    """


def test_the_branch_of_one_process_needs_no_test() -> None:
    check_nothing(ProgressBarOnEveryRank, program(BAR))
    assert findings_of(ProgressBarOnEveryRank, program(BAR.replace("if ddp", "if fast")))


def test_a_bar_that_is_named_after_the_rank_is_one_for_each() -> None:
    body = """
        from tqdm import tqdm

        def main(loader):
            dist.init_process_group("nccl")
            rank = dist.get_rank()
            {0}
            for item in tqdm(loader, desc=text):
                step(item)
            if rank == 0:
                print("done")
        """
    check_nothing(ProgressBarOnEveryRank, program(textwrap.dedent(body).format('text = f"(rank {rank}) sampling"')))
    assert findings_of(ProgressBarOnEveryRank, program(textwrap.dedent(body).format('text = "sampling"')))


def test_a_function_that_reports_bad_numbers_speaks_for_its_own_rank() -> None:
    source = """
        import lightning.pytorch as pl
        import torch

        def show_bad(values):
            if {0}:
                print(values)

        class Net(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                show_bad(self.limits)
                return self(batch)
        """
    check_nothing(UnguardedPrint, textwrap.dedent(source).format("torch.isnan(values).any()"))


SHARE = """
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    class Loader(DataLoader):
        def __init__(self, data, distributed):
            if distributed:
                super().__init__(data, {0})
            else:
                super().__init__(data)

    def store(folder, name, text):
        with open(f"{{folder}}/{{name}}.txt", "w") as f:
            f.write(text)

    def main(data):
        dist.init_process_group("nccl")
        loader = Loader(data, True)
        answers = {{}}
        for batch in loader:
            answers[batch["name"]] = batch["text"]
        for name in sorted(answers):
            store("out", name, answers[name])
    """


def test_files_that_are_named_after_the_own_items_are_each_rank_s() -> None:
    check_nothing(UnguardedFileIo, program(textwrap.dedent(SHARE).format("sampler=DistributedSampler(data)")))
    found = findings_of(UnguardedFileIo, program(textwrap.dedent(SHARE).format("batch_size=1")))
    assert found


def test_an_assertion_of_one_device_leaves_one_process() -> None:
    body = """
        def show(args, trainer):
            {0}
            rank = dist.get_rank()
            print("sampling")
            trainer.predict()
            if rank == 0:
                print("done")
        """
    assert findings_of(UnguardedPrint, program(textwrap.dedent(body).format("assert args.devices")))
    check_nothing(UnguardedPrint, program(textwrap.dedent(body).format("assert len(args.devices) == 1")))


# The way to a repair: which tests come out the same

WAITS = """
    from accelerate import Accelerator

    def every(n):
        return n % 5 == 0

    def main(loader, args, model):
        accelerator = Accelerator()
        loader = accelerator.prepare(loader)
        found = 0
        for batch in loader:
            found += batch.sum()
        part = 3 + 2
        {0}:
            if accelerator.is_main_process:
                torch.save(model.state_dict(), "m.pt")
            state = torch.load("m.pt")
        return state
    """


@pytest.mark.parametrize(
    ("test", "level"),
    [
        ("if args.load", Applicability.SAFE),
        ("if part > 3", Applicability.SAFE),
        ("if every(part)", Applicability.SAFE),
        ("if found > 3", Applicability.DISPLAY),
        ("if args.model.ready()", Applicability.DISPLAY),
        ("if unseen(part)", Applicability.DISPLAY),
    ],
)
def test_a_repair_is_safe_under_tests_that_come_out_the_same(test: str, level: Applicability) -> None:
    (found,) = findings_of(MissingBarrier, program(textwrap.dedent(WAITS).format(test)))
    assert found.applicability is level


STARTS = """
    import os

    import torch.distributed as dist

    from loop import Loop

    if "LOCAL_RANK" in os.environ:
        device_id = int(os.environ["LOCAL_RANK"])
    else:
        device_id = -1
    dist.init_process_group("nccl")
    loop = Loop({given})
    loop.evaluate(["test"])
    dist.destroy_process_group()
    """
LOOP = """
    from waits import synchronize

    class Loop:
        def __init__(self, device_id):
            self.device_id = device_id

        def evaluate(self, splits):
            synchronize()
            if self.device_id > 0:
                return
            for split in splits:
                self.test(split)
                synchronize()
    """
MEETS = """
    import torch.distributed as dist

    def synchronize():
        if dist.is_initialized():
            dist.barrier()
    """


def test_a_rank_of_another_name_is_followed_into_an_object() -> None:
    files = {"train.py": STARTS.format(given="device_id"), "waits.py": MEETS}
    (finding,) = findings_of(EarlyReturnBeforeCollective, LOOP, files, path="loop.py")
    assert "behind the early exit in line 10 only local rank 0 of each node gets there" in finding.message


def test_another_number_under_that_name_is_no_rank() -> None:
    files = {"train.py": STARTS.format(given="3"), "waits.py": MEETS}
    assert not findings_of(EarlyReturnBeforeCollective, LOOP, files, path="loop.py")
    assert not findings_of(EarlyReturnBeforeCollective, LOOP, {"waits.py": MEETS}, path="loop.py")


FLAG = """
    import torch.distributed as dist
    import wandb

    def main(several, rows):
        if several:
            dist.init_process_group("nccl")
            first = dist.get_rank() == 0
        else:
            first = True
        if first:
            wandb.init(project="p")
        for row in rows:
            if first {test} {number}:
                wandb.log({{"row": row}})
        dist.barrier()

    main(read())
    """


@pytest.mark.parametrize(("test", "number"), [("==", "1"), ("!=", "0"), ("==", "0"), ("!=", "1")])
def test_a_flag_beside_a_number_is_a_test_of_the_rank(test: str, number: str) -> None:
    assert not findings_of(TrackerOnEveryRank, FLAG.format(test=test, number=number))
    assert findings_of(TrackerOnEveryRank, FLAG.replace("first {test}", "row {test}").format(test=test, number=number))
