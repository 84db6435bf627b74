"""DDP413: a seed of the parent of spawned ranks."""

from __future__ import annotations

import pytest

from codemods.data_loading.seed_of_the_parent import SeedOfTheParent
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = SeedOfTheParent
WHY = "which each process runs"
HEAD = "import random\n\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
WORKER = "def worker(rank, args):\n    dist.init_process_group('nccl')\n    {}\n\n\n"
SPAWN = "mp.spawn(worker, nprocs=2, args=(args,))"


def program(*lines: str, worker: str = "torch.randn(4)", more: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}{more}{WORKER.format(worker)}def main(args):\n{body}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize("seed", ["torch.manual_seed(args.seed)", "random.seed(1)", "torch.cuda.manual_seed_all(args.seed)"])
def test_a_seed_above_the_start(seed: str) -> None:
    check_told(RULE, program(seed, SPAWN), reason=WHY)


def test_one_finding_for_all_seeds_of_the_parent() -> None:
    assert len(findings_of(RULE, program("random.seed(1)", "torch.manual_seed(1)", SPAWN))) == 1


def test_a_helper_that_seeds_and_one_that_starts() -> None:
    more = (
        "def seed_all(seed):\n    random.seed(seed)\n    torch.manual_seed(seed)\n\n\n"
        "def launch(fn, count, args):\n    mp.spawn(fn, nprocs=count, args=args)\n\n\n"
    )
    check_told(RULE, program("seed_all(args.seed)", "launch(worker, 2, (args,))", more=more), reason=WHY)


def test_one_process_that_the_parent_is_itself() -> None:
    lines = ("torch.manual_seed(args.seed)", "if args.gpus > 1:", f"    {SPAWN}", "else:", "    worker(0, args)")
    check_told(RULE, program(*lines), reason=WHY)


def test_the_block_under_main() -> None:
    block = "if __name__ == '__main__':\n    torch.manual_seed(1)\n    mp.spawn(worker, nprocs=2)\n"
    source = f"{HEAD}{WORKER.format('torch.randn(4)')}{block}"
    check_told(RULE, source, reason=WHY)


@pytest.mark.parametrize("inside", ["torch.manual_seed(args.seed)", "fix_seed(args)", "inner(args)"])
def test_a_worker_that_seeds(inside: str) -> None:
    more = "def inner(args):\n    random.seed(args.seed)\n\n\n"
    check_nothing(RULE, program("torch.manual_seed(args.seed)", SPAWN, worker=inside, more=more))


@pytest.mark.parametrize(
    "lines",
    [(SPAWN, "torch.manual_seed(1)"), ("torch.manual_seed(1)", "mp.start_processes(worker, nprocs=2, start_method='fork')"),
     ("torch.manual_seed(1)", "mp.spawn(args.worker, nprocs=2)"), ("torch.manual_seed(1)", "worker(0, args)"),
     ("generator = torch.Generator().manual_seed(1)", SPAWN),
     ("torch.manual_seed(1)", "mp.spawn(worker, nprocs=2, args=(args,), start_method='fork')")],
)  # fmt: skip
def test_parents_whose_seed_is_no_matter(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, program(*lines))


def test_a_seed_at_the_top_of_the_file_which_each_process_runs() -> None:
    check_nothing(RULE, program(SPAWN).replace(HEAD, f"{HEAD}torch.manual_seed(1)\n\n\n"))


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, program("torch.manual_seed(1)", SPAWN), path="tests/test_ranks.py")
