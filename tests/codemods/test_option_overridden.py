"""DDP805: keywords beside `Trainer.from_argparse_args(args)` that go before what the repository's commands give."""

from __future__ import annotations

import pytest

from codemods.store.project import Project
from codemods.upgrades.option_overridden import OptionOverridden
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = OptionOverridden
HEAD = (
    "from argparse import ArgumentParser\n\nimport pytorch_lightning as pl\n"
    "from pytorch_lightning.strategies import DDPStrategy\n\n"
    "args = pl.Trainer.add_argparse_args(ArgumentParser()).parse_args()\n"
)
RUN = {"run.sh": "python module.py --max_epochs 100 --gpus=4\n"}


def script(given: str) -> str:
    return f"{HEAD}trainer = pl.Trainer.from_argparse_args(args, {given})\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, files=RUN, unsafe=True)


@pytest.mark.parametrize(
    "files",
    [
        RUN,
        {"job.yaml": "command: >-\n  python module.py\n  --max_epochs 100\n  --gpus 4\n"},
        {"README.md": "```bash\npython module.py --gpus 4 --max_epochs=100\n```\n"},
        {"Makefile": "train:\n\tpython module.py --max_epochs 100 --gpus 4\n"},
        {"main.py": "import module\n", "run.sh": "torchrun main.py --gpus 4 --max_epochs 100\n"},
    ],
)
def test_every_command_gives_the_option(files: dict[str, str]) -> None:
    (found,) = check_transformed(RULE, script("max_epochs=32, logger=False"), script("logger=False"), files=files, unsafe=True)
    if files is RUN:
        assert "`--max_epochs 100` in run.sh:1 does nothing" in found.message
    check_transformed(RULE, script("gpus=8, logger=False"), script("logger=False"), files=files, unsafe=True)


def test_another_command_leaves_it_out() -> None:
    check_told(RULE, script("max_epochs=32"), reason="set_defaults(max_epochs=32)", files={**RUN, "b.sh": "python module.py\n"})


def test_an_object_that_no_option_gives() -> None:
    files = {"run.sh": "python module.py --strategy ddp_spawn\n"}
    check_told(RULE, script("strategy=DDPStrategy(find_unused_parameters=False)"), reason="an option cannot give", files=files)


@pytest.mark.parametrize(
    "source",
    [
        script("max_epochs=100"),
        script("precision=16"),
        script("max_epochs=args.max_epochs or 10"),
        script("max_epochs=epochs"),
        script("callbacks=[], **more"),
        script("max_epochs=32").replace("pl.Trainer.from_", "Mine.from_"),
        script("max_epochs=32").replace("pl.Trainer.from_", "DataModule.from_"),
    ],
)
def test_nothing_is_said(source: str) -> None:
    check_nothing(RULE, source, files=RUN)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"run.sh": "python other.py --max_epochs 100\n", "other.py": ""},
        {"run.sh": "python module.py --max_epochs $EPOCHS\n"},
        {"run.sh": "# python module.py --max_epochs 100\n"},
        {"tests/run.sh": "python module.py --max_epochs 100\n"},
        {**RUN, "requirements.txt": "pytorch-lightning>=2.0\n"},
    ],
)
def test_nothing_is_said_of_commands(files: dict[str, str]) -> None:
    check_nothing(RULE, script("max_epochs=32"), files=files)


def test_code_that_is_brought_to_lightning_2() -> None:
    sources = {"module.py": script("max_epochs=32").encode(), "run.sh": RUN["run.sh"].encode()}
    for target, count in (("", 1), ("1.9", 1), ("2", 0)):
        project = Project.of(sources, targets={"lightning": target} if target else {})
        module = project.module("module.py")
        assert module is not None
        assert len(list(RULE().find(module, project))) == count
