"""What stands before a statement, and whether it looks the same on every rank."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.class_index import class_facts
from codemods.analysis.logged.literal_tests import answer_of
from codemods.analysis.ranks.uniform import Condition, Place, conditions
from ddpfix.testing import project_of
from tests.lightning_sources import module

SETUP = """\
def __init__(self, names):
    super().__init__()
    self.names = names
    self.seen = []
    self.count = 0

def other(self, batch):
    self.seen.append(batch)
    self.count += 1
"""


def standing(*lines: str, literal: frozenset[str] = frozenset()) -> list[Condition]:
    """The conditions of the call `mark()`."""
    body = textwrap.indent("\n".join(lines), "    ")
    source = module(f"{SETUP}\ndef validation_step(self, batch, batch_idx, dataloader_idx=0, stage=''):\n{body}\n")
    project = project_of(source)
    found = project.module("module.py")
    assert found is not None
    function = next(f for f in found.functions if f.name == "validation_step")
    owner = found.class_of(function)
    assert owner is not None
    place = Place(project, found, class_facts(project, found, owner), function, literal)
    return conditions(place, found.calls_named("mark")[0])


@pytest.mark.parametrize(
    "lines",
    [
        ("mark()",),
        ("if self.trainer.sanity_checking:", "    return", "mark()"),
        ("if self.current_epoch > 3 and not self.training:", "    mark()"),
        ("if dataloader_idx == 0:", "    mark()"),
        ("with torch.no_grad():", "    mark()"),
        ("for name in ('a', 'b'):", "    mark()"),
        ("for i, name in enumerate(['a', 'b']):", "    mark()"),
        ("try:", "    other()", "finally:", "    mark()"),
        ("for x in batch:", "    if x:", "        break", "mark()"),
        ("if mark() is None:", "    pass"),
        ("def inner():", "    return 1", "mark()"),
    ],
)
def test_nothing_stands_before_it(lines: tuple[str, ...]) -> None:
    assert not standing(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("if self.hparams.verbose:", "    mark()"),
        ("if self.names is not None:", "    mark()"),
        ("if stage == 'val':", "    mark()"),
        ("for name in self.names:", "    mark()"),
        ("if batch_idx == 0:", "    mark()"),
        ("if isinstance(self.names, list):", "    mark()"),
        ("if not self.names:", "    return", "mark()"),
        ("match self.names:", "    case []:", "        mark()"),
    ],
)
def test_configuration_decides(lines: tuple[str, ...]) -> None:
    assert [c.uniform for c in standing(*lines)] == [True]


@pytest.mark.parametrize(
    "lines",
    [
        ("if batch:", "    mark()"),
        ("if self.seen:", "    mark()"),
        ("if self.count > 3:", "    mark()"),
        ("if self.ready():", "    mark()"),
        ("if self.unseen:", "    mark()"),
        ("if len(batch) > 3:", "    mark()"),
        ("if random() < 0.5:", "    mark()"),
        ("if batch:", "    return", "mark()"),
        ("for x in batch:", "    if x:", "        return", "mark()"),
        ("for x in ('a', 'b'):", "    if batch:", "        continue", "    mark()"),
        ("try:", "    return", "except ValueError:", "    pass", "mark()"),
        ("try:", "    mark()", "except ValueError:", "    pass"),
        ("try:", "    other()", "except ValueError:", "    mark()"),
        ("while batch:", "    mark()"),
        ("batch or mark()",),
        ("x = mark() if batch else 0",),
        ("[mark() for x in batch]",),
        ("with rank_zero_first():", "    mark()"),
        ("with main_process_first(local=True):", "    mark()"),
        ("def inner():", "    mark()"),
        ("match batch:", "    case []:", "        mark()"),
    ],
)
def test_data_decides(lines: tuple[str, ...]) -> None:
    assert False in [c.uniform for c in standing(*lines)]


def test_exits_of_another_branch_do_not_count() -> None:
    assert [c.text for c in standing("if batch:", "    return", "else:", "    mark()")] == ["`if batch`"]
    assert len(standing("match batch:", "    case []:", "        return", "    case _:", "        mark()")) == 1


def test_what_callers_give_as_a_literal_is_certain() -> None:
    assert not standing("if stage == 'val':", "    mark()", literal=frozenset({"stage"}))


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("stage == 'val'", True),
        ("stage != 'val'", False),
        ("stage in ('val', 'test')", True),
        ("stage not in ['val']", False),
        ("not train", True),
        ("train or stage == 'val'", True),
        ("train and other", False),
        ("stage == 'val' and other", None),
        ("other", None),
        ("stage == other", None),
        ("stage.startswith('v')", None),
        ("stage", True),
        ("True", True),
        ("stage is None", False),
        ("stage in names", None),
    ],
)
def test_what_literals_settle(test: str, answer: bool | None) -> None:
    assert answer_of(ast.parse(test, mode="eval").body, {"stage": "val", "train": False}) is answer
