"""What counts as quiet: the ticks that a hung process group uses, not the work of a slow rank."""

from __future__ import annotations

import pytest

from ddpfix.prove.traces import Page
from ddpfix.prove.watchdog import LONG_QUIET, Pulse, Watchdog


@pytest.mark.parametrize(("ticks_a_second", "hangs"), [(0.0, True), (0.3, True), (3.0, False)])
def test_housekeeping_is_no_work(ticks_a_second: float, hangs: bool) -> None:
    """A rank in a wrapped model's forward that waits for one in a barrier: measured at 0.25 ticks a second each."""
    barrier, forward = Page(entered=3, left=2, steps=1, forwards=0), Page(entered=2, left=2, steps=1, forwards=1)
    dog, said = Watchdog(), False
    for poll in range(int(3 * LONG_QUIET / 0.05)):
        now = poll * 0.05
        ticks = 250 + int(now * ticks_a_second)
        said = said or dog.hangs(now, [Pulse(barrier, ticks, False), Pulse(forward, ticks, False)])
    assert said is hangs


@pytest.mark.parametrize(("failed", "waits", "hangs"), [(True, True, True), (False, True, False), (True, False, False)])
def test_a_rank_that_asks_for_a_failed_one_waits_in_vain(failed: bool, waits: bool, hangs: bool) -> None:
    """`init_process_group` polls its store for the rank that has ended: measured at 2 ticks a second with torch 2.13."""
    start = Page(entered=1, left=0 if waits else 1, steps=0, forwards=0)
    dog, said = Watchdog(), False
    for poll in range(int(3 * LONG_QUIET / 0.05)):
        now = poll * 0.05
        said = said or dog.hangs(now, [Pulse(start, 300 + int(now * 2), poll % 7 == 0)], failed=failed)
    assert said is hangs
