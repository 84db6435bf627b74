"""The table of training arguments against itself, and against the installed transformers where there is one."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from codemods.data.training_arguments import FIELDS, MEASURED_TO, OLD, TABLE
from ddpfix import argument_page


def test_each_parameter_stands_once() -> None:
    assert [name for name, n in Counter(p.name for p in TABLE).items() if n > 1] == []
    assert all(p.renamed for p in TABLE if p.new or p.values)


def test_the_page_shows_every_parameter() -> None:
    page = argument_page.page()
    assert all(f"| `{p.name}` |" in page for p in TABLE)
    assert "| `evaluation_strategy` | 3.2 | 4.50 | `'no'` → `None` | `eval_strategy` (4.41+) |" in page
    assert "| `group_by_length` | 4.3 | 5.1 |" in page and "| `no_cuda` | ≤ 3.0 | 4.57 |" in page


def test_the_table_is_that_of_the_installed_version() -> None:
    transformers = pytest.importorskip("transformers")
    if transformers.__version__.split(".")[:2] != [str(n) for n in MEASURED_TO]:
        pytest.skip("another version than the newest measured one")
    fields = {f.name for f in dataclasses.fields(transformers.TrainingArguments)}
    assert {p.name for p in TABLE if p.owner == "TrainingArguments" and p.gone is None} <= fields
    assert not {p.name for p in TABLE if p.owner == "TrainingArguments" and p.gone} & fields
    assert {p.new for p in OLD.values() if p.new} | {r.name for p in OLD.values() for r in p.values.values()} <= fields
    assert FIELDS - fields <= set(OLD)
