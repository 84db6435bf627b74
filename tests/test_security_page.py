"""SECURITY.md: every test that its table names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.mutations.threats import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent
ROWS = [row for row in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| (?!threat|---)", row)]


@pytest.mark.parametrize("name", re.findall(r"`(tests/[^`]+)`", "\n".join(ROWS)))
def test_the_named_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_bytes())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_answer_has_a_test_behind_it() -> None:
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
    assert cells
    assert [threat for threat, answer, test in cells if not (answer and test)] == []


def test_every_test_behind_a_row_is_one_that_can_fail() -> None:
    """`make mutations` takes each answer away, and runs the test."""
    named = set(re.findall(r"`(tests/[^`]+)`", "\n".join(ROWS)))
    assert named == {mutation.test for mutation in MUTATIONS}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.test.partition("::")[2])
def test_what_is_to_be_taken_away_is_there(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.old != mutation.new
