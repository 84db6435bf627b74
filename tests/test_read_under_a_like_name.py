"""DDP202: what rank 0 alone would write is read again by every rank, under a name that is put together in another way."""

from __future__ import annotations

import pytest

from codemods.analysis.files.alike_paths import may_meet
from codemods.analysis.files.file_calls import Act
from codemods.api.findings import InsertAfter
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

HEAD = """
import argparse, os
import pandas as pd
import torch.distributed as dist

KINDS = {"wood": ["oak", "elm"]}


def settings():
    args = argparse.ArgumentParser().parse_args()
    return args


def write_tables(root, share, frames):
    args = settings()
    frames["oak"].to_csv(WRITTEN)


def read_tables(root, share):
    args = settings()
    found = []
    for group in KINDS:
        for kind in KINDS[group]:
            found.append(pd.read_csv(READ))
    return found


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        print("start")
    write_tables("out", 0.1, {"oak": pd.DataFrame(), "elm": pd.DataFrame()})
    print(len(read_tables("out", 0.1)))


if __name__ == "__main__":
    main()
"""


def waits(written: str, read: str) -> bool:
    told = findings_of(UnguardedFileIo, HEAD.replace("WRITTEN", written).replace("READ", read))
    assert told
    edits = [e for f in told if "to_csv" in f.message for e in f.edits]
    return any(isinstance(e, InsertAfter) and "barrier" in e.code for e in edits)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"{}/{}_wood_oak_table.csv".format(root, share)', '"{}/{}_{}_{}_table.csv".format(root, share, group, kind)'),
        ('f"{root}/{share}_wood_oak_table.csv"', '"%s/%s_%s_%s_table.csv" % (root, share, group, kind)'),
        ('os.path.join(args.out, "oak_table.csv")', 'os.path.join(args.out, f"{kind}_table.csv")'),
        ('"{0}/table.csv".format(root)', 'os.path.join(root, "table.csv")'),
    ],
)
def test_a_barrier_stands_behind_what_all_read_next(written: str, read: str) -> None:
    assert waits(written, read)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('f"{root}/{share}_wood_oak_table.csv"', 'f"{root}/{kind}_weights.csv"'),  # another kind of file
        ('f"{root}/made/oak_table.csv"', 'f"{root}/given/{kind}_table.csv"'),  # another folder
        ('f"{root}/oak_table.csv"', 'f"{root}/{kind}_table.json"'),  # another format
    ],
)
def test_none_where_other_files_are_read(written: str, read: str) -> None:
    assert not waits(written, read)


def test_only_what_is_read_counts() -> None:
    assert may_meet(Act.WRITES, "<E:f|out>/a_rows.csv", Act.READS, "<E:g|out>/a_rows.csv")
    assert not may_meet(Act.WRITES, "<E:f|out>/a_rows.csv", Act.ASKS, "<E:g|out>/a_rows.csv")
    assert not may_meet(Act.WRITES, "out/<E:f|n>.csv", Act.READS, "out/<E:g|n>.csv")  # nothing says which file it is
