"""DDP713: processes that are started with what they cannot take."""

from __future__ import annotations

import pytest

from codemods.launch.wrong_start import WrongStart
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = WrongStart
HEAD = "import argparse\n\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
WORKER = "def worker({}):\n    dist.init_process_group('nccl', rank=0, world_size=2)\n\n\n"


def program(*lines: str, takes: str = "gpu, count", more: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}{WORKER.format(takes)}{more}def main(args):\n{body}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


@pytest.mark.parametrize(
    "start",
    ["mp.spawn(worker, nprocs=2, args={})", "mp.spawn(worker, {}, 2)", "mp.start_processes(worker, args={}, nprocs=2)",
     "context = mp.spawn(worker, args={}, nprocs=2, join=False)"],
)  # fmt: skip
def test_a_count_in_brackets(start: str) -> None:
    lines = ("count = torch.cuda.device_count()", start)
    check_transformed(RULE, program(*(x.format("(count)") for x in lines)), program(*(x.format("(count,)") for x in lines)))


@pytest.mark.parametrize(
    "value", ["torch.cuda.device_count()", "len(args.gpus)", "int(args.gpus)", "torch.cuda.device_count() * args.nodes", "4"]
)
def test_numbers(value: str) -> None:
    lines = (f"count = {value}", "mp.spawn(worker, nprocs=2, args={})")
    check_transformed(RULE, program(*(x.format("(count)") for x in lines)), program(*(x.format("(count,)") for x in lines)))


def test_a_process_for_each_rank() -> None:
    lines = ("for rank in range(2):", "    mp.Process(target=worker, args={}).start()")
    options = {"takes": "rank"}
    check_transformed(
        RULE, program(*(x.format("(rank)") for x in ("rank = int(args.rank)", lines[1].strip())), **options),
        program(*(x.format("(rank,)") for x in ("rank = int(args.rank)", lines[1].strip())), **options),
    )  # fmt: skip


def test_the_options_of_a_script() -> None:
    source = program(takes="gpu, args").rpartition("def main")[0] + (
        "if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n    args = parser.parse_args()\n"
        "    mp.spawn(worker, nprocs=2, args={})\n"
    )
    check_transformed(RULE, source.format("(args)"), source.format("(args,)"))


def test_a_method_that_is_started() -> None:
    source = HEAD + (
        "class Trainer:\n    def run(self):\n        count = torch.cuda.device_count()\n"
        "        mp.spawn(self.train, nprocs=count, args={})\n\n"
        "    def train(self, gpu, count):\n        dist.init_process_group('nccl', rank=gpu, world_size=count)\n"
    )
    check_transformed(RULE, source.format("(count)"), source.format("(count,)"))


def test_a_worker_that_is_not_seen() -> None:
    more = "from elsewhere import job\n\n\n"
    lines = ("count = torch.cuda.device_count()", "mp.spawn(job, nprocs=2, args={})")
    check_transformed(
        RULE, program(*(x.format("(count)") for x in lines), more=more),
        program(*(x.format("(count,)") for x in lines), more=more), unsafe=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("takes", "given", "room"),
    [("gpu, args", "(args, 2)", "takes 1 argument behind"), ("gpu, count, args", "(args,)", "takes 2 arguments behind"),
     ("gpu, count, args=None", "()", "takes 1 to 2 arguments"), ("gpu", "(args,)", "takes 0 arguments"),
     ("gpu, count, args, *more", "(args,)", "takes 2 arguments or more")],
)  # fmt: skip
def test_arguments_that_do_not_fit(takes: str, given: str, room: str) -> None:
    found = check_told(RULE, program(f"mp.spawn(worker, nprocs=2, args={given})", takes=takes), reason="hand over what it takes")
    assert room in found.message


def test_a_count_for_a_worker_of_three() -> None:
    lines = ("count = torch.cuda.device_count()", "mp.spawn(worker, nprocs=2, args=(count))")
    check_told(RULE, program(*lines, takes="gpu, count, args"), reason="hand over what it takes")


@pytest.mark.parametrize(
    ("takes", "given"),
    [("gpu, args", "(args,)"), ("gpu, count, args", "(2, args)"), ("gpu, *more", "(2, args, 3)"), ("gpu", "()"),
     ("gpu, count=1", "()"), ("gpu, args", "tuple(args)"), ("gpu, args", "(args)"), ("gpu, args", "[args]"),
     ("gpu, count, args", "(2, *args)"), ("gpu, args", "args.all")],
)  # fmt: skip
def test_what_may_fit(takes: str, given: str) -> None:
    check_nothing(RULE, program(f"mp.spawn(worker, nprocs=2, args={given})", takes=takes))


@pytest.mark.parametrize(
    "lines",
    [("worker = choose(args)", "mp.spawn(worker, nprocs=2, args=(1, 2, 3))"),
     ("mp.spawn(args.worker, nprocs=2, args=(1, 2, 3))",), ("mp.spawn(worker, nprocs=2, args=(1, 2, 3), **args.more)",),
     ("count = args.counts", "mp.spawn(worker, nprocs=2, args=(count))"),
     ("rows = torch.cuda.device_count()", "mp.Process(target=load, args=(rows)).start()"),
     ("sizes = (1, 2)", "mp.spawn(worker, nprocs=2, args=(sizes))")],
)  # fmt: skip
def test_starts_that_are_not_known_to_fail(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, program(*lines))


def test_a_worker_with_a_decorator() -> None:
    check_nothing(RULE, program("mp.spawn(worker, nprocs=2, args=(1, 2, 3))").replace("def worker", "@record\ndef worker"))


def test_a_worker_that_is_defined_twice() -> None:
    more = WORKER.format("gpu, args")
    check_nothing(RULE, program("mp.spawn(worker, nprocs=2, args=(args,))", takes="gpu, a, b", more=more))


@pytest.mark.parametrize("size", ["args.gpus * args.nodes", "args.nodes * torch.cuda.device_count()"])
def test_the_processes_of_all_nodes(size: str) -> None:
    lines = (f"world_size = {size}", "mp.spawn(worker, nprocs=world_size, args=(world_size,))")
    check_told(RULE, program(*lines), reason="start the processes of one node")


@pytest.mark.parametrize(
    "lines",
    [("count = len(args.gpus)", "world_size = count * args.nodes", "mp.spawn(worker, nprocs=count, args=(world_size,))"),
     ("world_size = args.gpus * 2", "mp.spawn(worker, nprocs=world_size, args=(world_size,))"),
     ("world_size = args.gpus * args.workers", "mp.spawn(worker, nprocs=world_size, args=(world_size,))")],
)  # fmt: skip
def test_the_processes_of_one_node(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, program(*lines))


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("mp.spawn(worker, nprocs=2, args=(1, 2, 3))"), path="tests/test_start.py")


def test_a_parser_at_the_top_of_the_file() -> None:
    source = (
        "import argparse\nimport torch.multiprocessing as mp\n\nparser = argparse.ArgumentParser()\n\n\n"
        "def worker(gpu, args):\n    pass\n\n\ndef main():\n    args = parser.parse_args()\n    args.size = 2\n"
        "    mp.spawn(worker, nprocs=2, args={})\n"
    )
    check_transformed(WrongStart, source.format("(args)"), source.format("(args,)"))


# The number of processes, and that of the ranks

GROUP = "def worker(rank, {takes}):\n    dist.init_process_group('nccl', rank={rank}, world_size={size})\n\n\n"


def sized(start: str, takes: str = "size", rank: str = "rank", size: str = "size", more: str = "") -> str:
    group = GROUP.format(takes=takes, rank=rank, size=size)
    return f"{HEAD}{group}def main(args):\n    count = len(args.gpus)\n{more}    {start}\n"


@pytest.mark.parametrize(
    "source",
    [
        sized("mp.spawn(worker, args=(count,), nprocs=min(count, 4))"),
        sized("mp.spawn(worker, args=(count,), nprocs=count if args.gpu else min(4, count))"),
        sized("mp.spawn(worker, args=(4,), nprocs=2)"),
        sized("mp.spawn(worker, args=(args,), nprocs=torch.cuda.device_count())", size="8", takes="args"),
        sized("mp.spawn(worker, (args,), gpus)", size="8", takes="args", more="    gpus = torch.cuda.device_count()\n"),
        sized("mp.start_processes(worker, args=(args,), nprocs=3)", size="2", takes="args"),
    ],
)
def test_another_number_of_processes_than_ranks(source: str) -> None:
    check_told(RULE, source, reason="hand the worker the number of processes")


@pytest.mark.parametrize(
    "source",
    [
        sized("mp.spawn(worker, args=(count,), nprocs=count)"),
        sized("mp.spawn(worker, args=(count,), nprocs=count if args.gpu else count)"),
        sized("mp.spawn(worker, args=(few,), nprocs=few)", more="    few = min(count, 4)\n"),
        sized("mp.spawn(worker, args=(few,), nprocs=min(few, 4))", more="    few = 2\n"),
        sized("mp.spawn(worker, args=(4,), nprocs=4)"),
        sized("mp.spawn(worker, args=(8, args), nprocs=4)", takes="size, args", rank="args.node * 4 + rank"),
        sized("mp.spawn(worker, args=(count * args.nodes,), nprocs=min(count, 4))"),
        sized("mp.spawn(worker, args=(args.size,), nprocs=min(count, 4))"),
        sized("mp.spawn(worker, args=(args,), nprocs=torch.cuda.device_count())", size="args.size", takes="args"),
        sized(
            "mp.spawn(worker, args=(args,), nprocs=gpus)", size="8", takes="args",
            more="    gpus = torch.cuda.device_count()\n    assert gpus == 8\n",
        ),
    ],
)  # fmt: skip
def test_numbers_that_fit_or_are_not_known(source: str) -> None:
    check_nothing(RULE, source)
