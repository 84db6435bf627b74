"""What stands outside `fit` is one process where Lightning spawns the ranks there."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.spawned_by_fit import starts_ranks_in_fit
from ddpfix.testing import project_of

SCRIPT = """\
import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_only
from model import Net

def main(args):
    print("the run is called", args.name)
    trainer = pl.Trainer({})
    trainer.fit(Net())
    if rank_zero_only.rank == 0:
        args.note()

if __name__ == "__main__":
    main(read())
"""
OLD = {"requirements.txt": "pytorch-lightning==1.9.0\n"}
NEW = {"requirements.txt": "pytorch-lightning==2.1.0\n"}
SPAWNED = [
    ("max_epochs=3, gpus=4", {**OLD, "job.sh": "#SBATCH --gres=gpu:1\n# run the thing\nsrun python \n"}),  # left to be filled in
    ("max_epochs=3, accelerator='gpu', devices=args.devices", OLD),
    ("max_epochs=3, gpus=4", OLD),
    ("max_epochs=3, gpus=4", {}),  # an argument that 2.0 has no longer
    ("max_epochs=3, gpus=4", {"requirements.txt": "pytorch-lightning\n"}),  # whoever runs it has one that takes it
    ("devices=4, auto_lr_find=True", {}),
    ("strategy='ddp_spawn', devices=4", NEW),
    ("strategy=DDPSpawnStrategy(), devices=4", OLD),
    ("strategy=DDPStrategy(start_method='spawn', timeout=wait), devices=4", NEW),
    ("strategy=OwnStrategy(start_method='fork'), devices=4", NEW),
]
STARTED_ANEW = [
    ("max_epochs=3, accelerator='gpu', devices=args.devices", NEW),
    ("max_epochs=3, gpus=4", NEW),
    ("devices=4", {"requirements.txt": "pytorch-lightning\n"}),
    ("strategy='ddp', devices=4", OLD),
    ("accelerator='ddp', gpus=4", OLD),
    ("strategy=args.strategy, devices=4", OLD),
    ("strategy=DDPStrategy(start_method='popen'), devices=4", NEW),
    ("strategy=DDPStrategy(start_method=args.method), devices=4", NEW),
    ("gpus=4, **args.more", OLD),
    ("devices=4", {}),
    ("gpus=4, num_nodes=2", OLD),
    ("gpus=4", {**OLD, "run.sh": "srun python train.py\n"}),
    ("gpus=4", {**OLD, "README.md": "torchrun --nproc-per-node 4 train.py\n"}),
]


def spawns(arguments: str, files: dict[str, str]) -> bool:
    """What is said of the function that makes the Trainer; what stands in it is run by one process then."""
    project = project_of(SCRIPT.format(arguments), files)
    module = project.module("module.py")
    assert module is not None
    (function,) = module.functions
    answer = starts_ranks_in_fit(project, module, function)
    assert is_run_by_nobody(project, module, function.body[0]) == answer
    return answer


@pytest.mark.parametrize(("arguments", "files"), SPAWNED)
def test_one_process_runs_the_script(arguments: str, files: dict[str, str]) -> None:
    assert spawns(arguments, files)


@pytest.mark.parametrize(("arguments", "files"), STARTED_ANEW)
def test_every_rank_runs_the_script(arguments: str, files: dict[str, str]) -> None:
    assert not spawns(arguments, files)


SET = "gpus=4, strategy=conf['train']['plan'], **conf['checks']"
OFF = "train:\n  plan:  # ddp\nchecks:\n  num_sanity_val_steps: 2\n"
ON = OFF.replace("plan:  # ddp", "plan: ddp")


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({"conf.yaml": OFF}, True),
        ({"conf.yaml": ON}, False),
        ({"conf.yaml": OFF, "big.yaml": ON}, False),
        ({"conf.yaml": OFF, "big.yaml": ON, "README.md": "python module.py --conf conf.yaml\n"}, True),
        ({"conf.yaml": OFF, "big.yaml": ON, "README.md": "python module.py --conf big.yaml\n"}, False),
        ({"conf.yaml": OFF, "big.yaml": ON, "README.md": "python other.py --conf big.yaml\n"}, True),
        ({"conf.yaml": OFF.replace("num_sanity_val_steps: 2", "accelerator: ddp")}, False),
        ({"conf.yaml": OFF.replace("  num_sanity_val_steps: 2", "  - 1")}, False),
        ({}, False),
    ],
)
def test_a_strategy_that_settings_leave_off(files: dict[str, str], answer: bool) -> None:
    assert spawns(SET, {**OLD, **files}) is answer
    assert not spawns(SET, {**NEW, **files})


@pytest.mark.parametrize(
    ("table", "spawned"),
    [
        ("{'gpus': -1, 'precision': 16} if args.gpu else {}", True),
        ("{'gpus': -1, 'accelerator': 'ddp'} if args.gpu else {}", False),
        ("{'gpus': -1} if args.gpu else args.more", False),
        ("{'gpus': -1, 'precision': 16}", True),
        ("{'gpus': None, 'precision': 32}", True),
        ("{'gpus': -1, 'accelerator': 'ddp'}", False),
        ("{**args.more, 'gpus': 2}", False),
    ],
)
def test_a_dict_of_arguments(table: str, spawned: bool) -> None:
    text = SCRIPT.format("max_epochs=3, **more").replace("    trainer = ", f"    more = {table}\n    trainer = ")
    project = project_of(text, OLD)
    module = project.module("module.py")
    assert module is not None
    (shown,) = module.calls_named("print")
    assert is_run_by_nobody(project, module, shown) is spawned


def test_a_dict_of_arguments_that_is_changed() -> None:
    given = "    more = {'gpus': 2}\n    more['accelerator'] = 'ddp'\n    trainer = "
    project = project_of(SCRIPT.format("**more").replace("    trainer = ", given), OLD)
    module = project.module("module.py")
    assert module is not None
    assert not starts_ranks_in_fit(project, module, module.function_of(module.calls_named("print")[0]))


BESIDE = """\
import pytorch_lightning as pl
import torch.multiprocessing as mp
from model import Net

def run(rank, args):
    pl.seed_everything(rank)

if __name__ == "__main__":
    args = read()
    if not args.evaluate:
        mp.spawn({worker}, args=(args,), nprocs=2)
    if args.evaluate:
        trainer = pl.Trainer({trainer})
        trainer.test(Net())
        print("tested")
{more}"""


@pytest.mark.parametrize(
    ("worker", "trainer", "more", "alone"),
    [
        ("run", "gpus=args.device", "", True),
        ("run", "gpus=args.device, strategy='ddp'", "", False),  # it starts the script anew for each rank
        ("run", "devices=args.device", "", False),  # so do two devices in Lightning 2
        ("run", "gpus=args.device", "    if args.one: run(0, args)\n", False),  # the process may be one of a launcher's
        ("unseen()", "gpus=args.device", "", False),
    ],
)
def test_what_a_script_does_beside_the_processes_that_it_spawns(worker: str, trainer: str, more: str, *, alone: bool) -> None:
    source = BESIDE.format(worker=worker, trainer=trainer, more=more)
    project = project_of(source, {"other.sh": "srun python other.py\n"})
    module = project.module("module.py")
    assert module is not None
    assert starts_ranks_in_fit(project, module, None) is alone


PARSED = """\
import pytorch_lightning as pl
from argparse import ArgumentParser
from model import Net

def main():
    args = parsed()
    note(args)
    run(args)

def note(args):
    print("the run is called", args.name)

def parsed():
    return pl.Trainer.add_argparse_args(ArgumentParser()).parse_args()

def run(args):
    trainer = {trainer}
    trainer.fit(Net())

if __name__ == "__main__":
    main()
"""
BY_OPTIONS = "pl.Trainer.from_argparse_args(args, max_epochs=3)"
COMMAND = {"run.sh": "python module.py --gpus -1 --precision 16\n"}


@pytest.mark.parametrize(
    ("trainer", "files", "alone"),
    [
        (BY_OPTIONS, COMMAND, True),
        (BY_OPTIONS, {**COMMAND, **OLD}, True),
        (BY_OPTIONS, {"run.sh": "python module.py --accelerator gpu --devices 4\n", **OLD}, True),
        (BY_OPTIONS, {**COMMAND, ".github/workflows/a.yml": "jobs:\n  one:\n    strategy:\n      matrix: 1\n"}, True),
        ("pl.Trainer(gpus=4)", {}, True),
        ("pl.Trainer(gpus=4, strategy='ddp')", COMMAND, False),
        (BY_OPTIONS, {}, False),  # no command says how it is run
        (BY_OPTIONS, {**COMMAND, **NEW}, False),
        (BY_OPTIONS, {"run.sh": "python module.py --gpus -1 --strategy ddp\n"}, False),
        (BY_OPTIONS, {**COMMAND, "more.sh": "python module.py --gpus 2 --accelerator=ddp\n"}, False),
        (BY_OPTIONS, {**COMMAND, "more.ipynb": '{"cells": [], "a": ["!python module.py --strategy ddp"]}'}, False),
        (BY_OPTIONS, {**COMMAND, "own.py": "def given(args):\n    args.strategy = 'ddp'\n"}, False),
        (BY_OPTIONS, {**COMMAND, "conf.yaml": "gpus: 2\nstrategy: ddp\n"}, False),
        (BY_OPTIONS, {"run.sh": "torchrun module.py --gpus 2\n"}, False),
        (BY_OPTIONS, {**COMMAND, "job.sh": "srun python module.py --gpus 2\n"}, False),
        ("pl.Trainer.from_argparse_args(args, strategy=args.how)", COMMAND, False),
        ("pl.Trainer.from_argparse_args(args, num_nodes=2)", COMMAND, False),
        ("pl.LightningDataModule.from_argparse_args(args)", COMMAND, False),
    ],
)
def test_a_trainer_that_a_called_function_makes(trainer: str, files: dict[str, str], *, alone: bool) -> None:
    project = project_of(PARSED.format(trainer=trainer), files)
    module = project.module("module.py")
    assert module is not None
    for function in module.functions:
        if function.name in ("main", "note", "run"):
            assert starts_ranks_in_fit(project, module, function) is alone, function.name


OWN_OPTIONS = """\
    parser.add_argument('--devices', default=-1, type=int)
    parser.add_argument('--accelerator', default='gpu')
"""


@pytest.mark.parametrize(
    ("options", "files", "alone"),
    [
        (OWN_OPTIONS, OLD, True),
        (OWN_OPTIONS.replace("-1", "4"), OLD, True),
        (OWN_OPTIONS.replace("-1", "1"), OLD, False),  # one device, and no command says more
        (OWN_OPTIONS.replace("gpu", "ddp"), OLD, False),
        (OWN_OPTIONS, NEW, False),
        (OWN_OPTIONS + "    parser.add_argument('--strategy', default='ddp')\n", OLD, False),
    ],
)
def test_a_trainer_of_options_whose_defaults_say_how_many(options: str, files: dict[str, str], *, alone: bool) -> None:
    parser = f"def parsed():\n    parser = ArgumentParser()\n{options}    return parser.parse_args()\n"
    source = PARSED.format(trainer=BY_OPTIONS)
    source = source.replace(source[source.index("def parsed") : source.index("\ndef run")], parser)
    project = project_of(source, files)
    module = project.module("module.py")
    assert module is not None
    main = next(f for f in module.functions if f.name == "main")
    assert starts_ranks_in_fit(project, module, main) is alone


def test_functions_that_make_a_trainer_of_each_kind() -> None:
    both = PARSED.format(trainer="pl.Trainer(gpus=4)").replace("    run(args)\n", "    run(args)\n    again(args)\n")
    for kind, alone in (("", True), (", strategy='ddp'", False)):
        source = both + f"\ndef again(args):\n    pl.Trainer(gpus=2{kind}).test(Net())\n"
        project = project_of(source)
        module = project.module("module.py")
        assert module is not None
        main = next(f for f in module.functions if f.name == "main")
        assert starts_ranks_in_fit(project, module, main) is alone
