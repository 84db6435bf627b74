"""Hooks of tests and predictions that programs come to on one device alone, or in no run that the project shows."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.asked_loops import is_in_loop_of_one
from codemods.engine.find import find_in
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project

NET = """\
from lightning import LightningModule


class Net(LightningModule):
    def training_step(self, batch, step):
        print("a step")
        return self(batch).mean()

    def validation_step(self, batch, step):
        print("a look")
        self.seen = batch

    def test_step(self, batch, step):
        self.told(batch)

    def on_test_epoch_end(self):
        print("tested")

    def told(self, batch):
        print("told")


class OtherNet(Net):
    pass
"""
FIT = """\
import lightning as pl
from net import Net


def main():
    trainer = pl.Trainer(devices=4, strategy="ddp")
    trainer.fit(Net())
    MORE


if __name__ == "__main__":
    main()
"""
TEST = FIT.replace("devices=4, strategy='ddp'", "devices=[1]").replace('devices=4, strategy="ddp"', "devices=[1]").replace(
    "fit(Net())", "test(Net())"
)  # fmt: skip
RUNS = "import lightning\nfrom net import Net\n\ndef run(runner):\n    runner.test(Net())\n"
HYDRA = """\
import hydra
from hydra.utils import instantiate


@hydra.main(version_base="1.3", config_path="conf", config_name="NAME")
def main(cfg):
    trainer, model = instantiate(cfg.trainer), instantiate(cfg.model)
    BODY


if __name__ == "__main__":
    main()
"""
FITS = "if cfg.get('train'):\n        trainer.fit(model)\n    if cfg.get('test'):\n        trainer.test(model)"
CONF = {
    "conf/train.yaml": "defaults:\n  - _self_\n  - model: net\n  - trainer: gpu\n  - experiment: null\n"
    "train: True\ntest: False\n",
    "conf/eval.yaml": "defaults:\n  - _self_\n  - model: net\n  - trainer: gpu.yaml\n",
    "conf/model/net.yaml": "_target_: net.Net\n",
    "conf/trainer/gpu.yaml": "defaults:\n  - default\naccelerator: gpu\ndevices: 1\n",
    "conf/trainer/ddp.yaml": "defaults:\n  - default\naccelerator: gpu\ndevices: 4\nstrategy: ddp\n",
    "conf/trainer/default.yaml": "_target_: lightning.pytorch.Trainer\naccelerator: cpu\n",
    "conf/experiment/long.yaml": "# @package _global_\ntrainer:\n  max_epochs: 900\n",
    "train.py": HYDRA.replace("NAME", "train.yaml").replace("BODY", FITS),
    "eval.py": HYDRA.replace("NAME", "eval").replace("BODY", "trainer.test(model)"),
    "README.md": "```\npython train.py trainer=ddp trainer.devices=2 experiment=long\npython eval.py\n```\n",
}


def left_out(files: dict[str, str], text: str = 'print("tested")', *, net: str = NET) -> bool:
    project = Project.of({path: source.encode() for path, source in {"net.py": net, **files}.items()})
    module = project.module("net.py")
    assert module is not None
    at = net[: net.index(text)].count("\n") + 1
    statement = next(n for n in module.nodes(ast.Expr) if n.lineno == at)
    return is_in_loop_of_one(project, module, statement)


def test_another_program_tests_on_one_device() -> None:
    files = {"train.py": FIT.replace("MORE", "pass"), "evaluate.py": TEST.replace("MORE", "pass")}
    assert left_out(files)
    assert left_out(files, 'print("told")')  # only the hook of the test calls it
    assert not left_out(files, 'print("a step")')
    assert not left_out(files, 'print("a look")')


def test_nothing_tests() -> None:
    assert not left_out({"train.py": FIT.replace("MORE", "pass")})  # another question: unrun_hooks.py


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": FIT.replace("MORE", "trainer.test(Net())")},
        {"train.py": FIT.replace("MORE", "pass"), "evaluate.py": TEST.replace("devices=[1]", "devices=[0, 1]")},
        {"train.py": FIT.replace("MORE", "pass"), "evaluate.py": TEST, "runs.py": RUNS},
        {"train.py": FIT.replace("MORE", "getattr(trainer, mode)(Net())")},
        {"train.py": FIT.replace("MORE", "run(trainer)").replace("import Net", "import Net\nfrom runs import run"),
         "evaluate.py": TEST, "runs.py": RUNS},
    ],
)  # fmt: skip
def test_a_test_on_several_devices(files: dict[str, str]) -> None:
    assert not left_out(files)


def test_what_other_hooks_call_too() -> None:
    net = NET.replace('print("a look")', "self.told(batch)")
    assert not left_out({"evaluate.py": TEST, "train.py": FIT.replace("MORE", "pass")}, 'print("told")', net=net)
    net = NET.replace('print("a look")', "self.test_step(batch, step)")
    assert not left_out({"evaluate.py": TEST, "train.py": FIT.replace("MORE", "pass")}, 'print("told")', net=net)


def test_a_program_that_has_another_class_of_the_file() -> None:
    other = (
        FIT.replace("MORE", "trainer.test(OtherNet())").replace("Net()", "OtherNet()").replace("import Net", "import OtherNet")
    )
    apart = NET.replace("class OtherNet(Net):", "class OtherNet(LightningModule):")
    files = {"evaluate.py": TEST, "train.py": FIT.replace("MORE", "pass"), "other.py": other.replace("OtherOther", "Other")}
    assert left_out(files, net=apart)
    assert not left_out(files)  # an heir has the same hooks
    assert not left_out({**files, "other.py": other + "\nchosen = getattr(nets, name)\n"}, net=apart)


# Settings of Hydra


def test_settings_that_test_nothing() -> None:
    assert left_out(CONF)
    assert not left_out(CONF, 'print("a step")')


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("conf/train.yaml", "test: False", "test: True"),
        ("conf/train.yaml", "test: False", "test: ${run_tests}"),
        ("conf/experiment/long.yaml", "trainer:", "test: True\ntrainer:"),
        ("README.md", "experiment=long", "test=True"),
        ("README.md", "python eval.py", "python eval.py trainer=ddp"),
        ("README.md", "python eval.py", "python eval.py trainer.devices=2"),
        ("README.md", "python eval.py", "python eval.py trainer=$TRAINER"),
        ("README.md", "python eval.py", "python eval.py general.gps=[0,1]"),  # misspelt, and meant so
        ("README.md", "python eval.py", 'python eval.py "$@"'),
        ("README.md", "python eval.py", "torchrun --nproc_per_node 2 eval.py"),
        ("conf/eval.yaml", "gpu.yaml", "ddp.yaml"),
        ("conf/eval.yaml", "  - model", "  - override /trainer: ddp\n  - model"),
        ("conf/trainer/gpu.yaml", "devices: 1", "devices: -1"),
        ("conf/trainer/gpu.yaml", "devices: 1", "devices: ${gpus}"),
        ("conf/trainer/gpu.yaml", "devices: 1", "precision: 16"),  # all GPUs there are
        ("conf/trainer/gpu.yaml", "devices: 1", "devices: 1\nnum_nodes: 2"),
        ("conf/trainer/gpu.yaml", "devices: 1", "devices: [0, 1]"),
        ("conf/trainer/default.yaml", "_target_", "{{ cookie }}\n_target_"),
        ("eval.py", 'config_name="eval"', "config_name=NAME"),
    ],
)
def test_settings_that_may_test_on_several(path: str, old: str, new: str) -> None:
    assert old in CONF[path]
    assert not left_out({**CONF, path: CONF[path].replace(old, new)})


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("README.md", "python eval.py", "python eval.py trainer=ddp trainer.devices=1"),
        ("README.md", "experiment=long", "experiment=yours"),  # any of those that are there
        ("conf/trainer/gpu.yaml", "devices: 1", "devices: [3]"),
        ("conf/trainer/gpu.yaml", "accelerator: gpu\ndevices: 1", "accelerator: cpu"),
        ("train.py", "if cfg.get('test'):", "if not cfg.test:\n        return\n    if True:"),
        ("train.py", "if cfg.get('test'):", "if cfg['test'] and cfg.train:"),
        ("train.py", "if cfg.get('test'):", "if cfg.get('other_mode') == 'test':"),
    ],
)
def test_other_ways_to_test_on_one(path: str, old: str, new: str) -> None:
    assert old in CONF[path]
    assert left_out({**CONF, path: CONF[path].replace(old, new)})


def test_an_experiment_of_another_program() -> None:
    spread = {"conf/experiment/wide.yaml": "# @package _global_\ndefaults:\n  - override /trainer: ddp\n"}
    spread["conf/eval.yaml"] = CONF["conf/eval.yaml"] + "  - experiment: null\n"
    assert not left_out({**CONF, **spread})
    given = CONF["README.md"].replace("python eval.py", "python eval.py +experiment=wide")
    assert not left_out({**CONF, "conf/experiment/wide.yaml": spread["conf/experiment/wide.yaml"], "README.md": given})
    named = CONF["README.md"].replace("experiment=long", "experiment=wide")
    assert left_out({**CONF, **spread, "README.md": named})


def test_validation_that_is_put_off() -> None:
    off = CONF["conf/trainer/default.yaml"] + "num_sanity_val_steps: 0\nval_check_interval: 100000000\n"
    look = 'print("a look")'
    assert left_out({**CONF, "conf/trainer/default.yaml": off}, look)
    assert left_out({**CONF, "conf/trainer/default.yaml": off.split("num_")[0] + "limit_val_batches: 0\n"}, look)
    assert not left_out(CONF, look)
    assert not left_out({**CONF, "conf/trainer/default.yaml": off.replace("100000000", "1000")}, look)
    assert not left_out({**CONF, "conf/trainer/default.yaml": off.replace("steps: 0", "steps: 2")}, look)
    readme = CONF["README.md"].replace("experiment=long", "trainer.val_check_interval=500")
    assert not left_out({**CONF, "conf/trainer/default.yaml": off, "README.md": readme}, look)


@pytest.mark.parametrize(
    ("limit", "out"), [("0", True), ("0.0", True), ("False", False), ("1", False), ("args.share", False)],
)
def test_a_trainer_that_is_told_to_leave_validation_out(limit: str, out: bool) -> None:
    look = 'print("a look")'
    fit = FIT.replace("MORE", "pass").replace("devices=4", f"devices=4, limit_val_batches={limit}")
    assert left_out({"train.py": fit}, look) is out
    assert not left_out({"train.py": fit, "again.py": FIT}, look)
    asked = FIT.replace("MORE", "pass").replace(".fit(", ".validate(")
    assert not left_out({"train.py": fit, "look.py": asked}, look)
    # what the step of a test calls, too, is asked of both loops
    told = NET.replace('print("a look")', "self.told(batch)")
    assert left_out({"train.py": fit, "evaluate.py": TEST}, 'print("told")', net=told) is out


def test_a_program_of_the_name_of_a_test() -> None:
    program = TEST.replace("import lightning", "import argparse\nimport lightning").replace("pl.Trainer", "Trainer")
    program = program.replace("import argparse", "import argparse\nfrom lightning import Trainer")
    assert left_out({"train.py": FIT.replace("MORE", "pass"), "test_net.py": program})
    assert not left_out({"train.py": FIT.replace("MORE", "pass"), "test_net.py": program.replace("argparse", "pytest")})


# Commands

OPTIONS = """\
import argparse
from pytorch_lightning import Trainer
from net import Net


def main(args):
    trainer = Trainer(gpus=args.gpus, accelerator="ddp" if args.gpus > 1 else None)
    if args.action == "train":
        trainer.fit(Net())
    else:
        trainer.test(Net())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--action", default="train")
    main(parser.parse_args())
"""
JOBS = "python main.py --gpus 4 --lr 0.1\npython main.py --gpus 1 --action test\n"


def test_commands_that_test_on_one_device() -> None:
    assert left_out({"main.py": OPTIONS, "run.sh": JOBS})
    packed = OPTIONS.replace("Trainer(gpus=args.gpus, accelerator=", "Trainer.from_argparse_args(args, accelerator=")
    assert left_out({"main.py": packed, "run.sh": JOBS})
    assert left_out({"main.py": OPTIONS.replace("default=8", "default=1"), "run.sh": JOBS.replace("--gpus 1 ", "")})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--gpus 1", "--gpus 2"), ("--gpus 1 ", ""), ("--gpus 1", "--gpus $N"), ("--action test", "--action test $EXTRA_ARGS"),
        ("--gpus 4", "--gpus 4 --action test"), ("--gpus 4", "--gpus 4 --action $1"),
        ("python main.py --gpus 1", "torchrun --nproc_per_node 2 main.py --gpus 1"),
        ("--gpus 1", "--gpus 1 --accelerator ddp"),  # who writes that means several
    ],
)  # fmt: skip
def test_commands_that_may_test_on_several(old: str, new: str) -> None:
    assert not left_out({"main.py": OPTIONS, "run.sh": JOBS.replace(old, new)})


def test_options_that_something_else_fills() -> None:
    read = OPTIONS.replace("main(parser", 'parser.set_defaults(**load("a.yaml"))\n    main(parser')
    stored = OPTIONS.replace("    trainer =", '    args.action = "test"\n    trainer =')
    assert not left_out({"main.py": read, "run.sh": JOBS})
    assert not left_out({"main.py": stored, "run.sh": JOBS})
    assert not left_out({"main.py": OPTIONS, "run.sh": ""})


def test_a_program_that_none_of_many_commands_starts() -> None:
    many = "".join(f"python main.py --gpus 4 --lr 0.{i}\n" for i in range(9)) + JOBS
    assert left_out({"main.py": OPTIONS, "sketch.py": OPTIONS, "run.sh": many})
    assert not left_out({"main.py": OPTIONS, "sketch.py": OPTIONS, "run.sh": JOBS})


def test_what_is_left_out_is_counted() -> None:
    project = Project.of({p: s.encode() for p, s in {"net.py": NET, **CONF}.items()})
    module = project.module("net.py")
    assert module is not None
    found = [module.text_at(f.span) for f in find_in(module, project, [UnguardedPrint()])]
    assert not any("tested" in text for text in found)
    assert project.left_out["net.py"] == 1
