"""A property or a field of an object is a test for rank 0 as its class says, in whatever file that class stands."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_attributes import rank_attributes
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_tests import split_of
from codemods.store.project import Project

CONTEXT = """
import torch.distributed as dist

class Context:
    def __init__(self, folder):
        self.saves = dist.get_rank() == 0
        self.folder = folder if dist.get_rank() == 0 else None

    @property
    def active(self):
        return self.folder is not None

    @property
    def logs(self):
        "whether it logs"
        return dist.get_rank() == 0

class Plain:
    def __init__(self, folder):
        self.folder = folder
        self.saves = True

    @property
    def active(self):
        return self.folder is not None
"""
READ = "def main(folder):\n    ctx = Context(folder)\n    if ctx.{}:\n        pass\n"


def ranks_of(train: str, **others: str) -> Ranks | None:
    """For which ranks the first test of `train.py` is true."""
    texts = {"context.py": CONTEXT, **{f"{name}.py": text for name, text in others.items()}, "train.py": train}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    found = split_of(module, module.nodes(ast.If)[0].test, project)
    return found.true if found is not None else None


def test_names_are_told_from_the_bytes() -> None:
    assert rank_attributes(Project.of({"context.py": CONTEXT.encode()})) == {"active", "logs", "saves"}


@pytest.mark.parametrize("name", ["active", "logs", "saves"])
@pytest.mark.parametrize(
    "train",
    [
        "from context import Context\n" + READ,
        "import context\n" + READ.replace("Context(", "context.Context("),
        "from context import Context\n\ndef work(ctx: Context):\n    if ctx.{}:\n        pass\n",
        "from context import Context\n\ndef work(ctx: 'Context'):\n    if ctx.{}:\n        pass\n",
        "from context import Context\n\nctx = Context('out')\n\ndef work():\n    if ctx.{}:\n        pass\n",
        "from context import Context\n\nclass Trainer:\n    def __init__(self):\n        self.ctx = Context('out')\n\n"
        "    def fit(self):\n        if self.ctx.{}:\n            pass\n",
        "from context import Context\n\nclass Trainer:\n    def __init__(self, ctx):\n        self.ctx = ctx\n\n"
        "    def fit(self):\n        if self.ctx.{}:\n            pass\n\n\ndef main():\n    Trainer(Context('out')).fit()\n",
    ],
)
def test_of_an_object_of_another_file(train: str, name: str) -> None:
    assert ranks_of(train.format(name)) is Ranks.ZERO


def test_an_object_that_another_file_makes() -> None:
    train = "from shared import ctx\n\ndef work():\n    if ctx.active:\n        pass\n"
    assert ranks_of(train, shared="from context import Context\n\nctx = Context('out')\n") is Ranks.ZERO


@pytest.mark.parametrize(
    ("train", "why"),
    [
        (READ.replace("Context(", "Plain(").format("active"), "a class that asks no rank"),
        (READ.replace("Context(", "Plain(").format("saves"), "and its field"),
        (READ.replace("Context(folder)", "Context(folder) if folder else Plain(folder)").format("active"), "one of two classes"),
        ("def main(ctx):\n    if ctx.active:\n        pass\n", "nobody says what it is"),
        ("def main(ctx):\n    if ctx.active:\n        pass\n\nmain(Context(1))\nmain(Plain(1))\n", "callers hand over either"),
        (READ.format("saves") + "    ctx.saves = folder\n", "another one gives it a value"),
        (READ.replace("Context(folder)", "make(folder)").format("active"), "what a function makes is not followed"),
        ("class Heir(Context):\n    @property\n    def active(self):\n        return True\n\n"
         "def main(ctx: Context):\n    if ctx.active:\n        pass\n", "an heir answers otherwise"),
    ],
    ids=lambda value: "",
)  # fmt: skip
def test_what_is_no_test_of_the_rank(train: str, why: str) -> None:
    assert ranks_of("from context import Context, Plain\n\n" + train) is None, why
