"""Paths that a broadcast gives: all ranks have the one that the sender made, whatever it is told of the ranks."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

HELPERS = """\
import torch.distributed as dist


def broadcast_text(text, rank, device=None):
    held = [text if rank == 0 else None]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def choose(text, rank):
    return text
"""
PROGRAM = """\
import json

import torch.distributed as dist
from helpers import *


def note(path, kept):
    with open(path, "w") as out:
        json.dump(kept, out)


def work(cfg, kept):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    GIVEN
    note(PATH, kept)
    dist.barrier()


if __name__ == "__main__":
    work(1, {"a": 2})
"""


def is_told(given: str, path: str, files: dict[str, str] | None = None) -> bool:
    source = PROGRAM.replace("GIVEN", given).replace("PATH", path)
    return bool(findings_of(UnguardedFileIo, source, path="work.py", files={"helpers.py": HELPERS, **(files or {})}))


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("cfg.folder = broadcast_text(cfg.folder, rank)", "cfg.folder + '/notes.json'"),
        ("folder = broadcast_text(cfg.folder, rank)", "f'{folder}/notes.json'"),
        ("folder = broadcast_text(cfg.folder, rank, f'cuda:{rank}')", "f'{folder}/notes.json'"),
        ("pass", "broadcast_text(cfg.folder, rank)"),
    ],
)
def test_a_path_that_one_rank_sends(given: str, path: str) -> None:
    assert is_told(given, path)


def test_a_field_that_another_file_sets_to_what_one_rank_sends() -> None:
    more = "from helpers import *\n\n\ndef agree(cfg, rank):\n    cfg.folder = broadcast_text(cfg.folder, rank)\n"
    assert is_told("pass", "cfg.folder + '/notes.json'", {"more.py": more})
    assert not is_told("pass", "cfg.folder + '/notes.json'", {"more.py": more.replace("broadcast_text", "choose")})


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("cfg.folder = choose(cfg.folder, rank)", "cfg.folder + '/notes.json'"),
        ("folder = broadcast_text(cfg.folder, rank)", "f'{folder}/notes_{rank}.json'"),
        ("folder = broadcast_text(cfg.folder, rank) + str(rank)", "folder"),
        ("folder = np.broadcast_to(rank, (1,))[0]", "f'notes_{folder}.json'"),
    ],
)
def test_a_path_of_each_rank(given: str, path: str) -> None:
    assert not is_told(given, path)
