"""Nested f-strings once took long; they cost one job, and little: each file is in a stranger's pull request, read in a child."""

from __future__ import annotations

import resource

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
    "one in another": b"x = 1\nv = " + b'f"{' * 24_000 + b"x" + b'}"' * 24_000 + b"\n",
}
PLAIN = b"x = 1\n" + b"".join(b"v%d = x.y(%d, 'abc') + x\n" % (n, n) for n in range(4_200))
MOST = 6  # times the processor time that a file of as many bytes takes without f-strings


def cost(world: World, data: bytes) -> tuple[float, str]:
    """Seconds of a processor that the review took, with all that it started, and what came of it."""
    assert len(data) > 100_000
    number = pull_request(world, {"model.py": data})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = review(world, number)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert outcome.action == "reviewed", outcome
    assert not children()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, outcome.why


PLAIN_COST: list[float] = []  # seconds, measured once


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_took_long_costs_one_job(world: World, kind: str) -> None:
    if not PLAIN_COST:
        PLAIN_COST.append(cost(world, MODULE + PLAIN)[0])
    (plain,) = PLAIN_COST
    took, why = cost(world, MODULE + FILES[kind])
    assert "1 remark" in why or "nothing to say; not read: model.py: " in why
    assert took < MOST * plain, f"it costs that one job {took:.1f} s of a processor, and a plain file {plain:.1f} s"
    assert took < REVIEW.cpu / 2


def test_a_file_that_cannot_be_read_is_told_with_the_reason(world: World) -> None:
    nested = MODULE + b"x = 1\nv = " + b'f"{' * 24_000 + b"x" + b'}"' * 24_000 + b"\n"
    number = pull_request(world, {"model.py": MODULE, "nested @acme.py": nested})
    outcome = review(world, number)
    assert "1 remark; not read: nested @acme.py: " in outcome.why
    assert "- `nested @acme.py` was not read: " in world.notes(number)[0]
    assert review(world, number).action == "unchanged"
