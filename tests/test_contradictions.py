"""A value whose way asks one name for two values: the tests round its steps never hold together."""

from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

SOURCE = """\
import torch.distributed as dist


def train(metric, bundle_of, loss_of, epochs):
    ABOVE
    best, stalled = 0.0, 0
    for epoch in range(epochs):
        if metric == "FIRST":
            score = dist.get_rank() * bundle_of(epoch)
        else:
            score = 0.0
        if metric == "SECOND" and epoch > 1:
            if score > best:
                best, stalled = score, 0
            else:
                stalled += 1
        if stalled > 3:
            break
        dist.all_reduce(loss_of(epoch))
"""


@pytest.mark.parametrize(
    ("first", "second", "above", "found"),
    [
        ("bundle", "bundle", "pass", True),
        ("bundle", "bleu", "pass", False),
        ("bundle", "bleu", "metric = metric.lower()", True),  # bound twice: each test may ask another value
    ],
)
def test_steps_under_tests_that_exclude_each_other(first: str, second: str, above: str, *, found: bool) -> None:
    source = SOURCE.replace("FIRST", first).replace("SECOND", second).replace("ABOVE", above)
    assert bool(findings_of(OneRankDecision, source)) is found
