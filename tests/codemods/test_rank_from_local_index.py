from __future__ import annotations

import textwrap

import pytest

from codemods.ranks.rank_from_local_index import RankFromLocalIndex
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from itertools import islice
from torch.utils.data import DistributedSampler
"""
LOCAL = "local_rank = int(os.environ['LOCAL_RANK'])"


def script(*lines: str, arguments: str = "data, args", below: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}\n\ndef main({arguments}):\n{body}\n{textwrap.dedent(below)}"


def test_example_of_the_page() -> None:
    sections = RankFromLocalIndex.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(RankFromLocalIndex, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("s = DistributedSampler(data, rank=local_rank)", "s = DistributedSampler(data, rank=dist.get_rank())"),
        ("s = DistributedSampler(data, dist.get_world_size(), local_rank)",
         "s = DistributedSampler(data, dist.get_world_size(), dist.get_rank())"),
        ("s = BucketSampler(data, num_replicas=int(os.environ['WORLD_SIZE']), rank=local_rank)",
         "s = BucketSampler(data, num_replicas=int(os.environ['WORLD_SIZE']), rank=dist.get_rank())"),
        ("mine = data[local_rank::dist.get_world_size()]", "mine = data[dist.get_rank()::dist.get_world_size()]"),
        ("mine = islice(data, local_rank, None, dist.get_world_size())",
         "mine = islice(data, dist.get_rank(), None, dist.get_world_size())"),
        ("mine = data.shard(num_shards=dist.get_world_size(), index=local_rank)",
         "mine = data.shard(num_shards=dist.get_world_size(), index=dist.get_rank())"),
        ("mine = Reader(data, shard_id=local_rank, num_shards=dist.get_world_size())",
         "mine = Reader(data, shard_id=dist.get_rank(), num_shards=dist.get_world_size())"),
        ("mine = [d for i, d in enumerate(data) if i % dist.get_world_size() == local_rank]",
         "mine = [d for i, d in enumerate(data) if i % dist.get_world_size() == dist.get_rank()]"),
    ],
)  # fmt: skip
def test_shares_of_all_nodes(given: str, wanted: str) -> None:
    check_transformed(RankFromLocalIndex, script(LOCAL, given), script(LOCAL, wanted), unsafe=True)


def test_a_sampler_of_each_node() -> None:
    given = "s = DistributedSampler(data, num_replicas=int(os.environ['LOCAL_WORLD_SIZE']), rank=local_rank)"
    wanted = "s = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank())"
    check_transformed(RankFromLocalIndex, script(LOCAL, given), script(LOCAL, wanted), unsafe=True)


def test_commands_of_one_node() -> None:
    given = script(LOCAL, "s = DistributedSampler(data, rank=local_rank)")
    check_nothing(RankFromLocalIndex, given, files={"run.sh": "torchrun --nproc_per_node=4 train.py\n"})
    assert findings_of(RankFromLocalIndex, given, files={"run.sh": "torchrun --nnodes=2 --nproc_per_node=4 train.py\n"})


def test_the_group_of_a_launcher() -> None:
    size = "world_size = int(os.environ['WORLD_SIZE'])"
    given = "dist.init_process_group('nccl', rank=local_rank, world_size=world_size)"
    wanted = "dist.init_process_group('nccl', rank=int(os.environ[\"RANK\"]), world_size=world_size)"
    check_transformed(RankFromLocalIndex, script(LOCAL, size, given), script(LOCAL, size, wanted), unsafe=True)


SPAWN = """
    if __name__ == "__main__":
        mp.spawn(main, nprocs=args.gpus, args=(data, args))
"""


@pytest.mark.parametrize("lines", [
    ("dist.init_process_group('nccl', rank=gpu, world_size=args.gpus * args.nodes)",),
    ("rank = gpu", "world_size = args.num_nodes * args.gpus",
     "dist.init_process_group('nccl', rank=rank, world_size=world_size)"),
    ("args.rank = gpu", "args.world_size = args.gpus * args.nnodes",
     "dist.init_process_group('nccl', rank=args.rank, world_size=args.world_size)"),
])  # fmt: skip
def test_the_number_that_spawn_gives(lines: tuple[str, ...]) -> None:
    source = script(*lines, arguments="gpu, data, args", below=SPAWN)
    check_told(RankFromLocalIndex, source, reason="the number of this node times")


def test_a_class_that_is_handed_both() -> None:
    share = """
        class Rows:
            def __init__(self, names, index, count):
                self.names = names[index::count]
    """
    before = script(LOCAL, "return Rows(data, local_rank, dist.get_world_size())", below=share)
    after = script(LOCAL, "return Rows(data, dist.get_rank(), dist.get_world_size())", below=share)
    check_transformed(RankFromLocalIndex, before, after, unsafe=True)


def test_the_world_for_a_node() -> None:
    lines = (LOCAL, "per_node = int(os.environ['WORLD_SIZE'])", "rank = args.node_rank * per_node + local_rank",
             "size = args.nodes * per_node", "dist.init_process_group('nccl', rank=rank, world_size=size)")  # fmt: skip
    after = tuple(line.replace("'WORLD_SIZE'", '"LOCAL_WORLD_SIZE"') for line in lines)
    check_transformed(RankFromLocalIndex, script(*lines), script(*after), unsafe=True)


def test_the_world_for_a_node_and_for_the_world() -> None:
    lines = (LOCAL, "size = int(os.environ['WORLD_SIZE'])", "rank = args.node_rank * size + local_rank",
             "dist.init_process_group('nccl', rank=rank, world_size=size)")  # fmt: skip
    check_told(RankFromLocalIndex, script(*lines), reason="LOCAL_WORLD_SIZE")


@pytest.mark.parametrize(
    "lines",
    [
        (LOCAL, "s = DistributedSampler(data, rank=dist.get_rank())"),
        (LOCAL, "s = DistributedSampler(data, num_replicas=torch.cuda.device_count(), rank=local_rank)"),
        (LOCAL, "s = DistributedSampler(data, num_replicas=args.size, rank=local_rank)"),
        (LOCAL, "mine = data[local_rank::torch.cuda.device_count()]"),
        (LOCAL, "mine = data[local_rank::2]"),
        ("s = DistributedSampler(data, rank=local_rank)",),
        ("local_rank = dist.get_rank()", "s = DistributedSampler(data, rank=local_rank)"),
        ("rank = int(os.environ['RANK'])", "mine = data[rank::dist.get_world_size()]"),
        (LOCAL, "os.environ['LOCAL_RANK'] = '0'", "s = DistributedSampler(data, rank=local_rank)"),
        (LOCAL, "dist.init_process_group('nccl', rank=local_rank, world_size=torch.cuda.device_count())",
         "s = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=local_rank)"),
        (LOCAL, "dist.init_process_group('nccl', init_method='tcp://127.0.0.1:2', rank=local_rank, world_size=args.n)",
         "mine = data[local_rank::dist.get_world_size()]"),
        (LOCAL, "size = int(os.environ['LOCAL_WORLD_SIZE'])", "rank = args.node_rank * size + local_rank"),
        ("size = int(os.environ['WORLD_SIZE'])", "total = args.nodes * size"),
    ],
)  # fmt: skip
def test_numbers_that_are_right_or_not_shown(lines: tuple[str, ...]) -> None:
    check_nothing(RankFromLocalIndex, script(*lines))


@pytest.mark.parametrize("lines", [
    ("rank = args.nr * args.gpus + gpu",
     "dist.init_process_group('nccl', rank=rank, world_size=args.gpus * args.nodes)"),
    ("dist.init_process_group('nccl', rank=gpu, world_size=args.gpus)",),
    ("dist.init_process_group('nccl', rank=gpu, world_size=torch.cuda.device_count())",
     "s = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=gpu)"),
    ("dist.init_process_group('nccl', rank=gpu, world_size=args.world_size)",),
])  # fmt: skip
def test_what_spawn_gives_rightly(lines: tuple[str, ...]) -> None:
    check_nothing(RankFromLocalIndex, script(*lines, arguments="gpu, data, args", below=SPAWN))


def test_one_spawn_for_all() -> None:
    lines = ("dist.init_process_group('nccl', rank=gpu, world_size=args.gpus * args.nodes)",)
    spawn = "mp.spawn(main, nprocs=args.gpus * args.nodes, args=(data, args))"
    check_nothing(RankFromLocalIndex, script(*lines, arguments="gpu, data, args", below=spawn))


def test_tests_of_a_repository_stay() -> None:
    check_nothing(RankFromLocalIndex, script(LOCAL, "s = DistributedSampler(data, rank=local_rank)"), path="tests/test_a.py")


ACCELERATE = (
    "from accelerate import Accelerator\nfrom torch.utils.data import DistributedSampler\n\naccelerator = Accelerator()\n"
)
LOADER = "\n\ndef loader_of(data, rank=0, size=1):\n    return DistributedSampler(data, num_replicas=size, rank=rank)\n\n\n"


@pytest.mark.parametrize("other", ["", "loader_of(rows, 3, args.size)\n"])
def test_the_place_on_the_node_beside_all_processes_of_accelerate(other: str) -> None:
    before = f"{ACCELERATE}{LOADER}{other}loader_of(rows, rank=accelerator.local_process_index, size=accelerator.num_processes)\n"
    check_transformed(RankFromLocalIndex, before, before.replace("local_process_index", "process_index"), unsafe=True)


@pytest.mark.parametrize("size", ["args.size", "torch.cuda.device_count()", "2"])
def test_the_place_on_the_node_beside_another_number(size: str) -> None:
    check_nothing(RankFromLocalIndex, f"{ACCELERATE}{LOADER}loader_of(rows, rank=accelerator.local_process_index, size={size})\n")


WAYS = """\
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", default=-1, type=int)
    parser.add_argument("--world-size", default=1, type=int)
    parser.add_argument("--spawns", action="store_true")
    parser.add_argument("--node", default=0, type=int)
    parser.add_argument("--url")
    return parser.parse_args()


def start(args):
    if args.local_rank != -1:
        args.world_size = int(os.environ["WORLD_SIZE"])
    gpus = torch.cuda.device_count()
    if args.spawns:
        args.world_size = gpus * args.world_size
        mp.spawn(work, nprocs=gpus, args=(gpus, args))
    else:
        work(None, gpus, args)


def work(gpu, gpus, args):
    if args.local_rank != -1:
        args.rank = args.local_rank
    elif "SLURM_PROCID" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
    else:
        args.rank = args.node * gpus + gpu
    dist.init_process_group("nccl", init_method=args.url, world_size=args.world_size, rank=args.rank)


if __name__ == "__main__":
    '''
    python -m torch.distributed.launch --nproc_per_node=2 train.py
    python train.py --url tcp://localhost:10001 --spawns --world-size 1
    '''
    start(options())
"""


def test_one_of_several_ways_to_start() -> None:
    after = WAYS.replace("args.rank = args.local_rank", 'args.rank = int(os.environ["RANK"])')
    found = check_transformed(RankFromLocalIndex, WAYS, after, unsafe=True)
    assert "`args.local_rank` is the number of a process on its node" in found[0].message


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("the size of that way is not shown", '        args.world_size = int(os.environ["WORLD_SIZE"])\n', "        pass\n"),
        ("the size is that of the node", '= int(os.environ["WORLD_SIZE"])', "= torch.cuda.device_count()"),
        ("the launcher's rank", "args.rank = args.local_rank", 'args.rank = int(os.environ["RANK"])'),
        ("the address is this machine's", "init_method=args.url", 'init_method="tcp://localhost:10001"'),
        (
            "the size is given by another test",
            "    if args.local_rank != -1:\n        args.world",
            "    if args.all:\n        args.world",
        ),
    ],
)
def test_ways_that_are_right_or_not_shown(what: str, old: str, new: str) -> None:
    assert old in WAYS
    check_nothing(RankFromLocalIndex, WAYS.replace(old, new, 1))


def over_files(given: str = "") -> dict[str, str]:
    """The worker in a file of its own; what the other gives `args.world_size` stays there."""
    head, _, rest = WAYS.partition("def work(")
    work, _, end = rest.partition("\n\nif __name__")
    start = head.replace("import torch.distributed as dist\n", "from work import work\n") + "if __name__" + end
    return {
        "work.py": "import os\n\nimport torch.distributed as dist\n\n\ndef work(" + work,
        "train.py": start.replace('int(os.environ["WORLD_SIZE"])', given) if given else start,
    }


def test_options_that_another_file_sets() -> None:
    files = over_files()
    (found,) = findings_of(RankFromLocalIndex, files["work.py"], files, path="work.py")
    assert "`args.local_rank` is the number of a process on its node" in found.message


def test_options_of_another_file_that_do_not_count_all() -> None:
    for files in (over_files("torch.cuda.device_count()"), over_files("args.processes")):
        check_nothing(RankFromLocalIndex, files["work.py"], path="work.py", files=files)


def test_options_of_another_program() -> None:
    files = over_files()
    other = files.pop("train.py").replace("from work import work\n", "def work(gpu, gpus, args):\n    pass\n\n\n")
    check_nothing(RankFromLocalIndex, files["work.py"], path="work.py", files={**files, "other.py": other})


WORKED_OUT = ("rank = args.node * args.gpus + gpu", "dist.init_process_group('nccl', rank=rank, world_size=size)")


@pytest.mark.parametrize("name", ["rank", "args.rank", "global_rank"])
def test_the_rank_is_worked_out_beside(name: str) -> None:
    lines = [w.replace("rank = ", f"{name} = ", 1).replace("rank=rank", f"rank={name}") for w in WORKED_OUT]
    before = script(
        *lines, "s = DistributedSampler(data, num_replicas=size, rank=gpu)", arguments="gpu, data, args, size", below=SPAWN
    )
    after = before.replace("num_replicas=size, rank=gpu", f"num_replicas=size, rank={name}")
    check_transformed(RankFromLocalIndex, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("the sampler has the worked out rank", (*WORKED_OUT, "s = DistributedSampler(data, num_replicas=size, rank=rank)")),
        ("the sampler has another number", (*WORKED_OUT, "s = DistributedSampler(data, num_replicas=args.gpus, rank=gpu)")),
        ("nothing takes rank and number together",
         ("rank = args.node * args.gpus + gpu", "s = DistributedSampler(data, num_replicas=size, rank=gpu)")),
        ("what is worked out is no rank",
         ("seed = args.node * args.gpus + gpu", "start(seed, size)",
          "s = DistributedSampler(data, num_replicas=size, rank=gpu)")),
        ("it is a sum and no product",
         ("rank = args.offset + gpu", "start(rank, size)", "s = DistributedSampler(data, num_replicas=size, rank=gpu)")),
        ("it is worked out behind the sampler",
         ("s = DistributedSampler(data, num_replicas=size, rank=gpu)", *WORKED_OUT)),
        ("all processes meet at this machine",
         ("rank = args.node * args.gpus + gpu",
          "dist.init_process_group('nccl', init_method='tcp://127.0.0.1:2', rank=rank, world_size=size)",
          "s = DistributedSampler(data, num_replicas=size, rank=gpu)")),
    ],
)  # fmt: skip
def test_a_worked_out_rank_that_is_taken_or_not_shown(what: str, lines: tuple[str, ...]) -> None:
    check_nothing(RankFromLocalIndex, script(*lines, arguments="gpu, data, args, size", below=SPAWN))


SLOT = """\
import torch
import torch.distributed as dist


class Pairs:
    def all_of(self, own):
        parts = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own)
        parts[self.args.local_rank] = own
        return torch.cat(parts)
"""


def test_the_own_tensor_among_all() -> None:
    check_transformed(RankFromLocalIndex, SLOT, SLOT.replace("parts[self.args.local_rank]", "parts[dist.get_rank()]"))


def test_a_place_that_the_file_works_out_by_the_same_number_again() -> None:
    again = SLOT + "\n    def part(self, rows, size):\n        return rows[size * self.args.local_rank :][:size]\n"
    check_told(RankFromLocalIndex, again, reason="finds its own part by the same number")
    other = again.replace("size * self.args.local_rank", "size * self.place")
    check_transformed(RankFromLocalIndex, other, other.replace("parts[self.args.local_rank]", "parts[dist.get_rank()]"))


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("a group of some processes", "(parts, own)", "(parts, own, group=self.node)"),
        ("the global rank", "self.args.local_rank]", "dist.get_rank()]"),
        ("an index of another kind", "self.args.local_rank]", "self.place]"),
        ("another list", "parts[self", "rows[self"),
        ("another tensor is put there", "] = own", "] = own.detach() * 0"),
        ("a helper of the project's own", "dist.all_gather(", "self.all_gather("),
        ("the project's local rank is the rank", "        parts = [",
          "        self.args.local_rank = dist.get_rank()\n        parts = ["),
    ],
)  # fmt: skip
def test_a_place_that_is_right_or_not_shown(what: str, old: str, new: str) -> None:
    assert old in SLOT
    check_nothing(RankFromLocalIndex, SLOT.replace(old, new, 1))


LIGHTNING = """\
import pytorch_lightning as pl
from torch.utils.data import DataLoader

from samplers import ByLength{more}


class Speech(pl.LightningModule):
    def train_dataloader(self):
        sampler = ByLengthSampler(self.rows, world_size=self.trainer.world_size, rank=self.trainer.local_rank)
        return DataLoader(self.rows, batch_sampler=sampler)
"""


def test_the_trainer_has_both() -> None:
    source = LIGHTNING.format(more="Sampler")
    check_transformed(RankFromLocalIndex, source, source.replace("trainer.local_rank", "trainer.global_rank"), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rank=self.trainer.local_rank", "rank=self.trainer.global_rank"),
        ("self.trainer.world_size", "self.trainer.num_devices"),
        ("pytorch_lightning as pl", "own_trainer as pl"),
    ],
)
def test_a_trainer_that_is_right_or_not_lightning(old: str, new: str) -> None:
    check_nothing(RankFromLocalIndex, LIGHTNING.format(more="Sampler").replace(old, new, 1))


TWO_WAYS = """
    try:
        rank = int(os.environ["RANK"])
        number = int(os.environ["LOCAL_RANK"])
        size = int(os.environ["WORLD_SIZE"])
        dist.init_process_group("nccl", rank=rank, world_size=size)
    except KeyError:
        rank, size = 0, 1
        number = 0
    s = DistributedSampler(data, num_replicas=size, rank=number)
"""


def test_the_variable_of_one_way_is_read_where_the_launcher_sets_the_rank() -> None:
    after = TWO_WAYS.replace('number = int(os.environ["LOCAL_RANK"])', 'number = int(os.environ["RANK"])')
    check_transformed(RankFromLocalIndex, f"{HEAD}\ndef main(data):{TWO_WAYS}", f"{HEAD}\ndef main(data):{after}", unsafe=True)


def test_a_variable_that_chooses_the_device_too_is_told() -> None:
    code = f"{HEAD}\ndef main(data, model):{TWO_WAYS}    model.to(number)\n"
    check_told(RankFromLocalIndex, code, reason="the same variable is read for other things")


CONDITIONAL = "if size > 1:\n        dist.init_process_group('gloo')"
SIZE = "size = int(os.environ.get('WORLD_SIZE', 1))"
ASKED = "dist.get_rank() if dist.is_initialized() else 0"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("s = DistributedSampler(data, size, local_rank)", f"s = DistributedSampler(data, size, {ASKED})"),
        ("s = DistributedSampler(data, num_replicas=size, rank=local_rank)",
         f"s = DistributedSampler(data, num_replicas=size, rank={ASKED})"),
        ("mine = data[local_rank::size]", f"mine = data[({ASKED})::size]"),
        ("mine = [d for i, d in enumerate(data) if i % size == local_rank]",
         f"mine = [d for i, d in enumerate(data) if i % size == ({ASKED})]"),
    ],
)  # fmt: skip
def test_a_group_that_is_started_under_a_test_alone(given: str, wanted: str) -> None:
    start = (SIZE, LOCAL, CONDITIONAL)
    check_transformed(RankFromLocalIndex, script(*start, given), script(*start, wanted), unsafe=True)


@pytest.mark.parametrize("start", ["dist.init_process_group('gloo')", "dist.barrier()"])
def test_a_group_that_is_there_in_any_case(start: str) -> None:
    given = "s = DistributedSampler(data, num_replicas=size, rank=local_rank)"
    wanted = "s = DistributedSampler(data, num_replicas=size, rank=dist.get_rank())"
    below = "\ndef other(size):\n    if size > 1:\n        dist.init_process_group('gloo')\n"
    lines = (SIZE, LOCAL, start)
    check_transformed(
        RankFromLocalIndex, script(*lines, given, below=below), script(*lines, wanted, below=below), unsafe=True
    )


def test_a_place_under_a_test_for_the_group() -> None:
    given = "if dist.is_initialized():\n        s = DistributedSampler(data, size, local_rank)"
    wanted = given.replace("local_rank", "dist.get_rank()")
    start = (SIZE, LOCAL, CONDITIONAL)
    check_transformed(RankFromLocalIndex, script(*start, given), script(*start, wanted), unsafe=True)


SETTINGS = """\
from dataclasses import dataclass


@dataclass
class Settings:
    local_rank: int = 0
    batch: int = 8
"""
OF_SETTINGS = """\
import torch.distributed as dist
from settings import Settings
from torch.utils.data import DistributedSampler


def main(config: Settings, data):
    dist.init_process_group("nccl")
    return DistributedSampler(data, num_replicas=dist.get_world_size(), rank=config.local_rank)
"""
NODES = "deepspeed --hostfile=hosts --num_nodes 2 module.py --batch=4\n"


def test_a_field_of_the_settings_that_the_launcher_fills_in() -> None:
    files = {"settings.py": SETTINGS, "run.sh": NODES}
    wanted = OF_SETTINGS.replace("config.local_rank", "dist.get_rank()")
    check_transformed(RankFromLocalIndex, OF_SETTINGS, wanted, files=files, unsafe=True)


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        (SETTINGS, "torchrun --nnodes 2 module.py\n"),  # no option comes: the field stays 0 on every rank
        (SETTINGS, NODES.replace("--num_nodes 2 ", "").replace("--hostfile=hosts", "--num_gpus 8")),  # one node
        (SETTINGS.replace("local_rank", "own_rank"), NODES),
    ],
)
def test_a_field_of_the_settings_that_no_launcher_fills_in(settings: str, command: str) -> None:
    source = OF_SETTINGS.replace("local_rank", "own_rank") if "own_rank" in settings else OF_SETTINGS
    check_nothing(RankFromLocalIndex, source, files={"settings.py": settings, "run.sh": command})


DRAWN = """
import random


class RowSampler:
    def __init__(self, size, rank, world):
        self.size, self.rank, self.world = size, rank, world

    def __iter__(self):
        while True:
            drawn = {drawn}
            for i in range(self.rank, len(drawn), self.world):
                yield drawn[i]
"""
TAKES = "s = RowSampler(len(data), rank=local_rank, world=dist.get_world_size())"


def test_a_sampler_whose_every_process_draws_a_list_of_its_own() -> None:
    below = DRAWN.format(drawn="random.choices(range(self.size), k=256 * self.world)")
    check_nothing(RankFromLocalIndex, script(LOCAL, TAKES, below=below))


@pytest.mark.parametrize(
    ("drawn", "above"),
    [
        ("random.choices(range(self.size), k=256)", "random.seed(args.seed)"),  # all processes draw the same
        ("list(range(self.size))", "pass"),
        ("torch.randperm(self.size, generator=torch.Generator()).tolist()", "pass"),
    ],
)
def test_a_sampler_that_deals_out_one_list(drawn: str, above: str) -> None:
    assert findings_of(RankFromLocalIndex, script(above, LOCAL, TAKES, below=DRAWN.format(drawn=drawn)))


RAISING = """\
import argparse

import torch
import torch.distributed as dist
from reader import Reader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--machine", type=int, default=0)
    parser.add_argument("--cards", type=int, default=8)
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    {raised}
    return Reader(open("rows.txt").readlines(), args)


if __name__ == "__main__":
    main()
"""
READER = """\
import torch.distributed as dist


class Reader:
    def __init__(self, rows, args):
        place, size = args.local_rank, dist.get_world_size()
        self.rows = [row for i, row in enumerate(rows) if i % size == place]
"""
RAISED = ("args.local_rank += args.machine * args.cards", "args.local_rank = args.machine * args.cards + args.local_rank")


@pytest.mark.parametrize("raised", RAISED)
def test_a_number_that_the_program_makes_global(raised: str) -> None:
    files = {"train.py": RAISING.format(raised=raised), "reader.py": READER}
    check_nothing(RankFromLocalIndex, READER, path="reader.py", files=files)
    kept = READER.replace("        place, size = args", "        self.args = args\n        place, size = self.args")
    check_nothing(RankFromLocalIndex, kept, path="reader.py", files={**files, "reader.py": kept})


@pytest.mark.parametrize(
    "raised", ["print(args)", "args.seed += args.local_rank", "other.local_rank += args.machine * args.cards"]
)
def test_a_number_that_stays_that_of_its_node(raised: str) -> None:
    files = {"train.py": RAISING.format(raised=raised), "reader.py": READER}
    assert findings_of(RankFromLocalIndex, READER, files, path="reader.py")


def test_a_number_that_only_another_program_makes_global() -> None:
    other = RAISING.format(raised=RAISED[0]).replace("from reader import Reader", "from others import Reader")
    files = {"train.py": RAISING.format(raised="print(args)"), "other.py": other, "reader.py": READER}
    files["others.py"] = "Reader = list\n"
    assert findings_of(RankFromLocalIndex, READER, files, path="reader.py")


@pytest.mark.parametrize(("above", "below", "told"), [("", RAISED[0], True), (RAISED[0], "", False)])
def test_a_share_is_taken_above_or_below_the_change(above: str, below: str, told: bool) -> None:
    source = script(above, "s = DistributedSampler(data, rank=args.local_rank)", below, below="main(rows, options)")
    assert bool(findings_of(RankFromLocalIndex, source)) is told
