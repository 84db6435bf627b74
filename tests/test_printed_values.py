"""DDP203 where a printed line is no repetition, or where what is called `rank` is none."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

HEAD = """\
import time
import torch
import torch.distributed as dist; WORLD = dist.group.WORLD
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def share(items, rank, world_size):
    return items[rank * 2:(rank + 1) * 2]


def loader_of(data):
    return DataLoader(data, sampler=DistributedSampler(data))
"""
MAIN = """\
def main(data):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(2, 2))
    loader = loader_of(data)
    run(model, {given}, rank)
"""


def program(body: str, given: str = "loader") -> str:
    return f"{HEAD}\n\n{textwrap.dedent(body)}\n\n{MAIN.format(given=given)}"


SHARES = {
    "a dict filled over a share that is handed over": (
        """
        def run(model, names, rank):
            lengths = {}
            for name in names:
                lengths[name] = len(name)
            print("lengths:", sorted(lengths))
        """,
        'share(["a", "b", "c"], rank, 2)',
    ),
    "a line for each item of the share": (
        """
        def run(model, names, rank):
            for name in names:
                print("name", name)
        """,
        'share(["a", "b", "c"], rank, 2)',
    ),
    "a line for each batch of an evaluation": (
        """
        def run(model, loader, rank):
            for batch in loader:
                print("answer", model(batch).argmax())
        """,
        "loader",
    ),
    "a number that is made of the rank": (
        """
        def run(model, loader, rank):
            first = rank * 100
            print("begins at", first)
        """,
        "loader",
    ),
}


@pytest.mark.parametrize("name", SHARES)
def test_what_only_this_rank_can_show_stays(name: str) -> None:
    check_nothing(UnguardedPrint, program(*SHARES[name]))


def test_the_same_line_over_what_all_ranks_have_goes_under_the_test() -> None:
    body, _ = SHARES["a line for each item of the share"]
    (found,) = findings_of(UnguardedPrint, program(body, '["a", "b", "c"]'))
    assert found.applicability is Applicability.SAFE


NUMBERS = {
    "the loss of a step": (
        """
        def run(model, loader, rank):
            for i, batch in enumerate(loader):
                loss = model(batch).sum()
                loss.backward()
                print(f"step {i} loss {loss.item()}")
        """,
        "comes from each rank's own batches",
    ),
    "a clock": (
        """
        def run(model, loader, rank):
            began = time.time()
            model(torch.ones(2))
            print("took", time.time() - began)
        """,
        "is each process's own",
    ),
    "a test of the loss": (
        """
        def run(model, loader, rank):
            best = 9.0
            for batch in loader:
                loss = model(batch).sum()
                loss.backward()
                if loss.item() < best:
                    print("best so far")
        """,
        "goes by each rank's own batch",
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_the_own_batches_is_left_to_the_reader(name: str) -> None:
    body, reason = NUMBERS[name]
    (found,) = findings_of(UnguardedPrint, program(body))
    assert found.applicability is Applicability.UNSAFE
    assert "assumes that rank 0 speaks for all" in found.reason and reason in found.reason


def test_each_sample_of_a_lightning_step_stays() -> None:
    source = """
        import lightning.pytorch as pl

        class Net(pl.LightningModule):
            def test_step(self, batch, batch_idx):
                ids, x = batch
                for i, p in zip(ids.tolist(), self.net(x).tolist()):
                    print(f"sample {i}: {p}")
        """
    check_nothing(UnguardedPrint, source)


# A parameter that is called rank

ADAPTED = """
    def build(rank):
        model = torch.nn.Linear(8, rank)
        print("adapters ready")
        return model

    def inject(rank):
        return build(rank)

    def main():
        dist.init_process_group("nccl")
        model = DDP(inject({given}))
        dist.destroy_process_group()
    """


@pytest.mark.parametrize(("given", "is_rank"), [("rank=4", False), ("16", False), ("dist.get_rank()", True), ("0", True)])
def test_a_number_that_is_handed_over_is_no_rank(given: str, is_rank: bool) -> None:
    source = HEAD + textwrap.dedent(ADAPTED.format(given=given))
    found = findings_of(UnguardedPrint, source)
    assert bool(found) is is_rank


def test_a_default_that_is_a_size_is_no_rank() -> None:
    body = """
        def build(x, rank={0}):
            print("ready")
            if rank == 0:
                print("full matrices")
        """
    check_nothing(UnguardedPrint, HEAD + textwrap.dedent(body.format(8)))
    assert findings_of(UnguardedPrint, HEAD + textwrap.dedent(body.format(0)))


# One role alone

ROLES = """
    def serve(rank):
        dist.init_process_group("gloo", rank=rank, world_size=2)
        print("server ends")

    def work(rank):
        dist.init_process_group("gloo", rank=rank, world_size=2)
        train(rank)

    def train(rank):
        print("training is complete")

    if __name__ == "__main__":
        if {test}:
            process = mp.Process(target=serve, args=(0,))
        else:
            process = mp.Process(target=work, args=(args.rank,))
        process.start()
    """


def test_a_process_of_one_role_prints_for_that_role() -> None:
    check_nothing(UnguardedPrint, HEAD + textwrap.dedent(ROLES.format(test="args.rank == 0")))
    assert len(findings_of(UnguardedPrint, HEAD + textwrap.dedent(ROLES.format(test="args.serves")))) == 2


STEP = """\
import lightning.pytorch as pl

class Tagger(pl.LightningModule):
    def HOOK(self, batch, batch_idx):
        TEST
            print(WHAT)
            return None
        return self(batch)
"""


def step(test: str, what: str = "'the batch is short'", hook: str = "predict_step") -> str:
    return STEP.replace("TEST", test).replace("WHAT", what).replace("HOOK", hook)


@pytest.mark.parametrize(
    ("test", "what"),
    [
        ("if len(batch) < self.size:", "'the batch is short'"),
        ("if len(batch['rows']) != 8:", "f'{len(batch[\"rows\"])} rows are left out'"),
        ("if self.told:", "len(batch['rows'])"),
        ("if self.told:", "batch['names']"),
    ],
)
def test_predict_hands_out_unpadded_shares(test: str, what: str) -> None:
    """Lightning gives `predict` a sampler that pads nothing: the last batch of one rank is shorter than that of another."""
    check_nothing(UnguardedPrint, step(test, what))


@pytest.mark.parametrize("hook", ["validation_step", "test_step"])
def test_an_evaluation_hands_out_as_many_items_on_every_rank(hook: str) -> None:
    (found,) = findings_of(UnguardedPrint, step("if len(batch) < self.size:", hook=hook))
    assert found.applicability is Applicability.SAFE


def test_what_predict_prints_of_all_ranks_is_a_repetition() -> None:
    (found,) = findings_of(UnguardedPrint, step("if self.told:", "'predicting'"))
    assert found.applicability is Applicability.SAFE


SCORES = """\
from torch.utils.data import DataLoader, DistributedSampler
import torch
import torch.distributed as dist


class Scores:
    def __init__(self, rows):
        self.rows = rows

    def score(self, model):
        loader = DataLoader(self.rows, sampler={sampler}(self.rows))
        return self.judge(self.collect(model, loader))

    def collect(self, model, loader):
        {step}
        return model.rows(loader)

    def judge(self, found):
        return measure(found)
"""
SHOWS = """\
import torch.distributed as dist
from scores import Scores


def main(rows, model):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    scores = Scores(rows)
    found = scores.score(model)
    print(found)
    print("rows", rows)
    if rank == 0:
        model.save()
"""


@pytest.mark.parametrize(
    ("sampler", "step", "lines"),
    [("DistributedSampler", "pass", 0),  # each rank has its own answers
     ("RandomSampler", "pass", 1),
     ("DistributedSampler", "dist.all_reduce(model.total)", 1),
     ("DistributedSampler", "model.loss(loader).backward()", 1)],
)  # fmt: skip
def test_what_an_object_answers_for_a_share(sampler: str, step: str, lines: int) -> None:
    files = {"scores.py": SCORES.format(sampler=sampler, step=step)}
    found = findings_of(UnguardedPrint, SHOWS, files)
    assert sum("print(found)" in str(f.fix) or f.span.line == 10 for f in found) == lines
