from __future__ import annotations

import pytest

from codemods.data_loading.missing_distributed_sampler import MissingDistributedSampler
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, Subset, TensorDataset


class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return self.rows[index]


class Stream(IterableDataset):
    def __iter__(self):
        yield from open("rows.txt")


"""
START = ("dist.init_process_group()", "rank = dist.get_rank()", "world = dist.get_world_size()")
LOOP = ("model = DDP(args.net)", "for x in loader:", "    model(x).mean().backward()")


def program(*made: str, start: tuple[str, ...] = START, loop: tuple[str, ...] = LOOP, head: str = HEAD) -> str:
    return f"{head}def main(args):\n" + "".join(f"    {line}\n" for line in (*start, *made, *loop))


def test_example_of_the_page() -> None:
    sections = MissingDistributedSampler.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(MissingDistributedSampler, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DataLoader(data, shuffle=True)", "DataLoader(data, sampler=DistributedSampler(data))"),
        ("DataLoader(data, batch_size=8)", "DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))"),
        ("DataLoader(data, 8, shuffle=args.s)", "DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=args.s))"),
    ],
)
def test_the_order_is_carried_over(before: str, after: str) -> None:
    old, new = (program("data = Rows()", f"loader = {text}") for text in (before, after))
    check_transformed(MissingDistributedSampler, old, new, unsafe=True)


def test_a_group_that_a_helper_starts() -> None:
    head = HEAD + "def setup():\n    dist.init_process_group()\n\n\n"
    old = program("data = Rows()", "loader = DataLoader(data)", start=("setup()",), head=head)
    new = old.replace("DataLoader(data)", "DataLoader(data, sampler=DistributedSampler(data, shuffle=False))")
    check_transformed(MissingDistributedSampler, old, new, unsafe=True)


def test_no_group_is_seen_to_be_there() -> None:
    start = ("if args.several:", "    dist.init_process_group()")
    source = program("data = Rows()", "loader = DataLoader(data)", start=start)
    check_told(MissingDistributedSampler, source, reason="where the process group is there by then")


def test_a_data_set_without_a_name() -> None:
    check_told(MissingDistributedSampler, program("loader = DataLoader(Rows(), shuffle=True)"), reason="give the data set a name")


def test_a_stream() -> None:
    found = check_told(MissingDistributedSampler, program("loader = DataLoader(Stream())"), reason="in `__iter__`")
    assert "all of the stream Stream" in found.message


def test_a_sampler_that_draws_at_random() -> None:
    source = program("data = Rows()", "loader = DataLoader(data, sampler=RandomSampler(data))")
    check_told(MissingDistributedSampler, source, reason="shares nothing out")


def test_batches_that_are_drawn_one_by_one() -> None:
    loop = ("model = DDP(args.net)", "batches = iter(loader)", "for _ in range(9):", "    model(next(batches)).mean().backward()")
    assert findings_of(MissingDistributedSampler, program("data = Rows()", "loader = DataLoader(data)", loop=loop))


def test_a_loader_that_another_file_makes() -> None:
    data = HEAD + "def make():\n    return DataLoader(Rows(), shuffle=True)\n"
    train = program("loader = make()", head=HEAD + "from data import make\n\n")
    assert findings_of(MissingDistributedSampler, data, {"train.py": train}, path="data.py")


@pytest.mark.parametrize(
    "made",
    [
        ("data = Rows()", "loader = DataLoader(data, sampler=DistributedSampler(data))"),
        ("data = Rows()", "loader = DataLoader(data, batch_sampler=args.batches)"),
        ("data = Rows()", "loader = DataLoader(data, sampler=args.sampler)"),
        ("data = Rows()", "loader = DataLoader(data, **args.options)"),
        ("data = Rows()", "loader = args.prepare(DataLoader(data))"),
        ("data = Subset(Rows(), range(rank, 90, world))", "loader = DataLoader(data)"),
        ("data = Rows(rank)", "loader = DataLoader(data)"),
        ("data = Rows()", "data.shard(rank, world)", "loader = DataLoader(data)"),
        ("data = Rows()", "data.rows = data.rows[rank::world]", "loader = DataLoader(data)"),
        ("data = TensorDataset(args.x[rank::world])", "loader = DataLoader(data)"),
        ("data = args.data", "loader = DataLoader(data)"),
        ("data = TensorDataset(torch.randn(9, 2))", "loader = DataLoader(data)"),
        ("files = args.files[rank]", "data = Rows(files)", "loader = DataLoader(data)"),
        (
            "data = Rows()", "loader = DataLoader(data)", "if args.several:",
            "    loader = DataLoader(data, sampler=DistributedSampler(data))",
        ),
    ],
)  # fmt: skip
def test_loaders_that_may_share_out(made: tuple[str, ...]) -> None:
    check_nothing(MissingDistributedSampler, program(*made))


def test_a_class_that_knows_its_rank() -> None:
    head = HEAD.replace('open("rows.txt")', "islice(open(self.path), dist.get_rank(), None)")
    check_nothing(MissingDistributedSampler, program("loader = DataLoader(Stream())", head=head))
    drawn = HEAD.replace('yield from open("rows.txt")', "yield torch.randn(2)")
    check_nothing(MissingDistributedSampler, program("torch.manual_seed(1)", "loader = DataLoader(Stream())", head=drawn))


@pytest.mark.parametrize(
    "loop",
    [
        ("model = args.net", *LOOP[1:]),
        (LOOP[0], "for x in loader:", "    print(model(x))"),
        (LOOP[0], "with torch.no_grad():", "    for x in loader:", "        args.update(model(x).backward())"),
        (LOOP[0], "if rank == 0:", "    for x in loader:", "        model(x).mean().backward()"),
        (LOOP[0], "for i, x in enumerate(loader):", "    if i % world == rank:", "        model(x).mean().backward()"),
        (LOOP[0], "for x in loader:", "    model(x[rank::world]).mean().backward()"),
        (LOOP[0], "for x in islice(loader, rank, None, world):", "    model(x).mean().backward()"),
        (LOOP[0], "for x in loader:", "    accelerator.backward(model(x).mean())"),
    ],
)
def test_loops_that_are_fine(loop: tuple[str, ...]) -> None:
    check_nothing(MissingDistributedSampler, program("data = Rows()", "loader = DataLoader(data)", loop=loop))


def test_frameworks_siblings_and_tests() -> None:
    made = ("data = Rows()", "loader = DataLoader(data)")
    check_nothing(MissingDistributedSampler, program(*made, head="from accelerate import Accelerator\n" + HEAD))
    check_nothing(MissingDistributedSampler, program(*made), path="tests/test_train.py")
    alone = program(*made, loop=("model = args.net", *LOOP[1:]))
    check_nothing(MissingDistributedSampler, alone, files={"several.py": program(*made)})
