"""What a command comes to by names in its settings, and in which of Lightning's stages."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

IMPORTS = "import importlib\nimport torch.distributed as dist\nimport argparse\n\ndist.init_process_group('gloo')\n"
IMPORTS += "parser = argparse.ArgumentParser()\nparser.add_argument('--config', default='conf/a.yaml')\n"
IMPORTS += "kind = importlib.import_module(read(parser.parse_args().config))\n"
PART = "class Part:\n    print('NEW')\n"


def shown(files: dict[str, str]) -> tuple[Launch, ...]:
    old = {path: text.replace("NEW", "OLD").encode() for path, text in files.items()}
    found = launches(old, old.get, {path: text.encode() for path, text in files.items() if "NEW" in text})
    return tuple(launch for launch in found if launch.command)


@pytest.mark.parametrize("given", ["", " --config conf/a.yaml", " --config=conf/a.yaml", " --config ./conf/a.yaml"])
@pytest.mark.parametrize("name", ["parts.face::Part", "parts.face.Part", '"parts.face"'])
def test_a_class_that_the_settings_name(given: str, name: str) -> None:
    files = {"main.py": IMPORTS, "run.sh": f"torchrun main.py{given}\n", "parts/face.py": PART}
    assert [f.line for f in shown({**files, "conf/a.yaml": f"trainer:\n  type: {name}\n"})] == [1]


def test_other_settings_and_a_program_that_imports_by_no_name() -> None:
    files = {"main.py": IMPORTS, "run.sh": "torchrun main.py --config conf/b.yaml\n", "parts/face.py": PART}
    files |= {"conf/a.yaml": "x: 1\n", "conf/b.yaml": "x: 1\n", "conf/c.yaml": "type: parts.face.Part\n"}
    assert shown(files) == ()
    plain = IMPORTS.replace("importlib.import_module(", "str(")
    assert shown({**files, "main.py": plain, "conf/b.yaml": "type: parts.face.Part\n"}) == ()


MODEL = "from lightning import LightningModule\n\n\nclass Model(LightningModule):\n"
MODEL += "    def {}(self, *args):\n        print('NEW')\n"
CLI = "from lightning.pytorch.cli import LightningCLI\nfrom model import Model\nLightningCLI(Model)\n"


@pytest.mark.parametrize(
    ("method", "stage"),
    [
        ("on_test_epoch_end", "test"),
        ("test_step", "test"),
        ("predict_step", "predict"),
        ("validation_step", "fit"),
        ("training_step", "fit"),
        ("configure_optimizers", "fit"),
    ],
)
def test_the_sub_command_of_lightning_that_runs_a_hook(method: str, stage: str) -> None:
    files = {"model.py": MODEL.format(method), "main.py": CLI, "a.yaml": "", "run.sh": "python main.py fit --config a.yaml\n"}
    (found,) = shown(files)
    assert found.command.startswith(f"python main.py {stage} --config a.yaml")
    assert (f"{stage} in place of fit" in found.short) == (stage != "fit")


TRAINS = "import argparse\nfrom lightning import Trainer\nfrom model import Model\nparser = argparse.ArgumentParser()\n"
TRAINS += "parser.add_argument('--final', action='store_true')\nargs = parser.parse_args()\ntrainer = Trainer(devices=2)\n"
TRAINS += "trainer.fit(Model())\n"


def test_a_method_of_the_trainer_that_runs_a_hook() -> None:
    files = {"model.py": MODEL.format("on_test_epoch_end"), "run.sh": "python train.py\npython train.py --final\n"}
    late = TRAINS + "if args.final:\n    trainer.test(Model())\n"
    assert [f.line for f in shown({**files, "train.py": late})] == [2]
    assert [f.line for f in shown({**files, "train.py": TRAINS + "trainer.test(Model())\n"})] == [1]
    assert shown({**files, "train.py": TRAINS}) == ()
    other = MODEL.format("on_test_epoch_end").replace("from lightning import", "from mine import")
    assert shown({**files, "model.py": other, "train.py": TRAINS}) == ()  # not Lightning's: what calls it is not seen


def test_validation_without_data() -> None:
    data = "class Data:\n    def val_dataloader(self):\n        {}\n"
    files = {"model.py": MODEL.format("validation_step"), "run.sh": "python train.py\n", "train.py": "import data\n" + TRAINS}
    assert shown({**files, "data.py": data.format("pass")}) == ()
    assert len(shown({**files, "data.py": data.format("return [1]")})) == 1
    handed = files["train.py"].replace("fit(Model())", "fit(Model(), val_dataloaders=[1])")
    assert len(shown({**files, "data.py": data.format("pass"), "train.py": handed})) == 1


def test_a_hook_of_a_class_that_is_made_under_an_option() -> None:
    files = {"model.py": MODEL.format("training_step"), "run.sh": "python train.py\n"}
    made = TRAINS.replace("trainer.fit(Model())", "net = Model() if args.final else None\ntrainer.fit(net)")
    (found,) = shown({**files, "train.py": made})
    assert found.command == "python train.py --final"


def test_a_hook_by_a_base_class_in_another_file() -> None:
    base = "from lightning import LightningModule\n\n\nclass Base(LightningModule):\n    pass\n"
    model = MODEL.format("training_step").replace("from lightning import LightningModule", "from base import Base")
    model = model.replace("Model(LightningModule)", "Model(Base)")
    assert len(shown({"base.py": base, "model.py": model, "train.py": TRAINS, "run.sh": "python train.py\n"})) == 1
