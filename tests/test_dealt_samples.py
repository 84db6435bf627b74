"""Files that are named by samples which a loader deals out to the ranks."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

WRITER = """
import json
import os
import torch.distributed as dist
from data import make_loader


def export(net, folder):
    rank = dist.get_rank()
    loader = make_loader(folder)
    for LOOP:
        LINES
    if rank == 0:
        print("done")


def main(args):
    dist.init_process_group("nccl")
    export(make(), args.folder)


if __name__ == "__main__":
    main(read())
"""
DEALT = """
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def make_loader(folder):
    rows = read(folder)
    options = {"batch_size": 4}
    if dist.is_initialized():
        options["sampler"] = DistributedSampler(rows, shuffle=False)
    return DataLoader(rows, **options)
"""
ALL = """
from torch.utils.data import DataLoader, DistributedSampler


def make_loader(folder):
    return DataLoader(read(folder), batch_size=4)


def training_loader(rows):
    return DataLoader(rows, sampler=DistributedSampler(rows))
"""


def program(loop: str, *lines: str) -> str:
    return WRITER.replace("LOOP", loop).replace("LINES", ("\n" + " " * 8).join(lines))


def write(name: str) -> str:
    return f"open(os.path.join(folder, {name}), 'w').write(json.dumps(folder))"


NAMED = [
    program("batch in loader", write("batch['name'][0] + '.json'")),
    program("batch in loader", "images, info = batch", "for i in range(len(images)):", "    name = info['file'][i]",
            "    " + write("'{}.json'.format(name)")),
    program("n, (images, names) in enumerate(loader)", "for image, name in zip(images, names):",
            "    " + write("f'{name}.json'")),
    program("batch in loader", "stem = os.path.splitext(os.path.basename(batch.path[0]))[0]", "path = os.path.join(folder, stem)",
            "with open(path, 'w') as f:", "    f.write('made')"),
]  # fmt: skip


@pytest.mark.parametrize("source", NAMED)
def test_a_file_named_by_a_sample_that_is_dealt_out(source: str) -> None:
    check_nothing(UnguardedFileIo, source, files={"data.py": DEALT})


@pytest.mark.parametrize("source", NAMED)
def test_every_rank_has_all_samples(source: str) -> None:
    assert len(findings_of(UnguardedFileIo, source, {"data.py": ALL})) == 1


@pytest.mark.parametrize(
    "source",
    [
        program("n, batch in enumerate(loader)", write("f'{n}.json'")),  # each rank has a first one
        program("batch in loader", "for i in range(len(batch)):", "    " + write("f'{i}.json'")),
        program("batch in loader", "count = batch['name'].shape[0]", write("f'{count}.json'")),
        program("batch in loader", write("batch['class_name'][0] + '.json'")),  # many samples are of one class
        program("images, labels in loader", write("f'{labels[0]}.json'")),
        program("batch in loader", write("'rows.json'")),
        program("batch in loader", write("batch['name'][0] + '.json'"), write("'last.json'")),
        program("batch in loader", "net(batch).backward()", write("batch['name'][0] + '.json'")),
    ],
)
def test_names_that_two_ranks_may_share(source: str) -> None:
    assert findings_of(UnguardedFileIo, source, {"data.py": DEALT})
