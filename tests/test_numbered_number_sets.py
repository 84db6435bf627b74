"""DDP404: a set of numbers has one order in every process, also where a list of them was made above."""

from __future__ import annotations

import pytest

from codemods.data_loading.unordered_labels import UnorderedLabels
from ddpfix.testing import findings_of

HEAD = """
import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")


def number(rows):
    BODY
    kinds = set(found)
    return {kind: i for i, kind in enumerate(kinds)}
"""


def told(body: str) -> bool:
    return bool(findings_of(UnorderedLabels, HEAD.replace("BODY", body.replace("\n", "\n    "))))


@pytest.mark.parametrize(
    "body",
    [
        "found = []\nfor row in rows:\n    found.append(int(row[0]))",
        "found = [int(row[0]) for row in rows]",
        "found = list(map(int, rows))",
        "found = []\nfound.extend(len(row) for row in rows)",
    ],
)
def test_numbers_are_hashed_alike(body: str) -> None:
    assert not told(body)


@pytest.mark.parametrize(
    "body",
    [
        "found = []\nfor row in rows:\n    found.append(row[0])",
        "found = [int(row[0]) for row in rows]\nfound.append('none')",
        "found = list(map(str, rows))",
        "found = rows",
        "found = []",
    ],
)
def test_anything_else_may_be_a_text(body: str) -> None:
    assert told(body)
