"""Which places does only a run come to that no launcher started?"""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.without_launcher import is_without_launcher
from codemods.ranks.makedirs_race import MakedirsRace
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

MAIN = """\
    import os
    import torch.distributed as dist
    from fitting import fit

    def main(out):
        if "LOCAL_RANK" in os.environ:
            dist.init_process_group("nccl")
            shared(out)
        else:
            fit(out)

    if __name__ == "__main__":
        main("out")
    """
FIT = """\
    import os

    def fit(out):
        keep(out)

    def keep(out):
        if not os.path.exists(out):
            os.makedirs(out)
    """
RANK = """\
    import argparse
    import os
    import torch
    import torch.distributed as dist

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=-1)
        args = parser.parse_args()
        if args.local_rank == -1 or args.no_cuda:
            device = torch.device("cuda")
        else:
            dist.init_process_group("nccl")
        if args.local_rank == -1 and args.show:
            show(args.out)

    def show(out):
        os.makedirs(out)

    if __name__ == "__main__":
        main()
    """
ASKED = 'if "LOCAL_RANK" in os.environ:'


def alone(name: str, at: str, **files: str) -> bool:
    project = Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})
    module = project.module(at)
    assert module is not None
    function = next(f for f in module.functions if f.name == name)
    return is_without_launcher(project, module, function.body[0])


def by_variable(old: str = "", new: str = "", **more: str) -> bool:
    assert old in MAIN
    return alone("keep", "fitting.py", **{"main.py": MAIN.replace(old, new) if old else MAIN, "fitting.py": FIT, **more})


def by_rank(old: str = "", new: str = "") -> bool:
    assert old in RANK
    return alone("show", "main.py", **{"main.py": RANK.replace(old, new) if old else RANK})


def test_a_variable_that_launchers_set() -> None:
    assert by_variable()
    assert by_variable(ASKED, 'if os.environ.get("WORLD_SIZE") is not None:')
    assert by_variable(ASKED, 'launched = "RANK" in os.environ\n        if launched:')
    assert by_variable(ASKED, 'if not ("RANK" not in os.environ):')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ASKED, 'if "LOCAL_RANK" in os.environ and out:'),
        (ASKED, 'if "LOCAL_RANK" not in os.environ:'),
        (ASKED, 'if "HOME" in os.environ:'),
        (ASKED, 'if "LOCAL_RANK" in out:'),
        ('main("out")', 'main("out")\n        fit("out")'),
        ('main("out")', 'run(fit, "out")'),
        ('main("out")', 'os.environ["SLURM_PROCID"]'),
        ('main("out")', "mp.spawn(main)"),
        ('main("out")', "Process(target=main).start()"),
        ("import os", "import os\n    import lightning.pytorch as pl"),
    ],
)
def test_several_processes_may_come_there(old: str, new: str) -> None:
    assert not by_variable(old, new)


def test_a_method_may_be_called_by_anybody() -> None:
    method = "class Fit:\n    def keep(self, out):\n        print(out)\n"
    assert not by_variable(**{"fitting.py": method})


def test_a_rank_that_is_handed_over() -> None:
    assert by_rank()
    assert by_rank("if args.local_rank == -1 and args.show:", "if not args.local_rank != -1:")
    assert by_rank("if args.local_rank == -1 or args.no_cuda:", "if not args.local_rank != -1:")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args.local_rank == -1 and args.show", "args.local_rank == -1 or args.show"),
        ("args.local_rank == -1 and args.show", "args.local_rank != -1"),
        ("args.local_rank == -1 and args.show", "args.local_rank == 0"),
        ("args.local_rank == -1 or args.no_cuda", "args.no_cuda"),  # it joins a group, whatever the rank is
        ("args.local_rank == -1 or args.no_cuda", "args.local_rank == -1 and args.no_cuda"),
        ('            dist.init_process_group("nccl")', "            pass"),
    ],
)
def test_a_rank_that_nobody_may_hand_over(old: str, new: str) -> None:
    assert not by_rank(old, new)


def test_nothing_is_reported_there() -> None:
    text = {"run.sh": "torchrun --nproc_per_node 8 main.py\n"}
    asks = "if not os.path.exists(out):\n                os.makedirs(out)"
    source = textwrap.dedent(MAIN.replace("fit(out)", asks).replace("    from fitting import fit\n", ""))
    check_nothing(MakedirsRace, source, files=text, path="main.py")
    swapped = source.replace('"LOCAL_RANK" in', '"LOCAL_RANK" not in')
    assert findings_of(MakedirsRace, swapped, text, path="main.py")
