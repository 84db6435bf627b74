"""A Trainer whose devices the repository's own settings or texts leave at one shows no run of several processes."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.asked_of_one import is_fitted_on_one_device
from codemods.analysis.ranks.one_device import has_trainers_of_one_device, trains_on_one_device
from codemods.analysis.ranks.program_starts import start_of
from codemods.analysis.ranks.start_kinds import Start
from codemods.files.source import SourceModule
from codemods.store.project import Project

SOURCE = """\
import lightning.pytorch as pl
import yaml


def main(cfg):
    count = {value}
    trainer = pl.Trainer({given})
    trainer.fit(build(cfg))


if __name__ == "__main__":
    main(read())
"""
ONE = {"config/large.yaml": "lr: 0.1\nnum_devices: 1\n"}


def at_most_likely(project: Project, program: SourceModule) -> Start:
    """What is asked here is whether one device is left to it; who says that there are more is asked in test_program_starts."""
    return min(start_of(project, program), Start.LIKELY)


def start(files: dict[str, str], *, value: str = "cfg.num_devices", given: str = "devices=count") -> Start:
    texts = {"train.py": SOURCE.format(value=value, given=given), **files}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    return at_most_likely(project, module)


@pytest.mark.parametrize(
    "value", ["cfg.num_devices", 'getattr(cfg, "num_devices", 1)', 'cfg["num_devices"]', 'cfg.get("num_devices", 4)']
)
def test_a_setting_that_is_one_everywhere(value: str) -> None:
    assert start(ONE, value=value) is Start.OPEN
    assert start({**ONE, "config/small.json": '{\n  "num_devices": [0]\n}\n'}, value=value) is Start.OPEN
    assert start({**ONE, "config/small.yaml": "num_devices: 4\n"}, value=value) is Start.LIKELY
    assert start({}, value=value) is Start.LIKELY


@pytest.mark.parametrize(
    "more",
    [
        {"README.md": "python train.py num_devices=4\n"},
        {"README.md": "python train.py general.gps=[0,1,2,3]\n"},
        {"README.md": "We trained with multiple GPUs.\n"},
        {"run.sh": "#SBATCH --gres=gpu:4\npython train.py\n"},
        {"options.py": 'parser.add_argument("--num-devices", type=int, default=1)  # num_devices\n'},
    ],
)
def test_a_setting_that_somebody_may_raise(more: dict[str, str]) -> None:
    assert start({**ONE, **more}) is Start.LIKELY


@pytest.mark.parametrize(
    ("default", "more", "expected"),
    [
        ("type=int, default=1", {}, Start.OPEN),
        ("default='1'", {"README.md": "python train.py --lr 0.1\n"}, Start.OPEN),
        ("type=int, default=1", {"README.md": "python train.py --devices 4\n"}, Start.LIKELY),
        ("type=int, default=1", {"README.md": "Multi-GPU training works.\n"}, Start.LIKELY),
        ("default='auto'", {}, Start.LIKELY),
        ("type=int, default=2", {}, Start.LIKELY),
        ("type=int", {}, Start.LIKELY),
    ],
)
def test_an_option_whose_default_is_one_device(default: str, more: dict[str, str], expected: Start) -> None:
    option = f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--devices', {default})\n"
    texts = {"train.py": option + SOURCE.format(value="cfg.devices", given="devices=count"), **more}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    assert at_most_likely(project, module) is expected


def test_a_setting_beside_several_nodes() -> None:
    assert start(ONE, given="devices=count, num_nodes=2") is Start.LIKELY
    assert start(ONE, given="devices=count, num_nodes=1") is Start.OPEN
    assert start(ONE, given="**options") is Start.LIKELY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("All runs fit on a single NVIDIA A100 GPU.\n", Start.OPEN),
        ("You need one GPU of 24 GB.\n", Start.OPEN),
        ("", Start.LIKELY),  # it takes what it finds
        ("It runs on a single GPU or on several GPUs.\n", Start.LIKELY),
        ("A single GPU is enough; with DDP it is faster.\n", Start.LIKELY),
    ],
)
def test_texts_that_name_one_gpu(text: str, expected: Start) -> None:
    assert start({"README.md": text}, given="max_epochs=3") is expected
    assert start({"README.md": text}, given="max_epochs=3, strategy='ddp'") is Start.LIKELY
    assert start({"README.md": text}, given="devices=4") is Start.LIKELY


@pytest.mark.parametrize(
    ("settings", "one"),
    [
        ("accelerator: cpu\ndevices: 2\nstrategy: ddp_spawn\n", True),
        ("accelerator: gpu\ndevices: 2\nstrategy: ddp_spawn\n", False),
        ("accelerator: cpu\ndevices: 2\nstrategy: ddp\n", False),
    ],
)
def test_ranks_on_the_cpu_to_try_them_out(settings: str, one: bool) -> None:
    files = {
        "train.py": "import lightning.pytorch as pl\n\n\ndef run(cfg):\n    instantiate(cfg.trainer).fit(net)\n",
        "conf/trainer/default.yaml": "_target_: lightning.pytorch.trainer.Trainer\naccelerator: cpu\ndevices: 1\n",
        "conf/trainer/ddp.yaml": "accelerator: gpu\nstrategy: ddp\ndevices: 1\n",
        "conf/trainer/tried.yaml": settings,
    }
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("train.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module) is one


@pytest.mark.parametrize(
    ("top", "value", "text", "expected"),
    [
        ("import settings as hp", "hp.num_devices", "num_devices = 1\n", Start.OPEN),
        ("from settings import num_devices", "num_devices", "num_devices: int = 1\n", Start.OPEN),
        ("from settings import Config", "Config.num_devices", "class Config:\n    num_devices = [0]\n", Start.OPEN),
        ("from settings import Config\nc = Config()", "c.num_devices", "class Config:\n    num_devices = 1\n", Start.OPEN),
        ("from settings import Config\nc = Config(4)", "c.num_devices", "class Config:\n    num_devices = 1\n", Start.LIKELY),
        ("import settings as hp", "hp.num_devices", "num_devices = 2\n", Start.LIKELY),
        ("import settings as hp", "hp.num_devices", "num_devices = count()\n", Start.LIKELY),
        ("import settings as hp", "hp.num_devices", "num_devices = 1\nnum_devices = 4\n", Start.LIKELY),
        ("import settings as hp\nhp.num_devices = 4", "hp.num_devices", "num_devices = 1\n", Start.LIKELY),
        ("import other as hp", "hp.num_devices", "num_devices = 1\n", Start.LIKELY),
    ],
)
def test_a_setting_in_python(top: str, value: str, text: str, expected: Start) -> None:
    source = SOURCE.format(value=value, given="devices=count").replace("import yaml", top)
    project = Project.of({"train.py": source.encode(), "settings.py": text.encode()})
    module = project.module("train.py")
    assert module is not None
    assert at_most_likely(project, module) is expected


PACKED = """\
import pytorch_lightning as pl
from argparse import ArgumentParser


def main():
    parser = ArgumentParser()
    parser = pl.Trainer.add_argparse_args(parser)
    trainer = pl.Trainer.from_argparse_args(parser.parse_args())
    trainer.fit(build())


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("command", "found"),
    [("python ex/fit/train.py --gpus 1 --lr 0.1", Start.OPEN),
     ("python ex/fit/train.py --gpus '0,' --lr 0.1\npython ex/fit/train.py --gpus=1,", Start.OPEN),
     ("python ex/fit/train.py --gpus 0,1", Start.LIKELY),
     ("python ex/fit/train.py --gpus 2", Start.LIKELY),
     ("python ex/fit/train.py --lr 0.1", Start.LIKELY),
     ("python ex/fit/train.py --gpus 1 --strategy ddp", Start.LIKELY),
     ("python ex/fit/train.py --gpus $N", Start.LIKELY),
     ("torchrun --nproc_per_node 2 ex/fit/train.py --gpus 1", Start.LIKELY),
     ("python ex/fit/train.py --gpus 1\npython ex/fit/train.py --devices 4", Start.LIKELY),
     ("python ex/other.py --gpus 1", Start.OPEN),  # all that the folder round it shows
     ("python ex/other.py --gpus 1\npython ex/third.py --gpus 4", Start.LIKELY),
     ("echo", Start.LIKELY)],
)  # fmt: skip
def test_options_of_lightning_that_each_command_sets_to_one(command: str, found: Start) -> None:
    files = {"ex/fit/train.py": PACKED, "ex/other.py": "", "ex/third.py": "", "ex/more/run.sh": command}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("ex/fit/train.py")
    assert module is not None
    assert at_most_likely(project, module) is found


HANDED = """\
import pytorch_lightning as pl
from settings import Own


def main():
    trainer = pl.Trainer(**Own.fit_options, max_epochs=3)
    trainer.fit(build())


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("settings", "more", "found"),
    [
        ("class Own:\n    fit_options = {'gpus': -1, 'accelerator': 'dp'}\n", "", Start.ONE),
        ("class Own:\n    fit_options = {'devices': [0], 'deterministic': True}\n", "", Start.ONE),
        ("class Own:\n    fit_options = {'gpus': -1}\n", "", Start.LIKELY),
        ("class Own:\n    fit_options = {'gpus': 1}\n\nclass More(Own):\n    fit_options = {'gpus': 4}\n", "", Start.LIKELY),
        ("class Own:\n    fit_options = {'devices': 1, **more()}\n", "", Start.LIKELY),
        ("class Own:\n    fit_options = read()\n", "", Start.LIKELY),
        ("class Own:\n    fit_options = {'devices': 1}\n", "Own.fit_options['devices'] = 4\n", Start.LIKELY),
        ("class Own:\n    fit_options = {'devices': 1}\n", "Own.fit_options.update(read())\n", Start.LIKELY),
        ("class Own:\n    fit_options = {'devices': 1}\n", "setattr(Own, 'fit_options', read())\n", Start.LIKELY),
        ("class Own:\n    fit_options = {'devices': 1}\n", "Own(fit_options=read())\n", Start.LIKELY),
    ],
)  # fmt: skip
def test_options_in_python_settings(settings: str, more: str, found: Start) -> None:
    project = Project.of({"train.py": HANDED.encode(), "settings.py": settings.encode(), "more.py": more.encode()})
    module = project.module("train.py")
    assert module is not None
    assert at_most_likely(project, module) is found


@pytest.mark.parametrize(
    ("given", "pin", "found"),
    [
        ("max_epochs=3", "pytorch-lightning==1.6.0", Start.ONE),  # the CPU
        ("max_epochs=3, weights_summary=None", "pytorch-lightning", Start.ONE),
        ("max_epochs=3", "pytorch-lightning", Start.LIKELY),
        ("max_epochs=3", "pytorch-lightning==2.1.0", Start.LIKELY),  # all devices that it finds
        ("weights_summary=None, gpus=4", "pytorch-lightning==1.6.0", Start.LIKELY),
        ("num_processes=4", "pytorch-lightning==1.6.0", Start.LIKELY),
    ],
)
def test_a_trainer_that_is_told_of_no_device(given: str, pin: str, found: Start) -> None:
    assert start({"requirements.txt": f"{pin}\n"}, given=given) is found


FIELD = """\
import lightning.pytorch as pl
from settings import FitConfig, Part


class Net(pl.LightningModule):
    def training_step(self, batch, i):
        loss = self.net(batch)
        return loss


def main(config):
    trainer = pl.Trainer(devices=config.fit.devices)
    trainer.fit(Net())


def look():
    trainer = pl.Trainer()
    trainer.predict(Net())


if __name__ == "__main__":
    main(FitConfig(devices=1))
    look()
"""
FIELDS = "class FitConfig:\n    devices: int\n\n\nSMALL = FitConfig(devices=1)\n"


@pytest.mark.parametrize(
    ("more", "one"),
    [
        ({"settings.py": FIELDS}, True),
        ({"settings.py": FIELDS, "more.py": "def small(config):\n    config.fit.devices = [0]\n"}, True),
        ({"settings.py": FIELDS, "more.py": "def large(config):\n    config.fit.devices = 4\n"}, False),
        ({"settings.py": FIELDS, "more.py": "LARGE = FitConfig(devices=count())\n"}, False),
        ({"settings.py": FIELDS, "more.py": "parser.add_argument('--devices', type=int)\n"}, False),
        ({"settings.py": FIELDS, "more.py": "def add(config):\n    config.fit.devices *= 2\n"}, False),
        ({"settings.py": FIELDS, "large.yaml": "devices: 4\n"}, False),
        ({"settings.py": FIELDS, "README.md": "With DDP it is faster.\n"}, False),
        ({"settings.py": "FitConfig = read()\n"}, False),  # what the class is, is not seen
        ({"settings.py": FIELDS, "more.py": "import lightning\n\ndef go(runner):\n    runner.fit(build())\n"}, True),
    ],
)
def test_a_field_of_settings_that_is_one_wherever_it_is_given(more: dict[str, str], one: bool) -> None:
    texts = {"train.py": FIELD, **more}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    main = next(f for f in module.functions if f.name == "main")
    assert trains_on_one_device(project, module, main) is one
    step = next(f for f in module.functions if f.name == "training_step")
    assert is_fitted_on_one_device(project, step.name) is (one and "runner" not in texts.get("more.py", ""))
    assert not is_fitted_on_one_device(project, "predict_step")


CLI = "from lightning.pytorch.cli import LightningCLI\n\nif __name__ == '__main__':\n    LightningCLI(Net)\n"


@pytest.mark.parametrize(
    ("files", "one"),
    [
        ({"a.yaml": "trainer:\n  devices: 1\n", "b.yaml": "trainer:\n  devices:\n  - 3\n"}, True),
        ({"a.yaml": "trainer:\n  devices: 1\n", "b.yaml": "trainer:\n  devices:\n  - 2\n  - 3\n"}, False),
        ({"a.yaml": "trainer:\n  devices: [2]\n", "README.md": "python train.py fit -c a.yaml --trainer.devices 4\n"}, False),
        ({"a.yaml": "trainer:\n  devices: [2]\n", "README.md": "Multi-GPU training works.\n"}, False),
        ({"a.yaml": "trainer:\n  devices: [2]\n", "more.py": "set_defaults({'trainer.devices': 4})\n"}, False),
        ({"a.yaml": "trainer:\n  max_epochs: 3\n"}, False),
        ({}, False),
    ],
)
def test_settings_of_the_command_line_of_lightning(files: dict[str, str], one: bool) -> None:
    texts = {"train.py": CLI, "net.py": "import lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n    pass\n", **files}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("net.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module) is one
