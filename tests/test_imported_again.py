from __future__ import annotations

import pytest

from codemods.analysis.guards.before_group import group_comes_later
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.store.project import Project
from ddpfix.testing import findings_of

SCRIPT = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from journal import note

{above}


def work(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    train(rank, 7)


if __name__ == "__main__":
    {main}
"""
JOURNAL = """
import torch.distributed as dist


def note(folder):
    with open(folder + "/settings.txt", "w") as f:
        f.write(folder)


def mean(value):
    dist.all_reduce(value)
    if dist.get_rank() == 0:
        print(value)
    return value / dist.get_world_size()
"""
SPAWN = "mp.spawn(work, nprocs=2, args=(2,))"


def fixes_of(script: str) -> list[bool]:
    found = findings_of(UnguardedFileIo, JOURNAL, {"train.py": script}, path="journal.py")
    return [f.fix is not None for f in found]


def test_what_a_spawned_process_writes_at_its_import_gets_no_test_of_the_group() -> None:
    assert True not in fixes_of(SCRIPT.format(above='note("out")', main=SPAWN))
    assert True in fixes_of(SCRIPT.format(above="", main=SPAWN).replace("train(rank, 7)", 'note("out")'))


@pytest.mark.parametrize(
    ("above", "main", "later"),
    [
        ('note("out")', SPAWN, True),
        ("", f'note("out")\n    {SPAWN}', False),
        ('note("out")', "print(7)", False),
        ('dist.init_process_group("gloo")\nnote("out")', SPAWN, False),
    ],
)
def test_where_the_group_comes_later(above: str, main: str, later: bool) -> None:
    files = {"journal.py": JOURNAL.encode(), "train.py": SCRIPT.format(above=above, main=main).encode()}
    project = Project(files, files.get)
    module = project.module("journal.py")
    assert module is not None
    (opened,) = module.calls_named("open")
    assert bool(group_comes_later(project, module, opened)) is later
