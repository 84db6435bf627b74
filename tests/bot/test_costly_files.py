"""Nested f-strings once took long; they cost one job, and little: each file is in a stranger's pull request, read in a child."""

from __future__ import annotations

import time

import pytest

from tests.bot.conftest import MODULE, World
from tests.bot.test_review import pull_request
from tests.bot.test_strangers import children, review

NESTED = b"""f'''{f\"\"\"{f'{f"{x}"}'}\"\"\"}'''"""
FILES = {
    "specifications": b"x = y = 1\nv = f'" + b"{x:{y}}" * 17_000 + b"'\n",
    "statements": b"x = 1\n" + b"".join(b"v%d = %s\n" % (n, NESTED) for n in range(3_300)),
    "sum": b"x = 1\nv = " + b" + ".join([NESTED] * 3_800) + b"\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_took_long_costs_one_job(world: World, kind: str) -> None:
    data = MODULE + FILES[kind]
    assert len(data) > 100_000
    pull_request(world, {"model.py": data})
    began = time.monotonic()
    outcome = review(world)
    assert outcome.action in ("reviewed", "refused"), outcome
    assert time.monotonic() - began < 60
    assert not children()
