"""DDP307: every rank fills the same files."""

from __future__ import annotations

import pytest

from codemods.sync.cache_filled_by_every_rank import CacheFilledByEveryRank
from ddpfix.testing import check_nothing, check_told

RULE = CacheFilledByEveryRank
HEAD = "import os\nimport numpy as np\nimport torch.distributed as dist\nfrom torch.utils.data import Dataset\n\n"
READ = "\n    def __getitem__(self, i):\n        return np.load(f'{self.folder}/{i}.npy')\n"


def data(body: str, *, read: str = READ, head: str = HEAD) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{head}class D(Dataset):\n    def __init__(self, samples, folder, rank):\n        self.folder = folder\n{lines}{read}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason="prepare_data")
    check_nothing(RULE, after)


def test_through_a_method_of_a_base_in_another_file() -> None:
    base = f"""{HEAD}class BaseDataset(Dataset):
    def fill(self):
        for i, s in enumerate(self.samples):
            np.savez(os.path.join(self.folder, f"sample_{{i}}.npz"), s)

    def __len__(self):
        return len(os.listdir(self.folder))
"""
    source = (
        "from base import BaseDataset\nimport pytorch_lightning\n\nclass One(BaseDataset):\n    def __init__(self, folder):\n"
        "        self.folder = folder\n        if folder:\n            self.fill()\n\n    def __getitem__(self, i):\n"
        "        return open(i).read()\n\n    def save(self):\n        pass\n"
    )
    found = check_told(RULE, source, reason="prepare_data", files={"base.py": base})
    assert found.span.line == 8
    assert "base.py:9" in found.message


@pytest.mark.parametrize(
    "body",
    ["if rank == 0:\n    np.save(f'{self.folder}/0.npy', samples)",
     "np.save(f'{self.folder}/0.npy', samples)\ndist.barrier()",
     "with FileLock(folder):\n    np.save(f'{self.folder}/0.npy', samples)",
     "np.save(f'{self.folder}/{rank}/0.npy', samples)",
     "np.save(f'{self.other}/0.npy', samples)",
     "self.samples = samples"],
)  # fmt: skip
def test_right_or_read_by_nobody(body: str) -> None:
    check_nothing(RULE, data(body))


def test_one_process() -> None:
    head = HEAD.replace("import torch.distributed as dist\n", "")
    check_nothing(RULE, data("np.save(f'{self.folder}/0.npy', samples)", head=head))


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_told(RULE, data("np.save(f'{self.folder}/0.npy', samples)"), reason="prepare_data")
    check_nothing(RULE, data("np.save(f'{self.folder}/0.npy', samples)"), path="tests/test_data.py")
