"""Files that once took long cost one job, and little: each is in a stranger's pull request, in the child that a review has."""

from __future__ import annotations

import time

import pytest

from ddpfix.bot.child import REVIEW
from tests.bot.conftest import MODULE, World
from tests.bot.test_review import pull_request
from tests.bot.test_strangers import children, review

NESTED = b"""f'''{f\"\"\"{f'{f"{x}"}'}\"\"\"}'''"""
FILES = {
    "specifications": b"x = y = 1\nv = f'" + b"{x:{y}}" * 17_000 + b"'\n",
    "statements": b"x = 1\n" + b"".join(b"v%d = %s\n" % (n, NESTED) for n in range(3_300)),
    "sum": b"x = 1\nv = " + b" + ".join([NESTED] * 3_800) + b"\n",
    "fixes": b"".join(b'        self.log("val/more%d", loss)\n' % n for n in range(3_000)),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_took_long_costs_one_job(world: World, kind: str) -> None:
    data = MODULE + FILES[kind]
    assert len(data) > 100_000
    pull_request(world, {"model.py": data})
    began = time.monotonic()
    outcome = review(world)
    assert outcome.action in ("reviewed", "refused"), outcome
    assert time.monotonic() - began < REVIEW.seconds + 10
    assert not children()
