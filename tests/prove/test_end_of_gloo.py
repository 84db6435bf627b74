"""gloo's worker threads at the end of a rank: what they still hold is let go before the interpreter is on its way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

# The worker has a function of Python to run when the collective is done, for which it needs the lock as for a tensor to let go.
LATE = """\
import os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(4)
work = dist.all_reduce(value, async_op=True)
kept = work.get_future().then(lambda _: [i for i in range(5_000_000)])
while not value.eq(2).all():
    time.sleep(0.001)
print("done")
{end}
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python lets such a thread hang")
def test_a_worker_that_is_late_ends_no_rank(tmp_path: Path) -> None:
    ended = run(tmp_path, LATE.format(end=""), timeout=120)
    assert [(r.status, r.stdout) for r in ended.ranks] == [(0, "done\n")] * 2, ended.marked()


def test_a_crash_of_the_programs_own_at_its_end_is_seen(tmp_path: Path) -> None:
    end = "import atexit\nif dist.get_rank() == 1:\n    atexit.register(os.abort)\n"
    ended = run(tmp_path, LATE.format(end=end), timeout=120)
    assert ended.outcome == "error"
    assert [r.status for r in ended.ranks] == [0, -6], ended.marked()
