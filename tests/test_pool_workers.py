"""The workers of a pool of processes are no ranks: a test for rank 0 would be true in each of them."""

from __future__ import annotations

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

SOURCE = """\
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing.pool import ThreadPool

import lightning.pytorch as pl
from tqdm import tqdm


class Shots(pl.LightningDataModule):
    def setup(self, stage):
        OUTER

    def draw(self, rows):
        for row in tqdm(rows):
            self.keep(row)
        print("drawn")

    def draw_all(self, rows):
        return self.draw(rows)


if __name__ == "__main__":
    pl.Trainer(devices=2).fit(Net(), datamodule=Shots())
"""


def found(outer: str) -> list[str]:
    source = SOURCE.replace("OUTER", outer.replace("\n", "\n        "))
    if "draw_all" not in outer:
        source = source.replace("    def draw_all(self, rows):\n        return self.draw(rows)\n", "")
    return [f.code for rule in (ProgressBarOnEveryRank, UnguardedPrint) for f in findings_of(rule, source)]


@pytest.mark.parametrize(
    "outer",
    [
        "pool = multiprocessing.Pool(4)\nself.done = pool.map(self.draw, self.parts)\npool.close()",
        "with multiprocessing.Pool(4) as pool:\n    self.done = list(pool.imap(self.draw_all, self.parts))",
        "self.done = multiprocessing.get_context('spawn').Pool(4).map(self.draw, self.parts)",
        "with ProcessPoolExecutor() as runs:\n    self.done = [runs.submit(self.draw, p) for p in self.parts]",
        "with ProcessPoolExecutor() as runs:\n    self.done = list(runs.map(partial(self.draw), self.parts))",
    ],
)
def test_what_a_pool_alone_runs(outer: str) -> None:
    assert not found(outer)


@pytest.mark.parametrize(
    "outer",
    [
        "self.draw(self.parts)",
        "pool = multiprocessing.Pool(4)\npool.map(self.draw, self.parts)\nself.draw(self.parts)",
        "pool = multiprocessing.Pool(4)\npool.map(self.draw_all, self.parts)\nself.draw(self.parts)",
        "pool = ThreadPool(4)\npool.map(self.draw, self.parts)\nmultiprocessing.Pool(1)",
        "with ThreadPoolExecutor() as pool:\n    pool.map(self.draw, self.parts)\nProcessPoolExecutor()",
        "list(map(self.draw, self.parts))\nmultiprocessing.Pool(1)",
    ],
)
def test_what_the_ranks_run_as_well(outer: str) -> None:
    assert "DDP208" in found(outer)


@pytest.mark.parametrize("line", ["print()", "print('\\n')", "print('', flush=True)", "print('  ', end='\\n')"])
def test_a_blank_line_takes_no_guard(line: str) -> None:
    source = SOURCE.replace("OUTER", line).replace('        print("drawn")\n', "")
    check_nothing(UnguardedPrint, source)


@pytest.mark.parametrize("lines", ["print()\nprint('setup')", "print('-')", "print('\\n', stage)", "print(stage, end='')"])
def test_a_line_with_a_text_does(lines: str) -> None:
    source = SOURCE.replace("OUTER", lines.replace("\n", "\n        ")).replace('        print("drawn")\n', "")
    assert findings_of(UnguardedPrint, source)
