"""DDP307: a file that is read so that more can be put into it is no cache, and `is False` asks for the opposite."""

from __future__ import annotations

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import findings_of

HEAD = """
import json, os
import torch.distributed as dist


"""
LOG = """def note(path, result):
    if os.path.isfile(path) is False:
        with open(path, "w") as f:
            json.dump([result], f)
    else:
        with open(path) as f:
            rows = json.load(f)
        with open(path, "w") as f:
            json.dump(rows + [result], f)
"""
CACHE = """def note(path, result):
    if os.path.isfile(path) is False:
        with open(path, "w") as f:
            json.dump([result], f)
    with open(path) as f:
        return json.load(f)
"""
MAIN = """

def main(result):
    dist.init_process_group("gloo")
    return note("rows.json", result)
"""
SETS = """
import torch.distributed as dist
from torch_geometric.data import Dataset


class Rows(Dataset):
    def download(self):
        BODY

    def process(self):
        for name in self.raw_paths:
            self.write(name)


def main():
    dist.init_process_group("gloo")
    return Rows("data")
"""


def test_a_log_that_each_run_adds_to() -> None:
    assert not findings_of(CacheFilledByEveryRank, HEAD + LOG + MAIN)


def test_the_arm_for_a_missing_file_writes_the_cache() -> None:
    (found,) = findings_of(CacheFilledByEveryRank, HEAD + CACHE + MAIN)
    assert "writes it in place (line 8)" in found.message


def test_a_set_that_loads_nothing_down() -> None:
    (found,) = findings_of(CacheFilledByEveryRank, SETS.replace("BODY", "pass"))
    assert "process the raw ones" in found.message and "download" not in found.message
    (found,) = findings_of(CacheFilledByEveryRank, SETS.replace("BODY", "fetch(self.raw_dir)"))
    assert "download and unpack" in found.message
