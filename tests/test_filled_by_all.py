"""DDP302, where every rank fills a folder with its own share of the files, and each lists it without waiting."""

from __future__ import annotations

import pytest

from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, check_transformed, findings_of

SOURCE = """\
from pathlib import Path

from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, root, class_root=None):
        self.paths = list(Path(root).iterdir())
        if class_root is not None:
            self.class_root = Path(class_root)
            self.class_root.mkdir(parents=True, exist_ok=True)
            self.class_paths = list(self.class_root.iterdir())
        else:
            self.class_root = None


def main(args, pipeline, prompts, step):
    accelerator = Accelerator()
    if accelerator.is_main_process:
        args.save()
    if args.with_prior:
        folder = Path(args.class_dir)
        have = len(list(folder.iterdir()))
        if have < args.count:
            loader = accelerator.prepare(DataLoader(prompts, batch_size=4))
            for example in loader:
                images = pipeline(example["prompt"])
                for i, image in enumerate(images):
                    image.save(folder / f"{example['index'][i] + have}.jpg")
    data = Pictures(args.instance_dir, class_root=args.class_dir if args.with_prior else None)
    for batch in accelerator.prepare(DataLoader(data, 4)):
        step(batch)
"""
LAST = """                    image.save(folder / f"{example['index'][i] + have}.jpg")\n"""
WAITS = "        accelerator.wait_for_everyone()\n"


def test_the_ranks_wait_behind_the_test_that_each_makes_for_itself() -> None:
    (found,) = check_transformed(MissingBarrier, SOURCE, SOURCE.replace(LAST, LAST + WAITS))
    assert "each rank writes its own share of the files here" in found.message
    assert "lists the folder in line 13 (self.class_root.iterdir)" in found.message
    assert "has a shorter data set than the others" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for example in loader:", "for example in tqdm(loader, desc='pictures'):"),
        ("image.save(folder / f", "torch.save(image, folder / f"),
        ("self.class_paths = list(self.class_root.iterdir())", "self.class_paths = os.listdir(self.class_root)"),
    ],
)
def test_other_spellings(old: str, new: str) -> None:
    source = "import os\nimport torch\nfrom tqdm import tqdm\n" + SOURCE.replace(old, new)
    assert new in source
    assert [f.code for f in findings_of(MissingBarrier, source)] == ["DDP302"]


def test_a_sampler_of_torch() -> None:
    source = """\
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(rows, model, out):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        print("begins")
    loader = DataLoader(rows, sampler=DistributedSampler(rows))
    for name, row in loader:
        torch.save(model(row), os.path.join(out, f"{name}.pt"))
    return [torch.load(os.path.join(out, name)) for name in os.listdir(out)]
"""
    (found,) = findings_of(MissingBarrier, source)
    assert found.fix is not None and any("dist.barrier()" in getattr(e, "code", "") for e in found.edits)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LAST, LAST + WAITS),  # somebody waits
        ("accelerator.prepare(DataLoader(prompts, batch_size=4))", "DataLoader(prompts, batch_size=4)"),  # every rank makes all
        ("class_root=args.class_dir if args.with_prior else None", "class_root=args.other_dir"),  # another folder is listed
        ("folder / f\"{", "folder / f\"{accelerator.process_index}-{"),
        ("            self.class_paths = list(self.class_root.iterdir())\n", ""),  # nobody lists it
        ("    data = Pictures", "    prompts = accelerator.gather(prompts)\n    data = Pictures"),  # all meet there
    ],
)  # fmt: skip
def test_nothing_where_nobody_goes_ahead(old: str, new: str) -> None:
    assert old in SOURCE
    source = SOURCE.replace(old, new)
    if "process_index" in new:  # a name that holds the rank is listed by all, all the same: not seen, and not told
        check_nothing(MissingBarrier, source)
    else:
        check_nothing(MissingBarrier, source)
