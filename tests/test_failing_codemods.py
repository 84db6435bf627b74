"""A codemod that fails on a file costs what it would have said there: the run goes on and names it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ddpfix
from codemods.ranks.unguarded_print import UnguardedPrint

PRINTS = """\
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 0:
    print("begin")
print("end")
"""


def fails(*given: object, **options: object) -> bool:
    raise ValueError("no such word")


@pytest.mark.parametrize(
    "place", ["codemods.ranks.unguarded_print.UnguardedPrint.is_worth_parsing", "codemods.engine.find.unstarted_by"]
)
def test_what_fails_outside_of_its_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """By the gate the file is looked at all the same; where what is found cannot be judged, the failure is named."""
    (tmp_path / "train.py").write_text(PRINTS)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node=2 train.py\n")
    monkeypatch.setattr(place, fails)
    (report,) = ddpfix.check([tmp_path], select=[UnguardedPrint.code])
    said = [failure.error for failure in report.failed]
    if place.endswith("is_worth_parsing"):
        assert [f.code for f in report.findings] == [UnguardedPrint.code] and not said
    else:
        assert not report.findings
        assert said == [f"{UnguardedPrint.code} unguarded-print failed on it, and says nothing here: ValueError: no such word"]
