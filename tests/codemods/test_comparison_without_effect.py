"""DDP709: a comparison where a value was to be given."""

from __future__ import annotations

import pytest

from codemods.launch.comparison_without_effect import ComparisonWithoutEffect
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = ComparisonWithoutEffect
HEAD = "import torch.distributed as dist\n\n\ndef main(args, sizes):\n    if args.nodes == 1:\n"


def program(line: str, head: str = HEAD) -> str:
    return f"{head}        {line}\n    dist.init_process_group('nccl', init_method=args.dist_url)\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [("args.dist_url == 'auto'", "args.dist_url = 'auto'"),
     ("args.url == 'env://'", "args.url = 'env://'"), ("args.batch==1", "args.batch = 1"),
     ("sizes[0] == -1", "sizes[0] = -1"),
     ("args.gpus == count(args)", "args.gpus = count(args)"), ("args.kind == Kind", "args.kind = Kind"),
     ("args.name == f'run{args.nodes}'", "args.name = f'run{args.nodes}'")],
)  # fmt: skip
def test_forms(before: str, after: str) -> None:
    check_transformed(RULE, program(before), program(after), unsafe=True)


def test_a_file_that_a_program_of_several_processes_imports() -> None:
    source = "def fill(args):\n    if args.auto:\n        args.gpu_count == 1\n"
    fixed = source.replace("==", "=")
    check_transformed(RULE, source, fixed, files={"train.py": "import torch.distributed as dist\nimport module\n"}, unsafe=True)


@pytest.mark.parametrize(
    "line",
    ["args.dist_url = 'auto'", "assert args.dist_url == 'auto'", "args.nodes != 1", "args.nodes < 1", "1 == args.nodes",
     "count(args) == 1", "sizes.shape[0] == sizes.shape[1]", "1 < args.nodes == 2", "x = args.nodes == 1",
     "args.nodes == 1 or stop()", "sizes[sizes == 1]", "print(args.nodes == 1)"],
)  # fmt: skip
def test_what_is_no_lost_value(line: str) -> None:
    check_nothing(RULE, program(line))


def test_the_last_value_of_a_notebook() -> None:
    check_nothing(RULE, "import torch.distributed as dist\n\nrank = 1\nrank == 0\n")


def test_a_file_of_one_process() -> None:
    check_nothing(RULE, "def fill(args):\n    args.gpu == 1\n")


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("args.dist_url == 'auto'"), path="tests/test_launch.py")


def test_a_statement_with_a_comment() -> None:
    after = program("args.dist_url = 'auto'  # any port")
    check_transformed(RULE, program("args.dist_url == 'auto'  # any port"), after, unsafe=True)


@pytest.mark.parametrize("line", ["args.batch == 2; go()", "args.sizes == [\n            2]"])
def test_what_is_told(line: str) -> None:
    check_told(RULE, program(line), reason="write `=`")


SEEDED = """import random
import torch
import torch.distributed as dist
from accelerate.utils import set_seed
from helpers import seed_all


def worker(rank, args, seed):
    {}
    dist.init_process_group("nccl", rank=rank)
"""
SEEDING = "import torch\n\n\ndef seed_all(number):\n    torch.manual_seed(number)\n    torch.cuda.manual_seed(number)\n"
HELPERS = {"helpers.py": SEEDING}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.manual_seed(seed + rank >= 0)", "torch.manual_seed(seed + rank)"),
        ("set_seed(args.run.seed + rank > 0)", "set_seed(args.run.seed + rank)"),
        ("seed_all(seed + 7 * rank >= 0)", "seed_all(seed + 7 * rank)"),
        ("random.seed(seed * 2 != 1)", "random.seed(seed * 2)"),
    ],
)
def test_a_seed_that_is_a_comparison(before: str, after: str) -> None:
    check_transformed(RULE, SEEDED.format(before), SEEDED.format(after), files=HELPERS, unsafe=True)


@pytest.mark.parametrize("line", ["torch.manual_seed(seed == rank)", "seed_all(0 <= seed < 5)", "set_seed(seed > args.other)"])
def test_a_seed_that_compares_in_another_way(line: str) -> None:
    check_told(RULE, SEEDED.format(line), reason="hand over the number itself", files=HELPERS)


@pytest.mark.parametrize(
    "line",
    [
        "torch.manual_seed(seed + rank if seed + rank >= 0 else 0)",
        "torch.manual_seed(max(seed + rank, 0))",
        "seed_all(seed + (rank > 0))",
        "args.use_seed(seed + rank >= 0)",
        "check_seed = seed + rank >= 0",
    ],
)
def test_a_seed_that_is_a_number(line: str) -> None:
    check_nothing(RULE, SEEDED.format(line), files=HELPERS)


def test_a_helper_that_seeds_several_libraries_is_told_of_once() -> None:
    found = findings_of(RULE, SEEDED.format("seed_all(seed + rank >= 0)"), HELPERS)
    assert len(found) == 1
