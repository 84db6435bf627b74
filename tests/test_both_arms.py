"""A function that both arms of a test of the rank call is entered by every rank."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_entering
from codemods.store.project import Project

HEAD = "import torch.distributed as dist\n\n\ndef main(args):\n    print(args)\n\n\ndef start(args, run, rank=None):\n"
TEST = "if dist.get_rank() == 0:"


def entering(*lines: str) -> Ranks:
    source = HEAD + "".join(f"    {line}\n" for line in lines)
    project = Project(("a.py",), lambda _: source.encode())
    module = project.module("a.py")
    assert module is not None
    return ranks_entering(project, module, next(f for f in module.functions if f.name == "main"))


@pytest.mark.parametrize(
    "lines",
    [
        (TEST, "    main(args)", "else:", "    main(args)"),
        (TEST, "    with run(args):", "        main(args)", "else:", "    main(args)"),
        ("if dist.get_rank() != 0:", "    args.log = main(args)", "else:", "    args.run = run(args)", "    return main(args)"),
    ],
)
def test_calls_in_both_arms(lines: tuple[str, ...]) -> None:
    assert entering(*lines) is Ranks.ALL


@pytest.mark.parametrize(
    "lines",
    [
        (TEST, "    main(args)", "dist.barrier()", "if dist.get_rank() != 0:", "    main(args)"),  # one after the other
        (TEST, "    main(args)", "elif args.more:", "    main(args)"),  # of the others some
        (TEST, "    if args.more:", "        main(args)", "else:", "    main(args)"),  # of rank 0 not always
        (TEST, "    run(args)", "    main(args)", "if args.more:", "    run(args)"),
        (f"{TEST[:-1]} and args.more:", "    main(args)", "else:", "    print(1)"),
    ],
)
def test_calls_that_some_ranks_make(lines: tuple[str, ...]) -> None:
    assert entering(*lines) is not Ranks.ALL
