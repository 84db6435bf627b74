"""What the program gave a field of its settings right above a place."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.ranks.one_device import trains_on_one_device
from codemods.analysis.ranks.set_above import set_above
from codemods.store.project import Project


def value_of(body: str) -> str | None:
    source = f"def main(args, other):\n{textwrap.indent(body, '    ')}\n    return args.gpus\n"
    module = Project.of({"m.py": source.encode()}).module("m.py")
    assert module is not None
    (returned,) = module.nodes(ast.Return)
    assert returned.value is not None
    found = set_above(module, returned.value)
    return None if found is None else module.text_of(found)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("args.gpus = 1", "1"),
        ("args.gpus, args.amp = 1, False", "1"),
        ("args.gpus = 4\nargs.gpus = 1\nother.gpus = 2", "1"),
        ("args.gpus = args.lr = n()", "n()"),
    ],
)
def test_the_last_value_on_each_way(body: str, value: str) -> None:
    assert value_of(body) == value


@pytest.mark.parametrize(
    "body",
    [
        "other.gpus = 1",
        "if other:\n    args.gpus = 1",
        "args.gpus = 1\nif other:\n    args.gpus = 2",
        "args.gpus = 1\nargs.gpus += 1",
        "args.gpus = 1\nargs = parse()",
        "args.gpus = 1\nread_file(args)",
        "args.gpus = 1\nsetattr(args, 'gpus', 2)",
        "args.gpus, args.amp = pair()",
        "def inner():\n    args.gpus = 1",
    ],
)
def test_unknown_where_another_value_may_come_in_between(body: str) -> None:
    assert value_of(body) is None


@pytest.mark.parametrize(
    ("given", "one"),
    [
        ("options.cards = 1", True),
        ("options.cards, options.half = 1, False", True),
        ("options.cards = [3]", True),
        ("options.cards = 2", False),
        ("options.half = True", False),
        ("if options.small:\n        options.cards = 1", False),
    ],
)
def test_a_trainer_of_one_device_whatever_the_command_line_says(given: str, one: bool) -> None:
    source = (
        "import pytorch_lightning as pl\nfrom settings import parse\n\n\ndef main(model):\n    options = parse()\n"
        f"    {given}\n    trainer = pl.Trainer(gpus=options.cards, distributed_backend='ddp' if options.cards > 1 else None)\n"
        "    trainer.fit(model)\n"
    )
    project = Project.of({"run.py": source.encode()})
    module = project.module("run.py")
    assert module is not None
    assert trains_on_one_device(project, module, module.functions[0]) is one
