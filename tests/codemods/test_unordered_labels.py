from __future__ import annotations

import re

import pytest

from codemods.data_loading.unordered_labels import UnorderedLabels
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import glob
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


"""


def program(*lines: str, head: str = HEAD) -> str:
    body = ("rank, world = dist.get_rank(), dist.get_world_size()", *lines)
    return f"{head}def main(folder, names, rows, args):\n" + "".join(f"    {line}\n" for line in body)


def test_example_of_the_page() -> None:
    sections = UnorderedLabels.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnorderedLabels, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("files = glob.glob(folder)", "files = sorted(glob.glob(folder))"),
        ("files = os.listdir(folder)", "files = sorted(os.listdir(folder))"),
        ("files = list(folder.iterdir())", "files = sorted(folder.iterdir())"),
        ("files = [f for f in os.listdir(folder) if f]", "files = [f for f in sorted(os.listdir(folder)) if f]"),
    ],
)
def test_files_of_which_each_rank_takes_its_part(before: str, after: str) -> None:
    take = "return files[rank::world]"
    check_transformed(UnorderedLabels, program(before, take), program(after, take), unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [("set(names)", "sorted(set(names))"), ("{r.name for r in rows}", "sorted({r.name for r in rows})")],
)
def test_numbers_of_the_elements_of_a_set(before: str, after: str) -> None:
    old, new = (program(f"return {{n: i for i, n in enumerate({text})}}") for text in (before, after))
    check_transformed(UnorderedLabels, old, new, unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("for i, n in enumerate(SET):", "    args.ids[n] = i"),
        ("ids = {}", "for n in SET:", "    if n not in ids:", "        ids[n] = len(ids)"),
        ("return dict(zip(SET, range(len(names))))",),
        ("args.tokenizer.add_tokens(SET)",),
        ('args.tokenizer.add_special_tokens({"additional_special_tokens": SET})',),
    ],
)
def test_other_ways_to_number_a_set(lines: tuple[str, ...]) -> None:
    sets = ("list(set(names))", "sorted(set(names))")
    before, after = (program(*(line.replace("SET", text) for line in lines)) for text in sets)
    check_transformed(UnorderedLabels, before, after, unsafe=True)
    check_nothing(UnorderedLabels, before.replace("set(names)", "names"))


def test_the_sets_of_a_dictionary() -> None:
    head = "from collections import defaultdict\n" + HEAD
    made = ("found = defaultdict(set)", "for r in rows:", "    found[r.kind].add(r.name)", "ids = {}")
    loop = ("for kind, values in found.items():", "    ids[kind] = {n: i for i, n in enumerate(list(values))}")
    before = program(*made, *loop, head=head)
    check_transformed(UnorderedLabels, before, before.replace("list(values)", "sorted(values)"), unsafe=True)
    inside = "return {k: {n: i for i, n in enumerate(v)} for k, v in found.items()}"
    after = program(*made, inside.replace("enumerate(v)", "enumerate(sorted(v))"), head=head)
    check_transformed(UnorderedLabels, program(*made, inside, head=head), after, unsafe=True)
    check_nothing(UnorderedLabels, before.replace("defaultdict(set)", "defaultdict(list)"))
    check_nothing(UnorderedLabels, before.replace("found.items()", "args.found.items()"))


@pytest.mark.parametrize(
    "lines",
    [
        ("for i, n in enumerate(set(names)):", "    print(i, n)"),
        ("for n in set(names):", "    args.sizes[n] = len(n)"),
        ("args.pool.add_tokens(sorted(set(names)))",),
        ("return dict(zip(set(names), rows))",),
    ],
)
def test_sets_whose_elements_get_no_numbers(lines: tuple[str, ...]) -> None:
    check_nothing(UnorderedLabels, program(*lines))


ITEMS = HEAD + """\
class Rows(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = {files}

    def __getitem__(self, index):
        return torch.load(self.files[index])


def main(net):
    model, rows = DDP(net), Rows("data")
    for x in DataLoader(rows, sampler={sampler}):
        model(x).mean().backward()
"""


def test_files_behind_the_index_of_a_sampler() -> None:
    sampler = "DistributedSampler(rows)"
    before = ITEMS.format(files="glob.glob(folder)", sampler=sampler)
    check_transformed(UnorderedLabels, before, ITEMS.format(files="sorted(glob.glob(folder))", sampler=sampler), unsafe=True)
    check_nothing(UnorderedLabels, ITEMS.format(files="glob.glob(folder)", sampler="args.sampler"))
    check_nothing(UnorderedLabels, ITEMS.format(files="glob.glob(folder)\n        self.files.sort()", sampler=sampler))


def test_files_on_one_machine() -> None:
    items = ITEMS.format(files="glob.glob(folder)", sampler="DistributedSampler(rows)")
    start = 'dist.init_process_group("nccl", init_method="tcp://{}:29500", world_size={}, rank=0)\n'
    here = start.format("127.0.0.1", "torch.cuda.device_count()")
    check_nothing(UnorderedLabels, items + here)
    check_nothing(UnorderedLabels, items + "n = torch.cuda.device_count()\n" + start.format("localhost", "n"))
    for address, size in (("10.0.0.1", "torch.cuda.device_count()"), ("127.0.0.1", "args.world_size")):
        assert findings_of(UnorderedLabels, items + start.format(address, size))
    assert findings_of(UnorderedLabels, items + here + 'dist.init_process_group("nccl")\n')


SPAWNED = (
    ITEMS.format(files="glob.glob(folder)", sampler="DistributedSampler(rows)")
    + "\n\ndef run(rank, n, args):\n    dist.init_process_group('nccl', METHODworld_size=n, rank=rank)\n    main(args)\n\n\n"
    "def start(args):\n    n = COUNT\n    os.environ['MASTER_ADDR'] = ADDRESS\n    mp.spawn(run, nprocs=n, args=HANDED)\n"
)


DEVICES = "torch.cuda.device_count()"


def spawned(method: str = "", count: str = DEVICES, address: str = "'localhost'", args: str = "(n, args)") -> str:
    made = SPAWNED.replace("METHOD", method).replace("COUNT", count).replace("ADDRESS", address).replace("HANDED", args)
    return "import os\nimport torch.multiprocessing as mp\n" + made


def test_ranks_that_one_machine_spawns_by_its_own_address() -> None:
    check_nothing(UnorderedLabels, spawned())
    check_nothing(UnorderedLabels, spawned(method="init_method='env://', "))
    check_nothing(UnorderedLabels, spawned(args="(torch.cuda.device_count(), args)"))
    for other in (
        spawned(count="args.world_size"), spawned(address="args.master"), spawned(address="'10.0.0.1'"),
        spawned(method="init_method=args.url, "), spawned(args="args"), spawned(args="(args, n)"), spawned(args="(*n, args)"),
    ):  # fmt: skip
        assert findings_of(UnorderedLabels, other)


@pytest.mark.parametrize(
    "lines",
    [
        ("files = sorted(glob.glob(folder))", "return files[rank::world]"),
        ("files = glob.glob(folder)", "files.sort()", "return files[rank::world]"),
        ("files = glob.glob(folder)", "return files[:9]"),
        ("files = glob.glob(folder)", "return len(files)"),
        ("files = args.files", "return files[rank::world]"),
        ("files = glob.glob(folder) if args.some else args.files", "return files[rank::world]"),
        ("if rank == 0:", "    files = glob.glob(folder)", "    return files[rank::world]"),
        ("return {n: i for i, n in enumerate(sorted(set(names)))}",),
        ("return {n: i for i, n in enumerate(names)}",),
        ("return {n: i for i, n in enumerate({int(r) for r in rows})}",),
        ("return {n: i for i, n in enumerate({1, 2, 3})}",),
        ("return set(names)",),
    ],
)
def test_orders_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(UnorderedLabels, program(*lines))


def test_one_process_and_tests() -> None:
    source = "def number(names):\n    return {n: i for i, n in enumerate(set(names))}\n"
    check_nothing(UnorderedLabels, source)
    check_nothing(UnorderedLabels, program("return {n: i for i, n in enumerate(set(names))}"), path="tests/test_a.py")


# A data set that shuffles what the sampler's indices point into

SHUFFLED = HEAD + """import random
import numpy as np


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.order = np.arange(len(rows))
        SHUFFLE

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[self.order[index]]


def main(rows, optimizer):
    dist.init_process_group("nccl")
    data = Rows(rows)
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DDP(torch.nn.Linear(2, 1))
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("np.random.shuffle(self.order)", "np.random.default_rng(0).shuffle(self.order)"),
        ("random.shuffle(self.order)", "random.Random(0).shuffle(self.order)"),
        ("self.order = np.random.permutation(len(rows))", "self.order = np.random.default_rng(0).permutation(len(rows))"),
        (
            "self.order = torch.randperm(len(rows))",
            "self.order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))",
        ),
    ],
)
def test_a_shuffle_of_each_rank(before: str, after: str) -> None:
    check_transformed(UnorderedLabels, *(SHUFFLED.replace("SHUFFLE", c) for c in (before, after)), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SHUFFLE", "random.shuffle(rows)"),
        ("SHUFFLE", "self.mix()\n\n    def mix(self):\n        random.shuffle(self.rows)"),
        ("    data = Rows(rows)", "    random.shuffle(rows)\n    data = Rows(rows)"),
        ("    data = Rows(rows)", "    random.shuffle(rows)\n    random.seed(dist.get_rank())\n    data = Rows(rows)"),
        (
            "    data = Rows(rows)",
            "    torch.manual_seed(0)\n    random.seed(dist.get_rank())\n    random.shuffle(rows)\n    data = Rows(rows)",
        ),
    ],
)
def test_a_shuffle_of_what_is_kept(old: str, new: str) -> None:
    after = re.sub(r"random.shuffle\((.*)\)", r"random.Random(0).shuffle(\1)", new)
    source = SHUFFLED.replace(old, new).replace("SHUFFLE", "pass")
    check_transformed(UnorderedLabels, source, SHUFFLED.replace(old, after).replace("SHUFFLE", "pass"), unsafe=True)


@pytest.mark.parametrize(
    ("seed", "told"),
    [("np.random.seed(0)\ntorch.manual_seed(0)", True), ("random.seed(0)", False), ("set_seed(0)", False)],
)
def test_a_seed_of_another_library_elsewhere(seed: str, told: bool) -> None:
    """A seed of numpy and torch in another program leaves Python's own numbers to each rank."""
    head = "import random\nimport numpy as np\nimport torch\nfrom transformers import set_seed\n"
    files = {"other.py": f"{head}{seed}\n"}
    source = SHUFFLED.replace("SHUFFLE", "random.shuffle(self.order)")
    if told:
        after = source.replace("random.shuffle(", "random.Random(0).shuffle(")
        check_transformed(UnorderedLabels, source, after, files=files, unsafe=True)
    else:
        check_nothing(UnorderedLabels, source, files=files)


EACH_OWN = "    random.seed(7 + dist.get_rank())\n    data = Rows(rows)"


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("import module\nimport random\n\nif __name__ == '__main__':\n    random.seed(0)\n    module.main([], None)\n", False),
        ("import random\n\nrandom.seed(0)\n\n\ndef score(x):\n    return x\n", False),
        ("import random\n\n\ndef fix():\n    random.seed(0)\n\n\nif __name__ == '__main__':\n    fix()\n", True),
        ("import random\n\n\ndef fix():\n    random.seed(0)\n\n\ndef score(x):\n    fix()\n", False),
        ("import random\n\n\ndef fix(seed):\n    random.seed(seed)\n\n\ndef score(x):\n    return x\n", True),
    ],
)
def test_a_seed_that_only_another_program_sets(other: str, told: bool) -> None:
    source = SHUFFLED.replace("SHUFFLE", "random.shuffle(self.order)").replace("    data = Rows(rows)", EACH_OWN)
    source = source if "import module" in other else f"from other import *\n{source}"
    if told:
        after = source.replace("random.shuffle(", "random.Random(0).shuffle(")
        check_transformed(UnorderedLabels, source, after, files={"other.py": other}, unsafe=True)
    else:
        check_nothing(UnorderedLabels, source, files={"other.py": other})


@pytest.mark.parametrize(
    "body",
    ["return self.order[index % len(self.order)]", "at = index\n        return self.order[at]",
     "index = int(index)\n        at = index % len(self)\n        return self.order[at]"],
)  # fmt: skip
def test_an_index_by_another_name(body: str) -> None:
    source = SHUFFLED.replace("return self.rows[self.order[index]]", body)
    before, after = (source.replace("SHUFFLE", f"{c}.shuffle(self.order)") for c in ("random", "random.Random(0)"))
    check_transformed(UnorderedLabels, before, after, unsafe=True)


@pytest.mark.parametrize(
    "body",
    ["at = random.randrange(9)\n        return self.order[at]", "return self.order[index // 4]",
     "at = self.at(index)\n        return self.order[at]"],
)  # fmt: skip
def test_an_element_that_the_index_does_not_name(body: str) -> None:
    source = SHUFFLED.replace("return self.rows[self.order[index]]", body)
    check_nothing(UnorderedLabels, source.replace("SHUFFLE", "random.shuffle(self.order)"))


def test_a_seed_by_a_helper_that_is_imported_and_not_seen() -> None:
    files = {"other.py": "from toolkit import fix_seeds\nfix_seeds(0)\n"}
    check_nothing(UnorderedLabels, SHUFFLED.replace("SHUFFLE", "random.shuffle(self.order)"), files=files)


def test_a_shuffle_by_an_imported_name_is_told() -> None:
    source = SHUFFLED.replace("SHUFFLE", "shuffle(self.order)").replace("import random\n", "from random import shuffle\n")
    check_told(UnorderedLabels, source, reason="leave it to the sampler")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SHUFFLE", "random.Random(3).shuffle(self.order)"),
        ("SHUFFLE", "random.shuffle(self.colors)"),
        ("    data = Rows(rows)", "    np.random.seed(0)\n    data = Rows(rows)"),
        ("sampler=DistributedSampler(data)", "shuffle=True"),
        ("self.rows[self.order[index]]", "self.rows[index]"),
        ("    data = Rows(rows)", "    random.seed(dist.get_rank())\n    np.random.seed(0)\n    data = Rows(rows)"),
        ("    data = Rows(rows)", "    torch.manual_seed(dist.get_rank())\n    np.random.seed(0)\n    data = Rows(rows)"),
        ("SHUFFLE", "np.random.seed(3)\n        SHUFFLE\n\n    def reseed(self):\n        np.random.seed(dist.get_rank())"),
        ("        SHUFFLE", "        SHUFFLE\n        dist.broadcast_object_list([self.order], src=0)"),
        (".backward()", ".item()"),
    ],
)
def test_shuffles_that_change_no_index(old: str, new: str) -> None:
    check_nothing(UnorderedLabels, SHUFFLED.replace(old, new).replace("SHUFFLE", "np.random.shuffle(self.order)"))


@pytest.mark.parametrize(
    "given", ["shuffle=False", "shuffle=not args.distributed", "shuffle=False if args.distributed else True"]
)
def test_a_shuffle_that_is_off_in_runs_of_several(given: str) -> None:
    source = SHUFFLED.replace("SHUFFLE", "if shuffle:\n            random.shuffle(self.order)")
    source = source.replace("self, rows):", "self, rows, shuffle=True):")
    check_nothing(UnorderedLabels, source.replace("Rows(rows)", f"Rows(rows, {given})"))
    check_nothing(UnorderedLabels, source.replace("shuffle=True):", "shuffle=False):"))
    for other in ("Rows(rows)", "Rows(rows, shuffle=args.shuffle)", "Rows(rows, shuffle=True if args.distributed else False)"):
        assert findings_of(UnorderedLabels, source.replace("Rows(rows)", other))


# Streams that are shuffled before a worker takes its part

STREAM_OF_FILES = """\
import random

import numpy as np
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info


class Files(IterableDataset):
    def __init__(self, files{more}):
        self.files = files

    def __iter__(self):
        {shuffle}
        info = get_worker_info()
        parts = dist.get_world_size() * info.num_workers
        own = dist.get_rank() * info.num_workers + {number}
        {take}
"""


def stream(
    shuffle: str = "random.shuffle(self.files)",
    take: str = "yield from self.files[own::parts]",
    number: str = "info.id",
    more: str = "",
) -> str:
    return STREAM_OF_FILES.format(shuffle=shuffle, take=take, number=number, more=more)


@pytest.mark.parametrize("shuffle", ["random.shuffle(self.files)", "np.random.shuffle(self.files)"])
def test_a_stream_that_each_worker_shuffles_for_itself(shuffle: str) -> None:
    found = check_told(UnorderedLabels, stream(shuffle), reason="seeded alike in all workers")
    assert "each worker of Files shuffles `self.files`" in found.message


@pytest.mark.parametrize(
    "source",
    [
        stream("random.Random(0).shuffle(self.files)"),
        stream(more=", seed=0"),
        stream(more=", epoch=0"),
        stream(number="0"),
        stream("pass"),
        stream(take="own_files = self.files[own::parts]; random.shuffle(own_files); yield from own_files", shuffle="pass"),
        stream(take="yield from range(own, 100, parts)"),
        stream().replace("(IterableDataset)", "(Stream)"),
        stream("rows = [1]; random.shuffle(rows)"),
    ],
)
def test_streams_that_have_one_order_or_none(source: str) -> None:
    check_nothing(UnorderedLabels, source)


EVALUATION = HEAD + """
class Images(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".png")]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.paths[index]


@torch.no_grad()
def main(folder):
    dist.init_process_group("nccl")
    images = Images(folder)
    loader = DataLoader(images, sampler=DistributedSampler(images, shuffle=False), batch_size=8)
    for batch in loader:
        print(dist.get_rank(), batch)
"""


def test_files_that_an_evaluation_deals_out() -> None:
    after = EVALUATION.replace("os.listdir(folder)", "sorted(os.listdir(folder))")
    check_transformed(UnorderedLabels, EVALUATION, after, unsafe=True)
    check_nothing(UnorderedLabels, EVALUATION.replace("sampler=DistributedSampler(images, shuffle=False)", "shuffle=False"))


# What the Trainer of transformers is handed: it seeds the process when it is made, behind the data set

HANDED = """\
import random

from torch.utils.data import Dataset
from transformers import HfArgumentParser, Trainer, TrainingArguments


class Rows(Dataset):
    def __init__(self, parts, rate):
        rows = []
        for part in parts:
            rows += part
        random.shuffle(rows)
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.item_of(i)

    def item_of(self, place):
        return self.rows[place]


def data_of(parts):
    data = Rows(parts, 0.5)
    return dict(train_dataset=data, eval_dataset=None)


def main(model, parts):
    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    given = data_of(parts)
    trainer = Trainer(model=model, args=arguments, **given)
    trainer.train()


if __name__ == "__main__":
    main(None, [])
"""
STARTED = {"run.sh": "torchrun --nproc_per_node 8 module.py --output_dir out\n"}


def test_a_shuffle_of_what_the_trainer_gets() -> None:
    after = HANDED.replace("random.shuffle(", "random.Random(0).shuffle(")
    check_transformed(UnorderedLabels, HANDED, after, files=STARTED, unsafe=True)
    (found,) = findings_of(UnorderedLabels, HANDED, STARTED)
    assert "the indices that the Trainer deals out" in found.message


@pytest.mark.parametrize(
    ("drawn", "kept"),
    [
        ("part = random.sample(part, int(len(part) * rate))", "rows += part"),
        ("few = random.sample(part, 3)", "rows.extend(few)"),
        ("few = random.choices(part, k=3)", "rows += [r for r in few]"),
    ],
)
def test_a_part_that_each_rank_draws_for_itself(drawn: str, kept: str) -> None:
    drawn = HANDED.replace("        random.shuffle(rows)\n", "").replace("rows += part\n", f"{drawn}\n            {kept}\n")
    after = drawn.replace("random.sample(", "random.Random(0).sample(").replace("random.choices(", "random.Random(0).choices(")
    check_transformed(UnorderedLabels, drawn, after, files=STARTED, unsafe=True)
    (found,) = findings_of(UnorderedLabels, drawn, STARTED)
    assert "each rank draws `self.rows`" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    given = data_of", "    set_seed(arguments.seed)\n    given = data_of"),
        ("    given = data_of", "    random.seed(3)\n    given = data_of"),
        ("import random\n", "import random\n\nrandom.seed(0)\n"),
        ("random.shuffle(rows)", "random.Random(3).shuffle(rows)"),
        ("random.shuffle(rows)", "print(random.sample(rows, 3))"),
        ("self.rows = rows", "self.rows = sorted(rows)"),
        ("dict(train_dataset=data", "dict(train_data=data"),
        ("Trainer(model=model", "Own(model=model"),
    ],
)
def test_data_of_a_trainer_that_are_alike(old: str, new: str) -> None:
    own = "class Own(Trainer):\n    def get_train_dataloader(self):\n        return self.made\n\n\ndef data_of"
    source = HANDED.replace(old, new).replace("def data_of", own)
    check_nothing(UnorderedLabels, source.replace("TrainingArguments\n", "TrainingArguments, set_seed\n", 1), files=STARTED)


def test_a_trainer_that_nobody_starts_as_several_processes() -> None:
    check_nothing(UnorderedLabels, HANDED, files={"run.sh": "python module.py\n"})


@pytest.mark.parametrize("use", ["names.add('unknown')", "names |= {'unknown'}", "known = rows.name in names"])
def test_a_set_that_is_used_as_one_is_sorted_where_its_order_is_read(use: str) -> None:
    before = program("names = set(names)", use, "return {n: i for i, n in enumerate(names)}")
    after = program("names = set(names)", use, "return {n: i for i, n in enumerate(sorted(names))}")
    check_transformed(UnorderedLabels, before, after, unsafe=True)


def test_an_empty_set_that_a_loop_fills_stays_a_set() -> None:
    lines = ("found = set()", "for row in rows:", "    found.add(row.name)")
    before = program(*lines, "names = list(found)", "return {n: i for i, n in enumerate(names)}")
    after = program(*lines, "names = sorted(found)", "return {n: i for i, n in enumerate(names)}")
    check_transformed(UnorderedLabels, before, after, unsafe=True)


SPAWNS = """\
import torch.distributed as dist
import torch.multiprocessing as mp

from labels import numbers


def worker(rank, ids):
    dist.init_process_group("nccl", rank=rank, world_size=2)


if __name__ == "__main__":
{}
"""
NUMBERS = "def numbers(rows):\n    return {n: i for i, n in enumerate({r.name for r in rows})}\n"


def test_what_the_parent_numbers_before_it_spawns_is_the_same_on_all_ranks() -> None:
    lines = "    ids = numbers(open('rows'))\n    mp.spawn(worker, nprocs=2, args=(ids,))\n"
    check_nothing(UnorderedLabels, NUMBERS, path="labels.py", files={"main.py": SPAWNS.format(lines)})


def test_what_each_worker_numbers_is_its_own() -> None:
    lines = "    mp.spawn(worker, nprocs=2, args=(1,))\n"
    main = SPAWNS.format(lines).replace("world_size=2)\n", "world_size=2)\n    ids = numbers(open('rows'))\n")
    assert findings_of(UnorderedLabels, NUMBERS, path="labels.py", files={"main.py": main})


COUNTED = """\
names = {row.name for row in rows}
ids, n = {}, 1
for name in NAMES:
    LINES
DDP(args.net)
"""


@pytest.mark.parametrize(
    "lines",
    ["ids[name] = n\n    n += 1", 'key = f"<{name}>"\n    ids[key] = n\n    n += 1', 'ids[f"<{name}>"] = n\n    n += 1'],
)
def test_elements_of_a_set_that_a_counter_numbers(lines: str) -> None:
    source = COUNTED.replace("LINES", lines)
    before, after = (program(*source.replace("NAMES", n).splitlines()) for n in ("names", "sorted(names)"))
    found = findings_of(UnorderedLabels, before)
    assert [f.code for f in found] == ["DDP404"] and not findings_of(UnorderedLabels, after)


@pytest.mark.parametrize(
    "lines",
    ["ids[name] = 1\n    n += 1", "ids[name] = n", "ids[0] = n\n    n += 1", "ids[name] = n\n    if name:\n        n += 1",
     "n += 1", 'key = lookup(name)\n    ids[key] = n\n    n += 1'],
)  # fmt: skip
def test_a_counter_that_numbers_no_elements(lines: str) -> None:
    check_nothing(UnorderedLabels, program(*COUNTED.replace("NAMES", "names").replace("LINES", lines).splitlines()))
