"""Lightning's DataParallel (`dp`) is one process: in the call, in an option, in a command, in settings."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.given_devices import command_gives_several, command_keeps_to_one
from codemods.analysis.ranks.program_starts import start_of
from codemods.analysis.ranks.start_kinds import Start
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.store.project import Project
from ddpfix.testing import findings_of

TOP = "import argparse\nimport pytorch_lightning as pl\nfrom module import Net\n\n\ndef main():\n"
MAIN = "\n\nif __name__ == '__main__':\n    main()\n"
OPTIONS = (
    "    parser = argparse.ArgumentParser()\n    parser = pl.Trainer.add_argparse_args(parser)\n{more}"
    "    args = parser.parse_args()\n"
)
PARSED = f"{TOP}{OPTIONS}    trainer = pl.Trainer.from_argparse_args(args)\n    trainer.fit(Net())\n{MAIN}"
HOOK = (
    "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    def validation_step(self, batch, n):\n        self.log('loss', self(batch).mean())\n"
)


def start(source: str, files: dict[str, str]) -> Start:
    project = Project.of({path: text.encode() for path, text in {"train.py": source, **files}.items()})
    module = project.module("train.py")
    assert module is not None
    return start_of(project, module)


@pytest.mark.parametrize(
    ("given", "several", "one"),
    [
        ("--gpus 4 --accelerator dp --batch 8", False, True),
        ("--gpus=4 --strategy=dp", False, True),
        ("--trainer.devices 4 --trainer.strategy 'dp'", False, True),
        ("trainer.gpus=4 trainer.distributed_backend=dp", False, True),
        ("--gpus 4 --accelerator ddp", True, False),
        ("--gpus 4 --accelerator gpu --name dp", True, False),
        ("--gpus 4 --strategy dp-like", True, False),
        ("--epochs 4", False, False),
    ],
)
def test_what_a_command_asks_for(given: str, several: bool, one: bool) -> None:
    assert command_gives_several(given) is several
    assert command_keeps_to_one(given) is one


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("python train.py --gpus 4 --accelerator dp\n", Start.OPEN),
        ("python train.py \\\n  --gpus 4 --strategy=dp\n", Start.OPEN),
        ("python train.py --gpus 4 --accelerator dp\npython train.py --gpus 4 --accelerator ddp\n", Start.SEVERAL),
        ("python train.py --gpus 4\n", Start.SEVERAL),
        ("python train.py --epochs 4\n", Start.LIKELY),
        ("torchrun --nproc_per_node 2 train.py --accelerator dp\n", Start.SEVERAL),
        ("python other.py --gpus 4 --accelerator dp\n", Start.LIKELY),
    ],
)
def test_the_commands_of_a_program(job: str, expected: Start) -> None:
    source = PARSED.format(more="    parser.add_argument('--seed')\n")
    files = {"run.sh": job, "module.py": HOOK, "other.py": ""}
    assert start(source, files) is expected
    if expected is Start.OPEN:
        assert not findings_of(UnsyncedMetric, HOOK, {"module.py": HOOK, "train.py": source, "run.sh": job}, path="module.py")


@pytest.mark.parametrize(
    ("made", "option", "job", "expected"),
    [
        ("gpus=4, accelerator='dp'", "", "", Start.ONE),
        ("gpus=4, strategy=how", "    how = 'dp'\n", "", Start.ONE),
        ("gpus=4, strategy=how", "    how = 'dp'\n    if read():\n        how = 'ddp'\n", "", Start.SEVERAL),
        ("gpus=4, distributed_backend=args.backend", "default='dp'", "python train.py --lr 1\n", Start.ONE),
        ("gpus=4, distributed_backend=args.backend", "default='dp'", "python train.py --backend ddp\n", Start.SEVERAL),
        ("gpus=4, distributed_backend=args.backend", "default='dp'", "", Start.SEVERAL),  # no command says how it is left
        ("gpus=4, distributed_backend=args.backend", "default='ddp'", "python train.py --lr 1\n", Start.SEVERAL),
    ],
)
def test_a_trainer_that_is_told_so(made: str, option: str, job: str, expected: Start) -> None:
    more = f"    parser.add_argument('--backend', {option})\n" if option.startswith("default") else option
    parser = f"    parser = argparse.ArgumentParser()\n{more}    args = parser.parse_args()\n"
    source = f"{TOP}{parser}    trainer = pl.Trainer({made})\n    trainer.fit(Net())\n{MAIN}"
    assert start(source, {"run.sh": job, "module.py": HOOK}) is expected


@pytest.mark.parametrize(
    ("made", "above", "one"),
    [
        ("devices=n, strategy='dp' if n > 1 else None", "n = torch.cuda.device_count()", True),
        ("gpus=n, strategy='dp' if torch.cuda.device_count() >= 2 else None", "n = torch.cuda.device_count()", True),
        ("devices=n, strategy=None if n <= 1 else 'dp'", "n = read()", True),
        ("devices=n if read() else 1, strategy=how", "n = read()\n    how = 'auto' if n < 2 else 'dp'", True),
        ("devices=n, strategy='ddp' if n > 1 else None", "n = read()", False),
        ("devices=n, strategy=None if n > 1 else 'dp'", "n = read()", False),
        ("devices=n, strategy='dp' if n > 1 else 'ddp'", "n = read()", False),
        ("devices=n, strategy='dp' if n > 4 else None", "n = read()", False),
        ("devices=n, strategy='dp' if read() else None", "n = read()", False),
        ("devices=4, strategy='dp' if n > 1 else None", "n = read()", False),  # it counts something else
        ("devices=n if read() else 4, strategy='dp' if n > 1 else None", "n = read()", False),
        ("devices=n, num_nodes=2, strategy='dp' if n > 1 else None", "n = read()", False),
    ],
)
def test_a_strategy_for_several_devices_alone(made: str, above: str, one: bool) -> None:
    source = f"{TOP}    {above}\n    trainer = pl.Trainer({made})\n    trainer.fit(Net())\n{MAIN}"
    assert (start(source, {"module.py": HOOK}) is Start.ONE) is one


@pytest.mark.parametrize(
    ("made", "option", "job", "expected"),
    [
        ("Trainer(devices=args.devices)", "'--devices', type=int, default=8", "", Start.SEVERAL),
        ("Trainer(devices=args.devices)", "'--devices', type=int, default=8", "python train.py --lr 1\n", Start.SEVERAL),
        ("Trainer(devices=args.devices)", "'--devices', type=int, default=8", "python train.py --devices $N\n", Start.LIKELY),
        ("Trainer(devices=args.devices)", "'--devices', type=int", "", Start.LIKELY),
        ("Trainer(devices=args.devices)", "'--batch', type=int, default=8", "", Start.LIKELY),
        ("Trainer(max_epochs=args.devices)", "'--devices', type=int, default=8", "", Start.LIKELY),
        ("Trainer.from_argparse_args(args)", "'--gpus', type=int, default=2", "", Start.SEVERAL),
        ("Trainer.from_argparse_args(args)", "'--devices', type=int, default=-1", "", Start.SEVERAL),  # all that there are
        ("Trainer.from_argparse_args(args)", "'--devices', default=-1", "python train.py --devices 1\n", Start.LIKELY),
        ("Trainer(devices=args.devices)", "'--devices', default='0,1'", "", Start.SEVERAL),
        ("Trainer(gpus=args.gpus)", "'--gpus', default='3'", "", Start.LIKELY),  # one GPU by its number
        ("Trainer(devices=args.devices)", "'--devices', type=int, default=-count()", "", Start.LIKELY),
        ("Trainer.from_argparse_args(args, gpus=read())", "'--gpus', type=int, default=4", "", Start.LIKELY),
        ("Trainer(strategy=DDPStrategy() if args.x else DeepSpeedStrategy())", "'--x'", "", Start.SEVERAL),
        ("Trainer(strategy='ddp' if args.x else 'fsdp', devices=read())", "'--x'", "", Start.SEVERAL),
        ("Trainer(strategy='ddp' if args.x else 'auto', devices=read())", "'--x'", "", Start.LIKELY),
    ],
)
def test_a_number_or_a_strategy_that_options_choose(made: str, option: str, job: str, expected: Start) -> None:
    parser = f"    parser = argparse.ArgumentParser()\n    parser.add_argument({option})\n    args = parser.parse_args()\n"
    source = f"{TOP}{parser}    trainer = pl.{made}\n    trainer.fit(Net())\n{MAIN}"
    assert start(source, {"run.sh": job, "module.py": HOOK}) is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("trainer:\n  devices: 4\n  strategy: dp\n", Start.OPEN),
        ("trainer:\n  gpus: 4\n  distributed_backend: 'dp'  # one process\n", Start.OPEN),
        ("trainer:\n  gpus: 4\n  accelerator: gpu\n  strategy: dp\n", Start.OPEN),
        ("trainer:\n  devices: 4\n  strategy: ddp\n", Start.SEVERAL),
        ("trainer:\n  devices: 4\n  name: dp\n", Start.SEVERAL),
    ],
)
def test_settings_of_trainers(settings: str, expected: Start) -> None:
    source = f"{TOP}    trainer = pl.Trainer(**read()['trainer'])\n    trainer.fit(Net())\n{MAIN}"
    assert start(source, {"conf/a.yaml": settings, "module.py": HOOK}) is expected


BASE = {"conf/a.yaml": "trainer:\n  gpus: 4\n  accelerator: dp\n", "module.py": HOOK}
PACKED = f"{TOP}    cfg = read()\n{{above}}    trainer = pl.Trainer({{made}}**cfg.trainer)\n    trainer.fit(Net())\n{MAIN}"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"conf/b.yaml": "trainer:\n  gpus: 8\n  accelerator: dp\n"}, Start.OPEN),
        ({"conf/b.yaml": "trainer:\n  gpus: 8\n  accelerator: ddp\n"}, Start.LIKELY),
        ({"conf/b.yaml": "trainer:\n  gpus: 8\n"}, Start.LIKELY),  # Lightning 1 took ddp_spawn there
        ({"conf/b.yaml": "trainer:\n  max_epochs: 8\n"}, Start.OPEN),
        ({"data.yaml": "gpus: 8\n"}, Start.OPEN),  # no Trainer's
        ({"README.md": "python train.py trainer.accelerator=ddp\n"}, Start.LIKELY),
        ({"run.sh": "torchrun --nproc_per_node 2 train.py\n"}, Start.SEVERAL),
    ],
)
def test_each_file_of_settings_asks_for_it(more: dict[str, str], expected: Start) -> None:
    assert start(PACKED.format(above="", made=""), {**BASE, **more}) is expected
    found = findings_of(UnsyncedMetric, HOOK, {**BASE, **more, "train.py": PACKED.format(above="", made="")}, path="module.py")
    assert not (found and expected is Start.OPEN)
    assert found or "README.md" in more or expected is Start.OPEN


@pytest.mark.parametrize(
    ("above", "made", "expected"),
    [
        ("    n = 1\n    cfg.trainer.accelerator = None\n    cfg.trainer.gpus = n\n", "", Start.OPEN),
        ("    cfg.trainer['accelerator'] = None\n    cfg.trainer['gpus'] = 1\n", "", Start.OPEN),
        ("    cfg.trainer.max_epochs = 3\n", "", Start.OPEN),
        ("    cfg.other.accelerator = 'ddp'\n", "", Start.OPEN),
        ("    cfg.trainer.accelerator = None\n", "", Start.LIKELY),
        ("    cfg.trainer.accelerator = None\n    cfg.trainer.gpus = 2\n", "", Start.LIKELY),
        ("    cfg.trainer.accelerator = 'ddp'\n    cfg.trainer.gpus = 1\n", "", Start.LIKELY),
        ("    if cfg.fast:\n        cfg.trainer.accelerator = 'ddp'\n", "", Start.LIKELY),
        ("", "callbacks=[], ", Start.OPEN),
        ("", "strategy=cfg.how, ", Start.LIKELY),
        ("    cfg.trainer.update(read('gpus'))\n", "", Start.LIKELY),
    ],
)
def test_what_a_program_writes_into_its_settings(above: str, made: str, expected: Start) -> None:
    assert start(PACKED.format(above=above, made=made), BASE) is expected


def test_settings_that_the_program_puts_together() -> None:
    source = PACKED.replace("**cfg.trainer", "**options")
    assert start(source.format(above="    options = cfg.trainer\n", made=""), BASE) is Start.OPEN
    assert start(source.format(above="    options = merged(cfg.trainer, strategy=cfg.how)\n", made=""), BASE) is Start.LIKELY


HANDED = """import argparse
import pytorch_lightning as pl
from checks import checked, shown
from module import Net


def main(args):
    table = vars(args)
    trainer = pl.Trainer.from_argparse_args(args)
    trainer.predict(Net(table["width"]))


if __name__ == "__main__":
    parser = pl.Trainer.add_argparse_args(argparse.ArgumentParser())
    args, rest = parser.parse_known_args()
    GIVEN
    main(args)
"""
CHECKS = """
def checked(args):
    if not args.seed:
        args.seed = 3
    shown(args)
    return args


def shown(options):
    print(options)


def as_asked(args):
    args.accelerator = args.backend
    return args


def other(args):
    return read()


def by_name(args):
    setattr(args, "accelerator", "ddp")
"""


@pytest.mark.parametrize(
    ("given", "one"),
    [
        ('args.accelerator = "dp"', True),
        ('args.accelerator = "dp"\n    args.gpus = args.cards\n    args = checked(args)', True),
        ('args.strategy, args.seed = "dp", 1\n    shown(args)', True),
        ('args.accelerator = "ddp"', False),
        ("args.accelerator = args.backend", False),
        ('if args.cards:\n        args.accelerator = "dp"', False),
        ('args.accelerator = "dp"\n    args.accelerator = "ddp"', False),
        ('args.accelerator = "dp"\n    args = as_asked(args)', False),
        ('args.accelerator = "dp"\n    args = other(args)', False),
        ('args.accelerator = "dp"\n    by_name(args)', False),
        ('args.accelerator = "dp"\n    unseen(args)', False),
        ('args.accelerator = "dp"\n    args = parser.parse_args()', False),
    ],
)
def test_a_namespace_that_the_program_itself_gives_the_strategy(given: str, one: bool) -> None:
    source = HANDED.replace("GIVEN", given).replace("checked, shown", "as_asked, by_name, checked, other, shown")
    found = start(source, {"checks.py": CHECKS})
    assert (found is Start.ONE) is one
    inside = source.replace("    main(args)\n", "").replace("def main(args):\n", "def main():\n    parser = make()\n    GIVEN\n")
    start_block, _, _ = inside.partition("if __name__")
    body = start_block.replace("GIVEN", f"args, rest = parser.parse_known_args()\n    {given}")
    assert (start(f"{body}{MAIN}", {"checks.py": CHECKS}) is Start.ONE) is one


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    main(args)\n", "    main(args)\n    main(parser.parse_args())\n"),
        ("    table = vars(args)\n", "    args.accelerator = args.backend\n"),
        ("    table = vars(args)\n", "    if args.several:\n        args.accelerator = 'ddp'\n"),
        ("from_argparse_args(args)", "from_argparse_args(args, accelerator='ddp')"),
        ("from_argparse_args(args)", "from_argparse_args(args.trainer)"),
    ],
)
def test_a_way_on_which_it_is_another(old: str, new: str) -> None:
    source = HANDED.replace("GIVEN", 'args.accelerator = "dp"')
    assert start(source, {"checks.py": CHECKS}) is Start.ONE
    assert old in source
    assert start(source.replace(old, new), {"checks.py": CHECKS}) is not Start.ONE
