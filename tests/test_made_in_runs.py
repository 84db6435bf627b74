"""Classes that the runs of a project, as its settings show them, make on one device alone."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.job_files.hydra_programs import hydra_program
from codemods.analysis.job_files.hydra_runs import hydra_runs
from codemods.analysis.ranks.made_in_runs import is_made_by_runs_of_one
from codemods.store.project import Project

NETS = """\
import lightning as L


class Small(L.LightningModule):
    def training_step(self, batch, step):
        print("small")


class Large(L.LightningModule):
    def training_step(self, batch, step):
        print("large")


class Plain:
    def run(self):
        print("plain")
"""
BUILD = """\
from nets import Large, Plain, Small


def build(part):
    if part.net.name == "small":
        return Small()
    elif part.net.name == "large":
        return Large()
    Plain().run()
"""
TRAIN = """\
import hydra
import lightning as L
import rootutils
from build import build

root = rootutils.setup_root(__file__, indicator=".git")
PARAMS = {"version_base": None, "config_path": str(root / "conf"), "config_name": "fit.yaml"}


@hydra.main(**PARAMS)
def main(cfg):
    trainer = L.Trainer(**cfg.trainer, callbacks=[])
    trainer.fit(build(cfg.module))


if __name__ == "__main__":
    main()
"""
FILES = {
    "nets/__init__.py": "from .plain.nets import Large, Plain, Small\n",
    "nets/plain/__init__.py": "",
    "nets/plain/nets.py": NETS,
    "build.py": BUILD,
    "train.py": TRAIN,
    "conf/fit.yaml": "defaults:\n  - module/net: small\n  - trainer: one\n  - experiment: null\n",
    "conf/module/net/small.yaml": "name: small\n",
    "conf/module/net/wide/large.yaml": "name: large\n",
    "conf/trainer/one.yaml": "devices: 1\n",
    "conf/trainer/four.yaml": "devices: 4\n",
    "conf/experiment/paper/wide.yaml": "# @package _global_\ndefaults:\n  - override /module/net: large\n"
    "  - override /trainer: four\n",
    "run.sh": "python train.py experiment=wide.yaml\n",
}


def left_out(text: str, files: dict[str, str] = FILES) -> bool:
    project = Project.of({path: source.encode() for path, source in files.items()})
    module = project.module("nets/plain/nets.py")
    assert module is not None
    at = next(n for n in module.nodes(ast.Expr) if text in module.text_of(n))
    return is_made_by_runs_of_one(project, module, at)


def test_a_class_that_runs_of_one_device_choose() -> None:
    assert left_out("small")
    assert not left_out("large")  # the experiment gives four devices
    assert not left_out("plain")  # no class of Lightning: anybody may call it


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("conf/trainer/one.yaml", "devices: 1", "devices: -1"),
        ("conf/trainer/one.yaml", "devices: 1", "devices: 1\nnum_nodes: 2"),
        ("conf/trainer/one.yaml", "devices: 1", "max_epochs: 3"),  # all GPUs there are
        ("conf/experiment/paper/wide.yaml", "  - override /module/net: large\n", ""),
        ("run.sh", "wide.yaml", "wide.yaml module.net.name=small"),
        ("run.sh", "wide.yaml", "wide.yaml module.net.name=$NET"),
        ("run.sh", "wide.yaml", "wide.yaml\ntorchrun --nproc_per_node 4 train.py"),
        ("run.sh", "experiment=wide.yaml", "$ANY"),
        ("build.py", "elif", 'Small()\n    if'),
        ("build.py", "part):", "part):\n    part = other(part)"),  # which settings it holds is not known
        ("build.py", "from nets", "import nets\nother = getattr(nets, name)\nfrom nets"),
        ("train.py", "build(cfg.module)", "build(read(cfg))"),
        ("train.py", "**cfg.trainer", "**read(cfg)"),
        ("train.py", "**cfg.trainer", "**cfg.trainer, devices=4"),
        ("train.py", 'str(root / "conf")', "find()"),
        ("conf/module/net/small.yaml", "name", "_target_: nets.Small\nname"),
    ],
)
def test_what_may_make_it_on_several(path: str, old: str, new: str) -> None:
    assert old in FILES[path]
    assert not left_out("small", {**FILES, path: FILES[path].replace(old, new)})


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("build.py", "from nets", "import nets\nlevel = getattr(logger, name)\nfrom nets"),  # of no module
        ("run.sh", "wide.yaml", "$ANY"),  # of all there are, the one of four devices has another class
        ("run.sh", "wide.yaml", "wide.yaml trainer.devices=8"),
        ("conf/fit.yaml", "trainer: one", "trainer: one\n  - other: ${oc.env:OTHER}"),
        ("train.py", 'rootutils.setup_root(__file__, indicator=".git")', "rootutils.find_root(__file__)"),
    ],
)
def test_what_says_nothing_of_it(path: str, old: str, new: str) -> None:
    assert old in FILES[path]
    assert left_out("small", {**FILES, path: FILES[path].replace(old, new)})


def test_a_class_of_runs_that_nobody_shows() -> None:
    files = {**FILES, "build.py": BUILD.replace('"small"', '"tiny"')}
    assert not left_out("small", files)  # two runs say little of an option
    many = {f"conf/experiment/{n}.yaml": "# @package _global_\nseed: 1\n" for n in range(8)}
    assert left_out("small", {**files, **many})


def devices(files: dict[str, str]) -> list[str | None]:
    project = Project.of({path: source.encode() for path, source in {**FILES, **files}.items()})
    program = hydra_program(project, "train.py")
    assert program is not None
    return [run.value(("trainer", "devices")) for run in hydra_runs(project, program)]


def test_experiments_in_a_folder_that_was_moved() -> None:
    assert devices({}) == ["1", "4", "4"]
    other = {"conf/experiment/narrow.yaml": "# @package _global_\nseed: 1\n"}
    assert devices(other) == ["1", "1", "4", "4"]  # the command means the other one
    assert devices({**other, "run.sh": "python train.py experiment=yours\n"}) == ["1", "1", "4", "1", "4"]  # any of them
    assert devices({**other, "run.sh": "python train.py experiment=old/wi${A[$I]}\n"}) == ["1", "1", "4", "4"]
    assert devices({**other, "run.sh": "C=experiment=na${A[$I]}\npython train.py ${C} seed=$S\n"}) == ["1", "1", "4", "1"]
    assert devices({**other, "run.sh": "python train.py ${C} seed=$S\n"}) == []  # it may say anything


def test_a_file_that_is_no_yaml_ends_its_run() -> None:
    broken = FILES["conf/experiment/paper/wide.yaml"] + "<<<<<<< ours\nseed: 1\n=======\n"
    assert devices({"conf/experiment/paper/wide.yaml": broken, "run.sh": ""}) == ["1"]
    template = {"conf/experiment/paper/wide.yaml": "# @package _global_\n{{ made }}\nseed: 1\n", "run.sh": ""}
    assert devices(template) == ["1", "?"]  # somebody fills it in
