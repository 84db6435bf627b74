from __future__ import annotations

import pytest

from codemods.data_loading.rank_seeded_split import RankSeededSplit
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import numpy as np
import torch
import torch.distributed as dist
from sklearn.model_selection import train_test_split
from torch.utils.data import DistributedSampler, random_split

SEED = 3


"""


def program(*lines: str, head: str = HEAD) -> str:
    return f"{head}def parts(data, seed, args):\n    rank, world = dist.get_rank(), dist.get_world_size()\n" + "".join(
        f"    {line}\n" for line in lines
    )


def test_example_of_the_page() -> None:
    sections = RankSeededSplit.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(RankSeededSplit, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DistributedSampler(data, seed=seed + rank)", "DistributedSampler(data, seed=seed)"),
        ("DistributedSampler(data, seed=rank)", "DistributedSampler(data)"),
        ("train_test_split(data, random_state=rank + SEED)", "train_test_split(data, random_state=SEED)"),
        (
            "random_split(data, [9, 1], generator=torch.Generator().manual_seed(seed + rank))",
            "random_split(data, [9, 1], generator=torch.Generator().manual_seed(seed))",
        ),
    ],
)
def test_seeds_at_the_split(before: str, after: str) -> None:
    check_transformed(RankSeededSplit, program(f"return {before}"), program(f"return {after}"), unsafe=True)


def test_numpy_seeds_the_split_of_sklearn() -> None:
    seed = "np.random.seed(SEED + rank)"
    after = program(seed, "return train_test_split(data, random_state=SEED)")
    check_transformed(RankSeededSplit, program(seed, "return train_test_split(data)"), after, unsafe=True)


def test_a_seed_above_the_call_of_the_function() -> None:
    source = program("return random_split(data, [9, 1])")
    source += "\n\ndef main(data, args):\n    torch.manual_seed(args.seed + dist.get_rank())\n    return parts(data, 1, args)\n"
    check_told(RankSeededSplit, source, reason="the same on every rank")


def test_a_seed_that_mixes_the_rank_in_is_told() -> None:
    check_told(RankSeededSplit, program("return DistributedSampler(data, seed=seed * rank)"), reason="the same seed")
    lines = ("torch.manual_seed(seed * 7 ** rank)", "return random_split(data, [9, 1])")
    check_told(RankSeededSplit, program(*lines), reason="generator=")


def test_a_permutation_of_which_each_rank_takes_its_part() -> None:
    lines = (
        "stream = torch.Generator().manual_seed(seed + rank)",
        "order = torch.randperm(len(data), generator=stream)",
        "return order[rank::world]",
    )
    check_told(RankSeededSplit, program(*lines), reason="take the rank out of the seed")
    check_nothing(RankSeededSplit, program(*lines[:2], "return order[:9]"))
    check_nothing(RankSeededSplit, program(lines[0].replace(" + rank", ""), *lines[1:]))


def test_an_order_by_an_own_seed_that_a_sampler_deals_out() -> None:
    lines = ("np.random.seed(seed + rank)", "order = np.random.permutation(len(data))", "return DistributedSampler(data[order])")
    found = check_told(RankSeededSplit, program(*lines), reason="default_rng(0).permutation(…)`, the same on every rank")
    assert "their shares overlap" in found.message
    check_nothing(RankSeededSplit, program(lines[0].replace(" + rank", ""), *lines[1:]))
    check_nothing(RankSeededSplit, program(*lines[:2], "return DistributedSampler(data)"))
    check_nothing(RankSeededSplit, program("torch.manual_seed(seed + rank)", *lines[1:]))  # of another library


@pytest.mark.parametrize(
    "lines",
    [
        ("torch.manual_seed(seed)", "return random_split(data, [9, 1])"),
        ("torch.manual_seed(seed + rank)", "torch.manual_seed(seed)", "return random_split(data, [9, 1])"),
        ("first = random_split(data, [9, 1])", "torch.manual_seed(seed + rank)", "return first"),
        ("torch.manual_seed(seed + rank)", "return random_split(data, [9, 1], generator=torch.Generator().manual_seed(1))"),
        ("torch.manual_seed(seed + rank)", "return train_test_split(data, random_state=1)"),
        ("np.random.seed(seed + rank)", "return random_split(data, [9, 1])"),
        ("torch.manual_seed(seed + rank)", "if rank == 0:", "    return random_split(data, [9, 1])"),
        (
            "torch.manual_seed(seed + rank)",
            "order = random_split(data, [9, 1])",
            "dist.broadcast_object_list(order)",
            "return order",
        ),
        ("torch.manual_seed(seed + rank)", "return random_split(data, [9, 1], **args)"),
        ("return DistributedSampler(data, seed=seed)",),
        ("return DistributedSampler(data, rank=rank)",),
        ("return args.DistributedSampler(data, seed=rank)",),
        ("return data.split(seed + rank)",),
    ],
)
def test_divisions_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(RankSeededSplit, program(*lines))


def test_a_repositorys_own_tests() -> None:
    check_nothing(RankSeededSplit, program("return DistributedSampler(data, seed=rank)"), path="tests/test_a.py")


HELPER = (
    HEAD
    + """def fix(number):
    torch.manual_seed(number)
    np.random.seed(number)


"""
)


def test_a_helper_that_is_called_with_other_seeds() -> None:
    split = "train, rest = train_test_split(data)"
    check_nothing(RankSeededSplit, program("fix(seed)", split, "fix(seed + rank)", "return train", head=HELPER))
    check_nothing(RankSeededSplit, program("fix(seed + rank)", "fix(seed)", split, "return train", head=HELPER))
    source = program("fix(seed)", "fix(seed + rank)", split, "return train", head=HELPER)
    check_told(RankSeededSplit, source, reason="the same on every rank")


def test_a_helper_that_is_not_seen() -> None:
    head = "from timm.utils import random_seed\n" + HEAD
    source = program("random_seed(seed, rank)", "return train_test_split(data)", head=head)
    check_told(RankSeededSplit, source, reason="the same on every rank")
    check_nothing(RankSeededSplit, source.replace("random_seed(seed, rank)", "random_seed(seed)"))
    check_nothing(RankSeededSplit, source.replace("random_seed(seed, rank)", "args.seed_rows(rank)"))


def test_a_split_of_datasets() -> None:
    head = "from datasets import load_dataset\n" + HEAD
    fix = ("own = seed + rank", "np.random.seed(own)")
    before = program(*fix, "return data.train_test_split(test_size=0.1)", head=head)
    check_transformed(RankSeededSplit, before, before.replace("0.1)", "0.1, seed=seed)"), unsafe=True)
    check_nothing(RankSeededSplit, before.replace("own = seed + rank", "own = seed"))
    check_nothing(RankSeededSplit, before.replace("np.random", "torch.random").replace(".seed(own)", ".manual_seed(own)"))


SHARDS = """\
from datasets import load_dataset
from transformers import HfArgumentParser, TrainingArguments

args = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()[0]


def work(base: str, number: int):
    rows = load_dataset("json", split="train")
    own = {seed}
    rows = rows.shuffle(seed=own)
    rows = rows.select(range(9))
    {part}
    return rows
"""
PART = "rows = rows.shard(num_shards=args.world_size, index=args.process_index)"


@pytest.mark.parametrize(
    "seed",
    ["hash(args.run_name)", "args.seed + hash(str(base)) % 10 ** 6", "hash(f'{base}')", "abs(hash(('rows', 1)))"],
)
def test_a_seed_of_the_hash_of_a_text(seed: str) -> None:
    check_told(RankSeededSplit, SHARDS.format(seed=seed, part=PART), reason="zlib.crc32")
    check_told(RankSeededSplit, program(f"return DistributedSampler(data, seed={seed})"), reason="zlib.crc32")
    drawn = program(f"stream = torch.Generator().manual_seed({seed})", "return random_split(data, [9, 1], generator=stream)")
    check_told(RankSeededSplit, drawn, reason="zlib.crc32")


@pytest.mark.parametrize(
    ("seed", "part"),
    [
        ("hash(number)", PART),  # a number has the same hash in each process
        ("hash((1, number))", PART),
        ("args.seed + len(args.run_name)", PART),
        ("args.hash(args.run_name)", PART),
        ("hash(args.run_name)", "rows = rows.select(range(3))"),  # nobody takes a share
        ("hash(args.run_name)", "rows = rows.shard(num_shards=9, index=3)"),
        ("hash(args.run_name)", f"rows = rows.sort('id')\n    {PART}"),  # the order is one again
    ],
)
def test_seeds_that_are_the_same_in_each_process(seed: str, part: str) -> None:
    check_nothing(RankSeededSplit, SHARDS.format(seed=seed, part=part))


def test_a_hash_of_the_projects_own_and_a_fixed_salt() -> None:
    source = SHARDS.format(seed="hash(args.run_name)", part=PART)
    check_nothing(RankSeededSplit, "from stable import hash\n" + source)
    check_nothing(RankSeededSplit, source, files={"run.sh": "PYTHONHASHSEED=0 torchrun module.py\n"})


def test_rows_that_each_rank_shuffles_by_a_seed_with_its_rank() -> None:
    before = SHARDS.format(seed="args.seed + args.process_index", part=PART)
    check_transformed(RankSeededSplit, before, before.replace("seed=own", "seed=args.seed"), unsafe=True)
    check_nothing(RankSeededSplit, SHARDS.format(seed="args.seed", part=PART))
    chain = "rows = rows.shard(num_shards=args.world_size, index=args.process_index).shuffle(seed=args.process_index)"
    check_nothing(RankSeededSplit, SHARDS.format(seed="args.seed", part=chain))  # its own share
    first = "rows = rows.shuffle(seed=args.process_index).shard(num_shards=args.world_size, index=args.process_index)"
    assert findings_of(RankSeededSplit, SHARDS.format(seed="args.seed", part=first))


# A seed that the sampler's function is handed

HANDED = HEAD + """\
class Loading:
    def __init__(self, data, rank, trial):
        self.rank, self.data = rank, data
        self.{field} = {kept}

    def sampler(self, seed):
        return DistributedSampler(self.data, seed={seed})

    def loader(self):
        return self.sampler({given})


def main(data, trial):
    Loading(data, dist.get_rank(), trial).loader()
"""


@pytest.mark.parametrize(
    ("seed", "given", "kept"),
    [
        ("seed", "7 * SEED + dist.get_rank()", "0"),
        ("self.order", "0", "SEED + dist.get_rank()"),
    ],
)
def test_a_seed_with_the_rank_that_the_sampler_is_handed(seed: str, given: str, kept: str) -> None:
    source = HANDED.format(seed=seed, given=given, kept=kept, field="order")
    found = check_told(RankSeededSplit, source, reason="the same seed")
    assert "dist.get_rank()" in found.message and found.span.line == 16 and found.evidence[0].line in (13, 19)


@pytest.mark.parametrize(("seed", "given", "kept"), [("seed", "7 * SEED", "0"), ("self.order", "dist.get_rank()", "SEED")])
def test_a_seed_without_the_rank_that_the_sampler_is_handed(seed: str, given: str, kept: str) -> None:
    check_nothing(RankSeededSplit, HANDED.format(seed=seed, given=given, kept=kept, field="order"))


# Rows whose loader an Accelerator prepares

PREPARED = """\
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader


def run(args, net):
    accelerator = Accelerator()
    own = {seed}
    rows = load_dataset("json", split="train")
    {shuffle}
    rows = rows.select(range(args.most))
    {loader}
    {prepare}
    for batch in loader:
        accelerator.backward(net(batch))
"""
MIXED = "rows = rows.shuffle(seed=own)"
LOADER = "loader = DataLoader(rows, batch_size=4)"
PREPARE = "net, loader = accelerator.prepare(net, loader)"
OWN = "args.seed + accelerator.process_index"


def prepared(seed: str = OWN, shuffle: str = MIXED, loader: str = LOADER, prepare: str = PREPARE) -> str:
    return PREPARED.format(seed=seed, shuffle=shuffle, loader=loader, prepare=prepare)


@pytest.mark.parametrize("seed", [OWN, f"{OWN} * 977", "977 * accelerator.process_index + args.seed"])
def test_rows_that_accelerate_deals_out(seed: str) -> None:
    before = prepared(seed)
    check_transformed(RankSeededSplit, before, before.replace("seed=own", "seed=args.seed"), unsafe=True)


@pytest.mark.parametrize(
    "change",
    [
        {"prepare": "loader = accelerator.prepare_data_loader(loader)"},
        {"loader": "loader = DataLoader(rows.with_format('torch'), shuffle=True)"},
        {"shuffle": MIXED + "\n    rows = rows.map(args.tokens)"},
        {"prepare": "loader = accelerator.prepare(DataLoader(rows, 4))"},
    ],
)
def test_other_ways_to_prepare(change: dict[str, str]) -> None:
    before = prepared(**change)
    check_transformed(RankSeededSplit, before, before.replace("seed=own", "seed=args.seed"), unsafe=True)


def test_a_loader_that_another_file_prepares() -> None:
    helper = (
        "from datasets import load_dataset\nfrom torch.utils.data import DataLoader\n\n\n"
        "def loader_of(args, rank):\n    rows = load_dataset('json', split='train').shuffle(seed=args.seed + rank)\n"
        "    return DataLoader(rows, batch_size=4)\n"
    )
    main = (
        "from accelerate import Accelerator\n\nfrom module import loader_of\n\n\ndef run(args, net):\n"
        "    accelerator = Accelerator()\n    loader = loader_of(args, accelerator.process_index)\n"
        "    loader = accelerator.prepare(loader)\n    return [net(x) for x in loader]\n"
    )
    assert findings_of(RankSeededSplit, helper, files={"main.py": main})
    alone = main.replace("    loader = accelerator.prepare(loader)\n", "")
    check_nothing(RankSeededSplit, helper, files={"main.py": alone})


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "args.seed"},
        {"prepare": "net = accelerator.prepare(net)"},  # each rank goes through all rows
        {"prepare": "net, loader = args.shares.prepare(net, loader)"},
        {"shuffle": MIXED + "\n    rows = rows.sort('id')"},
        {"loader": "loader = DataLoader(args.data, collate_fn=args.collator(len(rows)))"},
        {"loader": "loader = DataLoader(rows, sampler=args.sampler)"},
        {"shuffle": "args.rows = rows.shuffle(seed=own)"},
    ],
)
def test_rows_that_accelerate_does_not_deal_out(change: dict[str, str]) -> None:
    check_nothing(RankSeededSplit, prepared(**change))


def test_rank_0_reads_for_all_ranks() -> None:
    dispatched = prepared().replace("Accelerator()", "Accelerator(dispatch_batches=True)")
    check_nothing(RankSeededSplit, dispatched)
    check_nothing(RankSeededSplit, prepared(shuffle=f"if accelerator.is_main_process:\n        {MIXED}"))
