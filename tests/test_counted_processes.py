"""What stands under a test of the number of processes, and what trains by a Trainer that another function makes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project

SHOW = "def show(rows):\n    print(rows)\n"
FIT = """\
    import lightning.pytorch as pl
    from show import show

    def build(args):
        return pl.Trainer({given}, strategy="ddp")

    def main(args):
        trainer = build(args)
        trainer.fit(args.model)
        {test}
            show(args.rows)

    if __name__ == "__main__":
        main(read())
    """
TEST = """\
    import lightning.pytorch as pl
    from show import show
    from build import build_several

    def build():
        return pl.Trainer(devices=1)

    def main(args):
        {made}
        trainer.test(args.model)
        show(args.rows)

    if __name__ == "__main__":
        main(read())
    """
SEVERAL = "import lightning.pytorch as pl\n\ndef build_several():\n    return pl.Trainer(devices=4)\n"
SPAWN = """\
    import torch
    import torch.multiprocessing as mp
    from show import show

    def work(rank, args):
        torch.distributed.init_process_group("nccl")

    def main(args):
        count = torch.cuda.device_count()
        {test}
            show(args.rows)
        mp.spawn(work, args=(args,), nprocs={number})

    if __name__ == "__main__":
        main(read())
    """


def nobody(**files: str) -> bool:
    project = Project.of({f"{name}.py": textwrap.dedent(text).encode() for name, text in files.items()})
    module = project.module("show.py")
    assert module is not None
    return is_run_by_nobody(project, module, module.functions[0].body[0])


@pytest.mark.parametrize(
    ("given", "test"),
    [
        ("gpus=args.gpus", "if args.gpus <= 1:"),
        ("devices=args.devices", "if args.devices == 1 and args.rows:"),
        ("devices=len(args.devices)", "if len(args.devices) < 2:"),
        ("gpus=args.gpus", "if not args.gpus > 1:"),
        ("gpus=args.gpus", "if args.gpus > 1:\n            pass\n        else:"),
    ],
)
def test_what_stands_under_a_test_for_one(given: str, test: str) -> None:
    assert nobody(show=SHOW, fit=FIT.format(given=given, test=test))


@pytest.mark.parametrize(
    ("given", "test"),
    [
        ("gpus=args.gpus", "if args.gpus > 1:"),
        ("gpus=args.gpus", "if args.gpus >= 1:"),
        ("gpus=args.gpus", "if args.gpus == 1 or args.rows:"),
        ("gpus=args.gpus", "if args.stages == 1:"),  # not the number of processes
        ("gpus=4", "if args.gpus == 1:"),  # one GPU for each of the processes
        ("gpus=args.gpus", "if args.gpus < 5:"),
    ],
)
def test_what_stands_under_another_test(given: str, test: str) -> None:
    assert not nobody(show=SHOW, fit=FIT.format(given=given, test=test))


@pytest.mark.parametrize(
    ("test", "number", "found"),
    [
        ("if count == 1:", "count", True),
        ("if args.procs < 2:", "args.procs", True),
        ("if count > 1:", "count", False),
        ("if args.gpus == 1:", "args.procs", False),
    ],
)
def test_processes_that_are_spawned(test: str, number: str, found: bool) -> None:
    assert nobody(show=SHOW, run=SPAWN.format(test=test, number=number)) is found


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("trainer = build()", True),
        ("trainer = build_several()", False),
        ("build_several().fit(args.model)\n        trainer = build()", False),
        ("pl.Trainer(devices=2).fit(args.model)\n        trainer = build()", False),
    ],
)
def test_a_trainer_that_another_function_makes(made: str, found: bool) -> None:
    assert nobody(show=SHOW, build=SEVERAL, test=TEST.format(made=made)) is found
