"""Which statements fail in every run of several processes, and what stands in such a program is left out."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.ranks.failing_statements import statement_fails
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from codemods.sync.missing_destroy_process_group import MissingDestroyProcessGroup
from ddpfix.testing import check_nothing, findings_of

CLASSES = """\
from base import Base, Mixed


class Fit(Base):
    KIND = "fit"

    def __init__(self, rows, distributed):
        super().__init__(rows)
        self.rate = 1
        if distributed:
            self.world = 2

    def step(self):
        return self.rate

    def run(self, distributed):
        {statement}


class Heir(Fit):
    def later(self):
        self.of_heir = 3


def pair(rows):
    if rows:
        return rows, 1
    return [], 0


def either(rows):
    return rows if rows else (rows, 1)


def listed(rows):
    yield rows, 1
"""
BASE = {
    "base.py": """\
    class Base:
        of_base: int = 1

        def __init__(self, rows):
            self.rows = rows

    class Mixed: ...
    """,
    "other.py": "def fill(fit):\n    fit.from_outside = 1\n    fit.one, fit.two = 1, 2\n",
}


def fails(statement: str) -> bool:
    source = CLASSES.format(statement=textwrap.indent(statement, " " * 8).lstrip())
    files = {"fit.py": source, **{path: textwrap.dedent(text) for path, text in BASE.items()}}
    files["fit.py"] += "\n" * 60  # a whole program: a sample leaves methods out
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("fit.py")
    assert module is not None
    (run,) = (f for f in module.functions if f.name == "run")
    return statement_fails(project, module, run.body[-1])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("print(self.global_rank)", True),
        ("self.evaluate()", True),
        ("print(self.rate, self.rows, self.KIND, self.of_base, self.world, self.of_heir, self.step())", False),
        ("print(self.from_outside, self.one, self.two)", False),
        ("print(self.__class__)", False),
        ("self.global_rank = 3", False),
        ("self.global_rank.of = 3", True),
        ("if distributed:\n    print(self.global_rank)", True),  # the arm of several processes
        ("if not distributed:\n    print(self.global_rank)", False),
        ("if self.rate:\n    print(self.global_rank)", False),
        ("print(hasattr(self, 'global_rank') and self.global_rank)", False),
        ("setattr(self, self.KIND, 1)\nprint(self.global_rank)", False),
        ("def inner(self):\n    pass\nprint(self.global_rank)", True),
    ],
)
def test_an_attribute_that_nothing_sets(statement: str, expected: bool) -> None:
    assert fails(statement) is expected


@pytest.mark.parametrize(
    "change", ["class Fit(Mixed, dict):", "class Fit(torch.nn.Module):", "class Fit(Unknown):", "@register\nclass Fit:"]
)
def test_a_class_that_is_not_all_to_be_seen(change: str) -> None:
    source = CLASSES.format(statement="print(self.global_rank)").replace("class Fit(Base):", change) + "\n" * 60
    files = {"fit.py": f"import torch\n{source}", "base.py": textwrap.dedent(BASE["base.py"])}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("fit.py")
    assert module is not None
    (run,) = (f for f in module.functions if f.name == "run")
    assert not statement_fails(project, module, run.body[-1])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a, b, c = pair(self.rows)", True),
        ("a, b = pair(self.rows)", False),
        ("a, *b = pair(self.rows)", False),
        ("a, b, c = either(self.rows)", False),
        ("a, b, c = listed(self.rows)", False),
        ("a = pair(self.rows)", False),
    ],
)
def test_values_that_are_taken_apart_into_another_number(statement: str, expected: bool) -> None:
    assert fails(statement) is expected


def test_a_name_that_a_whole_program_does_not_bind() -> None:
    lines = "\n".join(f"x{i} = {i}" for i in range(80))
    for source, expected in ((f"{lines}\nwrite(x1)", True), ("x1 = 1\nwrite(x1)", False)):  # a sample leaves it out
        project = Project.of({"run.py": source.encode()})
        module = project.module("run.py")
        assert module is not None and isinstance(module.tree, ast.Module)
        assert statement_fails(project, module, module.tree.body[-1]) is expected


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ("import builtins\nbuiltins.write = print", False),
        ("import builtins as b\nb.write = print", False),
        ("import builtins\nsetattr(builtins, 'write', print)", False),
        ("__builtins__['write'] = print", False),
        ("import builtins\nbuiltins.__dict__.update(write=print)", False),
        ("import builtins\nmore = builtins\nmore.write = print", False),
        ("import builtins\nbuiltins.print = write", True),  # another name; what the file calls so itself is its own
        ("import builtins as b\nb.print = max\nwrite = 3", True),
    ],
)
def test_a_name_that_another_file_may_give_to_all(top: str, expected: bool) -> None:
    lines = "\n".join(f"x{i} = {i}" for i in range(80))
    project = Project.of({"run.py": f"{lines}\nwrite(x1)".encode(), "top.py": f"{top}\n".encode()})
    module = project.module("run.py")
    assert module is not None
    assert statement_fails(project, module, module.tree.body[-1]) is expected


PROGRAM = """\
import argparse
import torch
import torch.distributed as dist


class Base:
    def __init__(self, rank, config, seed{default}):
        self.rank = rank


class Fit(Base):
    def __init__(self, rank, config):
        super().__init__(rank, config)

    def say(self):
        print("the rows are there")

    def run(self):
        self.say()


def announce():
    print("it begins")


def main():
    dist.init_process_group("nccl")
    announce()
    fit = Fit(dist.get_rank(), {{}})
    fit.run()


if __name__ == "__main__":
    main()
"""


def test_a_program_that_gets_nowhere() -> None:
    whole, broken = PROGRAM.format(default="=0"), PROGRAM.format(default="")
    assert [f.span.line for f in findings_of(UnguardedPrint, whole, path="train.py")] == [28, 30]
    check_nothing(UnguardedPrint, broken, path="train.py")
    assert findings_of(MissingDestroyProcessGroup, whole, path="train.py")
    check_nothing(MissingDestroyProcessGroup, broken, path="train.py")
    other = broken.replace("    announce()\n", "").replace("    fit = Fit", "    announce()\n    fit = load() or Fit")
    assert [f.span.line for f in findings_of(UnguardedPrint, other, path="train.py")] == [28]  # `load` cannot make one, either


MADE = """\
import lightning as L


class Net(L.LightningModule):
    def __init__(self, width, rate):
        super().__init__()

    def validation_step(self, batch, i):
        self.log("val/loss", self(batch))


if __name__ == "__main__":
    trainer = L.Trainer(devices=2, strategy="ddp")
    trainer.fit({made})
"""


def test_a_class_that_is_made_with_other_arguments_than_it_takes() -> None:
    assert findings_of(UnsyncedMetric, MADE.format(made="Net(8, 0.1)"), path="train.py")
    check_nothing(UnsyncedMetric, MADE.format(made="Net(8)"), path="train.py")
