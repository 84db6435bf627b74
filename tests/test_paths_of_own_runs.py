"""Paths that hold the name of a tracker's run, which each process starts for itself."""

from __future__ import annotations

import pytest

from codemods.analysis.files.own_paths import is_own_path
from codemods.store.project import Project

SOURCE = """\
import torch
import wandb


def save(model, folder):
    torch.save(model, folder + "/model.pt")


def main(model, args):
    wandb.init({init})
    name = {name}
    save(model, f"runs/{{name}}")
"""


def own(init: str, name: str, **more: str) -> bool:
    texts = {"run.py": SOURCE.format(init=init, name=name), **{f"{n}.py": text for n, text in more.items()}}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("run.py")
    assert module is not None
    (call,) = [c for c in module.calls_named("save") if c.args[1:] and "torch" in module.text_of(c)]
    return is_own_path(project, module, call.args[1])


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("project='a'", "wandb.run.name"),
        ("project='a', config=args", "str(wandb.run.id)"),
        ("name=args.name", "wandb.run.id"),
        ("name=args.name, id=args.id", "wandb.run.dir"),
    ],
)
def test_a_name_that_each_process_draws(init: str, name: str) -> None:
    assert own(init, name)


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("name=args.name", "wandb.run.name"),
        ("id=args.id", "wandb.run.id"),
        ("**args.tracker", "wandb.run.name"),
        ("project='a'", "wandb.run.project"),
        ("project='a'", "args.name"),
    ],
)
def test_a_name_that_all_of_them_have(init: str, name: str) -> None:
    assert not own(init, name)


def test_a_name_from_the_environment() -> None:
    assert not own("project='a'", "wandb.run.name", env="import os\nos.environ['WANDB_NAME'] = 'a'\n")
