"""A rank that a spawned worker puts into the settings, and that other files ask there: `self.cfg.gpu <= 0`."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.store.project import Project

MAIN = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from fitter import Fitter


def worker(number, cfg, count):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:9000", world_size=count, rank=number)
    fit(cfg, GIVEN)


def fit(cfg, own_gpu=-1):
    cfg.gpu = own_gpu
    Fitter(cfg).run()


def main(cfg):
    if cfg.several:
        mp.spawn(worker, nprocs=2, args=(cfg, 2))
    else:
        fit(cfg)


if __name__ == "__main__":
    main(read())
"""
FITTER = """
import torch


class Fitter:
    def __init__(self, cfg):
        self.cfg = cfg

    def run(self):
        if TEST:
            self.keep()

    def keep(self):
        torch.save(self.state, "last.pt")
"""


@pytest.mark.parametrize(
    ("given", "test", "comes"),
    [
        ("own_gpu=number", "self.cfg.gpu <= 0", Ranks.ZERO),
        ("number", "self.cfg.gpu in (-1, 0)", Ranks.ZERO),
        ("number", "self.cfg.gpu >= 0", Ranks.ALL),  # each rank of a run of several
        ("cfg.first_gpu", "self.cfg.gpu <= 0", Ranks.ALL),  # the same number on each rank, for all that is seen
        ("count", "self.cfg.gpu <= 0", Ranks.ALL),
    ],
)
def test_a_test_of_what_the_worker_puts_there(given: str, test: str, comes: Ranks) -> None:
    files = {"train.py": MAIN.replace("GIVEN", given).encode(), "fitter.py": FITTER.replace("TEST", test).encode()}
    project = Project.of(files)
    module = project.module("fitter.py")
    assert module is not None
    (save,) = (c for c in module.nodes(ast.Call) if ast.unparse(c.func) == "torch.save")
    assert ranks_reaching(project, module, save) is comes
