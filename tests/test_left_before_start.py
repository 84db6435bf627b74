"""A mode that returns above the call that starts the program's ranks is one process: the other callers say who comes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.store.project import Project

KEEP = "import torch\n\n\ndef keep(path, settings):\n    torch.save(settings, path)\n"

FABRIC = """
from lightning.fabric import Fabric
from keeping import keep


def only_settings(args):
    keep(args.out, vars(args))


def main(args):
    BRANCH
    fabric = Fabric(devices=args.devices)
    fabric.launch()
    if fabric.global_rank == 0:
        keep(args.out, vars(args))
    fabric.barrier()


if __name__ == "__main__":
    main(parse())
"""

SPAWN = """
import sys
import torch.distributed as dist
import torch.multiprocessing as mp
from keeping import keep


def work(rank, args):
    dist.init_process_group("nccl")
    if rank == 0:
        keep(args.out, vars(args))


if __name__ == "__main__":
    args = parse()
    BRANCH
    mp.spawn(work, args=(args,), nprocs=args.devices)
"""

LAUNCHED = """
import torch.distributed as dist
from keeping import keep


def main(args):
    BRANCH
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        keep(args.out, vars(args))


if __name__ == "__main__":
    main(parse())
"""


def reaching(program: str, branch: str, **files: str) -> Ranks:
    source = program.replace("    BRANCH", textwrap.indent(branch, "    "))
    texts = {"keeping.py": KEEP, "run.py": source, **files}
    project = Project.of({name: text.encode() for name, text in texts.items()})
    module = project.module("keeping.py")
    assert module is not None
    return ranks_reaching(project, module, module.calls_named("save")[0])


@pytest.mark.parametrize(
    ("program", "branch"),
    [
        (FABRIC, "if args.only_settings:\n    only_settings(args)\n    keep(args.out, vars(args))\n    return"),
        (FABRIC, "if args.only_settings:\n    only_settings(args)\n    return"),
        (FABRIC, "if args.train:\n    print(args)\nelse:\n    only_settings(args)\n    return"),
        (FABRIC, "if args.only_settings:\n    if args.out:\n        only_settings(args)\n    return"),
        (SPAWN, "if args.only_settings:\n    keep(args.out, vars(args))\n    sys.exit()"),
    ],
)
def test_a_mode_that_returns_above_the_start(program: str, branch: str) -> None:
    assert reaching(program, branch) is Ranks.ZERO


@pytest.mark.parametrize(
    ("program", "branch"),
    [
        (FABRIC, "if args.only_settings:\n    only_settings(args)"),
        (FABRIC, "only_settings(args)"),
        (FABRIC, "for again in range(2):\n    if args.only_settings:\n        only_settings(args)\n        return"),
        (FABRIC, "Fabric(devices=2).launch()\nif args.only_settings:\n    only_settings(args)\n    return"),
        (LAUNCHED, "if args.only_settings:\n    keep(args.out, vars(args))\n    return"),
    ],
)
def test_every_rank_may_come_by_it(program: str, branch: str) -> None:
    assert reaching(program, branch) is Ranks.ALL


def test_a_launcher_starts_every_rank_in_the_mode() -> None:
    branch = "if args.only_settings:\n    only_settings(args)\n    return"
    assert reaching(FABRIC, branch, **{"run.sh": "torchrun --nproc_per_node 4 run.py --only_settings\n"}) is Ranks.ALL
    assert reaching(FABRIC, branch, **{"run.sh": "python run.py --only_settings\n"}) is Ranks.ZERO


@pytest.mark.parametrize("other", ["", "keep(args.out, vars(args))"])
def test_what_such_modes_alone_call_is_not_told_by_them(other: str) -> None:
    branch = f"if args.only_settings:\n    only_settings(args)\n    return\n{other}"
    program = FABRIC.replace("    if fabric.global_rank == 0:\n        keep(args.out, vars(args))\n", "")
    assert reaching(program, branch) is Ranks.ALL
